package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cric-talk/guards/internal/cleanup"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/strictjson"
	"github.com/cric-talk/guards/internal/table"
)

type cleanupCommand struct{ sweepFlags }

func (cleanupCommand) Help() string {
	return `Examples:
  guards cleanup --dry-run
  guards cleanup --yes --json`
}

// Run sweeps the table as the function cleanup does.
func (c *cleanupCommand) Run(ctx context.Context, env session) error {
	return c.clean(ctx, env, "everything that has expired", "", false)
}

// sweepFlags belong to commands that delete as the function cleanup does.
type sweepFlags struct {
	JSON   bool `name:"json" help:"Print the answer as JSON."`
	DryRun bool `help:"Delete nothing. Show how much would be deleted."`
	yesFlag
	tableFlags
}

// clean asks for confirmation and runs cleanup. The question contains the text
// of what. A terminal shows the progress of a sweep. If key is not empty, clean deletes the
// user or the subject with this key, and lifts its blocks unless keepBlocks is set. Otherwise
// it deletes what has expired. If ctx ends or cleanup fails, clean prints what was done until
// then.
func (f *sweepFlags) clean(ctx context.Context, env session, what, key string, keepBlocks bool) error {
	if err := f.open(ctx); err != nil {
		return err
	}
	if !f.DryRun {
		question := fmt.Sprintf("Delete %s in %s?", what, f.where())
		if err := f.confirm(ctx, env, question, ", or --dry-run to see what would be deleted"); err != nil {
			return err
		}
	}
	grants, blocks, err := ownedBy(ctx, env, f.store, key)
	if err != nil {
		return err
	}
	if keepBlocks {
		blocks = 0
	}
	parts := 0
	run := &cleanup.Cleanup{
		Table: f.store.table, Live: f.store.live, Guards: env.guards, Now: env.now,
		Progress: func(s table.Swept) {
			parts++
			env.bar(parts, table.Parts, fmt.Sprintf("%s items, %s to delete, %s deleted", grouped(s.Scanned), grouped(s.Stale), grouped(s.Deleted)))
		},
	}
	var unreadable unreadItems
	if f.DryRun && key == "" {
		run.Each = unreadable.each(env)
	}
	a, err := run.Run(ctx, cleanup.Request{UserID: key, DryRun: f.DryRun, KeepBlocks: keepBlocks})
	env.clearLine()
	if err != nil && ctx.Err() == nil && a.Scanned == 0 { // nothing was done
		return err
	}
	e := erased{a, grants, blocks, unreadable}
	var unprinted error
	if f.JSON {
		unprinted = env.printLine(e)
	} else {
		var t textTable
		t.unreadable(unreadable)
		unprinted = t.below(env, f.result(e, key, ctx.Err() != nil))
	}
	if ctx.Err() != nil {
		return errInterrupted
	}
	return cmp.Or(err, unprinted)
}

// An erased is an answer and how many grants and blocks the user or the subject had. If the
// answer is finished, they are gone too, except in a dry run.
type erased struct {
	cleanup.Answer
	Grants int64 `json:"grants,omitzero"`
	Blocks int64 `json:"blocks,omitzero"`

	Unreadable unreadItems `json:"unreadable,omitempty"` // in a dry run of a sweep
}

// ownedBy returns how many grants and blocks a user or a subject has; none for an empty key.
// A document that is unreadable has none. The erasure reports that.
func ownedBy(ctx context.Context, env session, s store, key string) (grants, blocks int64, err error) {
	if key == "" {
		return 0, 0, nil
	}
	settings, _, err := liveedit.Read(ctx, s.live)
	if err == nil || isDamaged(err) {
		_, n := liveedit.Draft{Settings: settings}.Revoke(key)
		grants = int64(n)
		var all live.Blocks
		all, _, err = liveedit.ReadBlocks(ctx, s.live)
		for _, b := range liveedit.BlocksAt(all, env.now()) {
			if b.UserID == key {
				blocks++
			}
		}
		quoted, _ := strictjson.AppendQuote(nil, key) // the key is ASCII
		left := slices.DeleteFunc(slices.Concat(settings.Damaged.Grants, all.Damaged.Blocks), func(entry strictjson.Value) bool {
			return !bytes.Contains(entry, quoted)
		})
		if len(left) > 0 {
			env.note(entries(len(left)) + " that can't be read has the id, and an erasure leaves it: see guards limits repair")
		}
	}
	if isDamaged(err) {
		err = nil
	}
	return grants, blocks, reached(err)
}

// isDamaged reports whether a document of the live settings can't be read.
func isDamaged(err error) bool {
	_, damaged := errors.AsType[*live.DocumentError](err)
	return damaged
}

// result returns for people what was done.
func (f *sweepFlags) result(a erased, key string, stopped bool) string {
	found := plural(a.Scanned, "item")
	if a.Grants > 0 {
		found += " and " + plural(a.Grants, "grant")
	}
	if a.Blocks > 0 {
		found += " and " + plural(a.Blocks, "block")
	}
	if a.Finished && !f.DryRun {
		a.Deleted += a.Grants + a.Blocks
	}
	result := grouped(a.Deleted) + " deleted"
	switch {
	case f.DryRun:
		result = "none deleted because of --dry-run"
	case stopped: // the deletes that were on their way may be done or not
		result = "at least " + result + " before the command was stopped"
	}
	if key != "" {
		return fmt.Sprintf("%s of %s found, %s, in %s", found, shown(key), result, f.where())
	}
	return fmt.Sprintf("%s of %s read, %s stale, %s, in %s",
		found, owners(a.Users, a.Subjects), grouped(a.Stale), result, f.where())
}
