package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/liveedit"
)

type blockCommand struct {
	ownerFlags
	List     bool   `required:"" xor:"whose" help:"Show who is blocked, and change nothing."`
	Activity string `placeholder:"A" help:"Block this activity only. Default: all activities."`
	Until    string `placeholder:"WHEN" help:"The last day (UTC), such as 2026-12-31, the time it ends, such as 2026-12-31T12:00:00Z, or how long it lasts, such as 7d or 12h."`
	Reason   string `placeholder:"TEXT" help:"Why, in at most 60 bytes. The user does not see it."`
	changeFlags
}

func (blockCommand) Help() string {
	return `Guards refuse a blocked user or subject at once, without a request to the table: whatever
the limit, the tier or the role is, also if the activity has no limit. A new block of the
same user and activity replaces the old one. It ends by itself. Guards of a version that
has no blocks ignore them. Examples:
  guards block --user u1 --until 7d --reason spam
  guards block --user u1 --activity {activity} --until 12h --reason "too many reports"
  guards block --subject {subject}={subject}1 --until 1h --reason "an attack"
  guards block --list`
}

func (c *blockCommand) Run(ctx context.Context, env session) error {
	if c.List {
		return c.list(ctx, env)
	}
	if c.Until == "" || c.Reason == "" {
		return errors.New("a block needs --until and --reason")
	}
	until, err := parseUntil(c.Until, env.now())
	if err != nil {
		return err
	}
	key, err := c.keyInOne(env.guards)
	if err == nil {
		err = sends(env, c.Activity, subjectOf(key))
	}
	b := live.Block{UserID: key, Activity: c.Activity, Until: until, Reason: c.Reason}
	if err == nil {
		err = liveedit.ValidateBlock(b)
	}
	if err != nil {
		return err
	}
	for name, id := range c.Subject {
		env.noteAddress(name, id)
	}
	r, err := c.changeBlocks(ctx, env, "block", func(ctx context.Context, by liveedit.Change) error {
		return liveedit.Block(ctx, c.store.live, by, b)
	})
	if err != nil {
		return err
	}
	one := blockOf(b)
	r.owner, r.Blocked = one.owner, &one
	return c.print(env, r, one.String())
}

