package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/liveedit"
)

type exportCommand struct {
	JSON bool `name:"json" help:"As without it: the output is always JSON."`
	tableFlags
}

func (exportCommand) Help() string {
	return `The output has the live limits, the modes and the grants, with who set them. It names
users, so keep it as you keep the table. Blocks are not part of it. Examples:
  guards limits export > limits.json
  guards limits export --table dev-rateLimit | guards limits import - --yes`
}

func (c *exportCommand) Run(ctx context.Context, con session) error {
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, _, err := liveedit.Read(ctx, store.live)
	if err != nil {
		return reached(err)
	}
	con.noteDamagedLimits(s)
	s.Damaged = live.Damaged{}
	document, err := s.Document()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(con.out, "%s\n", document)
	return err
}

type importCommand struct {
	File string `arg:"" help:"What guards limits export has written; - for standard input."`
	yesFlag
	changeFlags
}

func (importCommand) Help() string {
	return `The live limits, the modes and the grants of the file replace those of the table. Each
must fit the limits of the code, and grants that have ended are left out. Examples:
  guards limits import limits.json --why "moved from the old region"
  guards limits import - --yes < limits.json`
}

func (c *importCommand) Run(ctx context.Context, con session) error {
	text, err := c.read()
	if err != nil {
		return err
	}
	next, err := live.Parse(text)
	if err != nil {
		return err
	}
	if next.Damaged.Len() > 0 {
		return errors.New(c.File + ": " + strings.Join(next.Damaged.Problems, "; "))
	}
	for _, g := range next.Grants {
		if err := liveedit.ValidateGrant(g); err != nil {
			return err
		}
	}
	next.Grants = liveedit.GrantsAt(next, con.now())
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	question := fmt.Sprintf("Replace all live limits, modes and grants in %s by %s?", c.where(), contents(next))
	if err := c.confirm(ctx, con, question, ""); err != nil {
		return err
	}
	change := liveedit.Change{Op: "import", Kept: len(next.Activities) + len(next.Grants)}
	r, err := c.edit(ctx, con, store, change, func(d liveedit.Draft) (liveedit.Draft, error) {
		d.Settings = next
		return d, nil
	})
	if err != nil {
		return err
	}
	return c.print(con, r, contents(next)+" instead of "+contents(r.before))
}

func (c *importCommand) read() ([]byte, error) {
	if c.File == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(c.File)
}

// contents returns what settings have, for people.
func contents(s live.Settings) string {
	return fmt.Sprintf("%s and %s", several(int64(len(s.Activities)), "change"), several(int64(len(s.Grants)), "grant"))
}
