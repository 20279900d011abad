package main

import (
	"context"
	"fmt"

	"github.com/cric-talk/guards/internal/cleanup"
	"github.com/cric-talk/guards/internal/table"
)

// sweepFlags belong to commands that delete as the function cleanup does.
type sweepFlags struct {
	JSON bool `name:"json" help:"Print the answer as JSON."`
	questionFlags
	tableFlags
}

// clean asks whether to delete what, and runs cleanup. A terminal shows the
// progress. If userID is not empty, clean deletes that user; otherwise it
// deletes what has expired.
func (f *sweepFlags) clean(ctx context.Context, con console, what, userID string) error {
	store, err := f.open(ctx)
	if err != nil {
		return err
	}
	if err := f.confirm(ctx, con, fmt.Sprintf("Delete %s in %s?", what, f.where())); err != nil {
		return err
	}
	parts := 0
	run := &cleanup.Cleanup{
		Table: store.table, Live: store.live, Now: con.now,
		Progress: func(s table.Swept) {
			soFar := fmt.Sprintf("%s items, %s to delete, %s deleted", grouped(s.Scanned), grouped(s.Stale), grouped(s.Deleted))
			if userID != "" { // the number of a user's items is unknown
				con.tell(soFar)
				return
			}
			parts++
			con.bar(parts, table.Parts, soFar)
		},
	}
	a, err := run.Run(ctx, cleanup.Request{UserID: userID, DryRun: f.DryRun})
	con.told()
	if err != nil {
		return err
	}
	if f.JSON {
		return con.printLine(a)
	}
	result := fmt.Sprintf("%d deleted", a.Deleted)
	if f.DryRun {
		result = "none deleted because of --dry-run"
	}
	_, err = fmt.Fprintf(con.out, "%d items of %d users read, %d to delete, %s\n", a.Scanned, a.Users, a.Stale, result)
	return err
}