// list prints who is blocked.
func (c *blockCommand) list(ctx context.Context, env session) error {
	if c.Activity != "" || c.Until != "" || c.Reason != "" {
		return errors.New("--list goes alone")
	}
	if err := c.open(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	blocks, _, err := liveedit.ReadBlocks(ctx, c.store.live)
	if err := env.readOn("blocks", err); err != nil {
		return err
	}
	env.noteDamaged(blocks)
	list := blocksOf(blocks, env.now())
	if c.JSON {
		return env.printLine(struct {
			tableName
			Blocks  []blocked `json:"blocks"`
			Damaged int       `json:"damaged,omitzero"`
		}{c.opened, list, len(blocks.Damaged.Blocks)})
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(env.out, "nobody is blocked in "+c.where())
		return err
	}
	var t textTable
	t.blocks(list)
	return t.below(env, "blocked in "+c.where()+":")
}

// sends returns an error if the code has no such activity, or if the activity does not have
// the subject. Empty names mean all activities, and a user.
func sends(env session, activity, subject string) error {
	if activity == "" {
		return nil
	}
	_, a, err := env.find(activity)
	if err != nil || a.Has(subject) || subject == "" {
		return err
	}
	var with []string
	for _, other := range env.guards.All {
		if other.Has(subject) {
			with = append(with, other.Name)
		}
	}
	return input.Invalid("--activity", input.Show(activity), "one that names a "+subject+": "+strings.Join(with, ", "))
}

type unblockCommand struct {
	ownerFlags
	Activity string `placeholder:"A" help:"Lift only the block of this activity. Default: all blocks of the user."`
	changeFlags
}

func (unblockCommand) Help() string {
	return `Examples:
  guards unblock --user u1 --why "it was a mistake"
  guards unblock --subject {subject}={subject}1`
}

// Run lifts blocks, also of a subject or an activity that the code no longer has.
func (c *unblockCommand) Run(ctx context.Context, env session) error {
	key, err := c.key()
	if err != nil {
		return err
	}
	var lifted []live.Block
	r, err := c.changeBlocks(ctx, env, "unblock", func(ctx context.Context, by liveedit.Change) (err error) {
		lifted, err = liveedit.Unblock(ctx, c.store.live, by, key, c.Activity)
		if err == nil && len(lifted) == 0 {
			err = errors.New(strings.TrimSpace(shown(key)+" is not blocked "+fromOne(c.Activity)) + " in " + c.where())
		}
		return err
	})
	if err != nil {
		return err
	}
	r.owner = ownerOf(key)
	var lines []string
	for _, b := range lifted {
		one := blockOf(b)
		r.Lifted = append(r.Lifted, one)
		lines = append(lines, shown(key)+" is no longer blocked "+one.from())
	}
	return c.print(env, r, lines...)
}

// A blocked is a block as commands print it.
type blocked struct {
	owner
	Activity string    `json:"activity,omitzero"` // empty: all
	Until    time.Time `json:"until"`
	Reason   string    `json:"reason"`
	stamp
}

// blockOf returns a block as commands print it.
func blockOf(b live.Block) blocked {
	return blocked{ownerOf(b.UserID), b.Activity, b.Until, b.Reason, stampOf(b.Set, "")}
}

// blocksOf returns the blocks in force, the first one to end first. It never returns nil.
func blocksOf(b live.Blocks, now time.Time) []blocked {
	list := []blocked{}
	for _, one := range liveedit.BlocksAt(b, now) {
		list = append(list, blockOf(one))
	}
	return list
}

// from names what b blocks, for people.
func (b blocked) from() string {
	if b.Activity == "" {
		return "from all activities"
	}
	return fromOne(b.Activity)
}

func fromOne(activity string) string {
	if activity == "" {
		return ""
	}
	return "from " + activity
}

func (b blocked) String() string {
	return shown(b.key()) + " is blocked " + b.from() + untilWhen(b.Until)
}

// blocks adds the blocks to a table.
func (t *textTable) blocks(list []blocked) {
	if len(list) > 0 {
		t.head("BLOCKED", "ACTIVITY", "UNTIL", "SINCE", "BY", "REASON")
		t.needs("BLOCKED", "ACTIVITY", "UNTIL", "REASON")
	}
	for _, b := range list {
		activity := b.Activity
		if activity == "" {
			activity = "all"
		}
		t.row(append(append([]string{shown(b.key()), activity, b.Until.Format(time.RFC3339)}, b.cells()...), b.Reason)...)
	}
}

// noteDamaged tells how many entries of the document of blocks can't be read.
func (c session) noteDamaged(b live.Blocks) {
	if n := len(b.Damaged.Blocks); n > 0 {
		c.note(entries(n) + " of the blocks can't be read and block nobody: see guards limits repair --dry-run")
	}
}

// noteDamagedLimits tells how many entries of the document of live limits can't be read.
func (c session) noteDamagedLimits(s live.Settings) {
	if n := len(s.Damaged.Problems); n > 0 {
		c.note(entries(n) + " of the live limits and grants can't be read, so guards skip them: see guards limits repair --dry-run")
	}
}

// entries returns a number of entries in words.
func entries(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return grouped(int64(n)) + " entries"
}

// readOn tells that a document is damaged. Then commands that only read go on. It returns
// other errors.
func (c session) readOn(what string, err error) error {
	if err == nil || !isDamaged(err) {
		return reached(err)
	}
	c.note("the document of the " + what + " is damaged. Instances keep what they know of it, and new ones know nothing: see guards limits repair --dry-run")
	return nil
}

// changeBlocks opens the table and lets do change its blocks. The report has neither an owner nor
// the blocks.
func (f *changeFlags) changeBlocks(
	ctx context.Context, env session, op string, do func(context.Context, liveedit.Change) error,
) (report, error) {
	if err := f.open(ctx); err != nil {
		return report{}, err
	}
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	by := liveedit.Change{At: env.now(), By: f.by(), Why: f.Why}
	err := do(within, by)
	if ctx.Err() != nil {
		env.note("stopped: the change may be made or not; see guards block --list")
	}
	return f.report(op, by), reached(err)
}
