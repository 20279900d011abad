package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/live/dynamolive"
	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/liveedit/dynamoedit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/strictjson"
)

type repairCommand struct {
	DryRun bool `help:"Show what is wrong, and change nothing."`
	yesFlag
	changeFlags
}

func (repairCommand) Help() string {
	return `The live limits, the grants and the blocks can be damaged by an edit by hand. Guards skip
what they can't read. This command shows what is wrong, writes each damaged item to a file
in this folder, which only you can read, and asks. Then it drops what can't be read and
keeps the rest. Examples:
  guards limits repair --dry-run
  guards limits repair --why "a wrong edit in the AWS console"`
}

// A repaired is one item of the settings with something that can't be read.
type repaired struct {
	Item     string   `json:"item"` // limits or blocks
	Problems []string `json:"problems"`
	Kept     int      `json:"kept"`    // limits, modes, grants or blocks
	Dropped  int      `json:"dropped"` // entries; the rest of a damaged document counts as one
	File     string   `json:"file,omitzero"`

	was   dynamoedit.Item
	after live.Stored
}

func (c *repairCommand) Run(ctx context.Context, env session) error {
	if err := c.open(ctx); err != nil {
		return err
	}
	table, ok := c.store.live.(*dynamoedit.Table)
	if !ok {
		return errors.New("only a table in DynamoDB can be repaired")
	}
	all := []repaired{}
	for _, name := range []string{dynamoedit.Limits, dynamoedit.Blocks} {
		within, cancel := context.WithTimeout(ctx, patience)
		was, err := table.Item(within, name)
		cancel()
		if err != nil {
			return reached(err)
		}
		r, err := inspect(name, was)
		if err != nil {
			return err
		}
		if len(r.Problems) > 0 {
			all = append(all, r)
		}
	}
	if len(all) > 0 && !c.DryRun {
		if err := c.repair(ctx, env, table, all); err != nil {
			return err
		}
	}
	return c.print(env, all)
}

// inspect finds what can't be read in an item of the settings, and what is left.
func inspect(name string, was dynamoedit.Item) (r repaired, err error) {
	r = repaired{Item: name, was: was}
	if was == nil {
		return r, nil
	}
	version, ok := dynamostore.NumberOf(was["version"])
	if !ok || version < 1 {
		r.Problems = append(r.Problems, "the attribute version is not a number of at least 1")
		version = 0
	}
	document := live.Stored{Version: 1, Document: []byte(dynamostore.TextOf(was["document"])), Trials: dynamolive.Beside(was["trials"]), Ends: dynamolive.Beside(was["ends"])}
	var broken error
	if name == dynamoedit.Limits {
		var s live.Settings
		s, broken = document.Settings()
		r.Problems, r.Dropped = append(r.Problems, s.Damaged.Problems...), len(s.Damaged.Problems)
		s.Damaged, r.Kept = live.Damaged{}, len(s.Activities)+len(s.Grants)
		r.after, err = s.Stored(version + 1)
	} else {
		var b live.Blocks
		b, broken = document.Blocks()
		r.Problems, r.Dropped = append(r.Problems, b.Damaged.Problems...), len(b.Damaged.Problems)
		b.Damaged, r.Kept = live.Damaged{}, len(b.All)
		r.after, err = b.Stored(version + 1)
	}
	if e, ok := errors.AsType[*live.DocumentError](broken); ok {
		r.Problems = append(r.Problems, "the document: "+strictjson.Problem(e.Cause))
		r.Dropped++
	}
	return r, err
}

// repair keeps the old items in files, asks, and replaces the items.
func (c *repairCommand) repair(ctx context.Context, env session, table *dynamoedit.Table, all []repaired) error {
	dropped := 0
	for i, r := range all {
		for _, problem := range r.Problems {
			env.note(r.Item + ": " + visible(problem))
		}
		text, err := strictjson.Marshal(r.was)
		if err != nil {
			return err
		}
		all[i].File = fmt.Sprintf("guards-%s-%s.json", r.Item, env.now().UTC().Format("20060102-150405"))
		if err := keep(all[i].File, append(text, '\n')); err != nil {
			return err
		}
		env.note("the old item is in " + all[i].File)
		dropped += r.Dropped
	}
	question := fmt.Sprintf("Drop %s and keep the rest in %s?", entries(dropped)+" that can't be read", c.where())
	if err := c.confirm(ctx, env, question, ", or --dry-run to see what is wrong"); err != nil {
		return err
	}
	for _, r := range all {
		within, cancel := context.WithTimeout(ctx, patience)
		change := liveedit.Change{Version: r.after.Version, At: env.now().UTC().Truncate(time.Millisecond), By: c.by(), Why: c.Why, Op: "repair", Dropped: r.Dropped, Kept: r.Kept}
		err := table.Replace(within, r.Item, r.was, r.after, change)
		cancel()
		if err != nil {
			return reached(err)
		}
	}
	return nil
}

// keep writes a new file that only its owner can read.
func keep(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

func (c *repairCommand) print(env session, all []repaired) error {
	var lines []string
	for _, r := range all {
		if c.DryRun {
			for _, problem := range r.Problems {
				lines = append(lines, r.Item+": "+visible(problem))
			}
			continue
		}
		lines = append(lines, fmt.Sprintf("%s: %d kept, %d dropped", r.Item, r.Kept, r.Dropped))
	}
	switch {
	case len(all) == 0:
		lines = []string{"nothing to repair in " + c.where()}
	case c.DryRun:
		lines = append(lines, "in "+c.where()+"; nothing was changed")
	default:
		lines = append(lines, "in "+c.where()+"; instances follow within 30 s of use")
	}
	return env.print(c.JSON, struct {
		tableName
		Items []repaired `json:"items"`
	}{c.opened, all}, lines...)
}
