package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/cric-talk/guards/internal/cleanup"
	"github.com/cric-talk/guards/internal/table"
)

// sweepFlags belong to commands that delete as the function cleanup does.
type sweepFlags struct {
	JSON   bool `name:"json" help:"Print the answer as JSON."`
	DryRun bool `help:"Delete nothing. Show how much would be deleted."`
	yesFlag
	tableFlags
}

// clean asks for confirmation and runs cleanup. The question contains the text
// of what. A terminal shows the progress of a sweep. If userID is not empty,
// clean deletes that user; otherwise it deletes what has expired. If ctx ends or
// cleanup fails, clean prints what was done until then.
func (f *sweepFlags) clean(ctx context.Context, con console, what, userID string) error {
	store, err := f.open(ctx)
	if err != nil {
		return err
	}
	if !f.DryRun {
		question := fmt.Sprintf("Delete %s in %s?", what, f.where())
		if err := f.confirm(ctx, con, question, ", or --dry-run to see what would be deleted"); err != nil {
			return err
		}
	}
	parts := 0
	run := &cleanup.Cleanup{
		Table: store.table, Live: store.live, Now: con.now,
		Progress: func(s table.Swept) {
			parts++
			con.bar(parts, table.Parts, fmt.Sprintf("%s items, %s to delete, %s deleted", grouped(s.Scanned), grouped(s.Stale), grouped(s.Deleted)))
		},
	}
	a, err := run.Run(ctx, cleanup.Request{UserID: userID, DryRun: f.DryRun})
	con.told()
	if err != nil && ctx.Err() == nil && a.Scanned == 0 { // nothing was done
		return err
	}
	var unprinted error
	if f.JSON {
		unprinted = con.printLine(a)
	} else {
		_, unprinted = fmt.Fprintln(con.out, f.result(a, userID, ctx.Err() != nil))
	}
	if ctx.Err() != nil {
		return errInterrupted
	}
	return cmp.Or(err, unprinted)
}

// result returns for people what was done.
func (f *sweepFlags) result(a cleanup.Answer, userID string, stopped bool) string {
	result := fmt.Sprintf("%d deleted", a.Deleted)
	switch {
	case f.DryRun:
		result = "none deleted because of --dry-run"
	case stopped:
		result += " before Ctrl-C"
	}
	if userID != "" {
		return fmt.Sprintf("%s of %s found, %s, in %s", several(a.Scanned, "item"), userID, result, f.where())
	}
	return fmt.Sprintf("%s of %s read, %d stale, %s, in %s",
		several(a.Scanned, "item"), several(a.Users, "user"), a.Stale, result, f.where())
}
