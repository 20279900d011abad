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
	"github.com/cric-talk/guards/internal/strictjson"
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

func (c *exportCommand) Run(ctx context.Context, env session) error {
	if err := c.open(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, _, err := liveedit.Read(ctx, c.store.live)
	if err != nil {
		return reached(err)
	}
	env.noteDamagedLimits(s)
	s.Damaged = live.Damaged{}
	text, err := export(s.At(env.now()))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.out, "%s\n", text)
	return err
}

// export returns settings as one document. Its member "ends" tells which of them end by
// themselves. A table has that beside the document.
func export(s live.Settings) ([]byte, error) {
	stored, err := s.Stored(1)
	if err != nil || len(stored.Ends) == 0 {
		return stored.Document, err
	}
	var members map[string]strictjson.Value
	if err := strictjson.Unmarshal(stored.Document, &members); err != nil {
		return nil, err
	}
	members["ends"] = stored.Ends
	return strictjson.Marshal(members, strictjson.Sorted)
}

// imported reads what export returned.
func imported(text []byte) (s live.Settings, err error) {
	var members map[string]strictjson.Value
	if err := strictjson.Unmarshal(text, &members); err != nil || members["ends"] == nil {
		return live.Parse(text) // it tells what is wrong
	}
	var ends live.Ends
	if err := strictjson.Unmarshal(members["ends"], &ends, strictjson.KnownMembers); err != nil {
		return s, errors.New("ends: " + strictjson.Problem(err))
	}
	delete(members, "ends")
	if text, err = strictjson.Marshal(members, strictjson.Sorted); err != nil {
		return s, err
	}
	s, err = live.Parse(text)
	s.Ends = ends
	return s, err
}

type importCommand struct {
	File string `arg:"" help:"What guards limits export has written; - for standard input."`
	yesFlag
	changeFlags
}

func (importCommand) Help() string {
	return `The live limits, the modes and the grants of the file replace those of the table. Each
must fit the limits of the code, and what has ended is left out. Examples:
  guards limits import limits.json --why "moved from the old region"
  guards limits import - --yes < limits.json`
}

func (c *importCommand) Run(ctx context.Context, env session) error {
	text, err := c.read()
	if err != nil {
		return err
	}
	next, err := imported(text)
	if err != nil {
		return err
	}
	if len(next.Damaged.Problems) > 0 {
		return errors.New(c.File + ": " + strings.Join(next.Damaged.Problems, "; "))
	}
	for _, g := range next.Grants {
		if err := liveedit.ValidateGrant(g); err != nil {
			return err
		}
	}
	next = next.At(env.now())
	next.Grants = liveedit.GrantsAt(next, env.now())
	if err := c.open(ctx); err != nil {
		return err
	}
	question := fmt.Sprintf("Replace all live limits, modes and grants in %s by %s?", c.where(), contents(next))
	if err := c.confirm(ctx, env, question, ""); err != nil {
		return err
	}
	change := liveedit.Change{Op: "import", Kept: len(next.Activities) + len(next.Grants)}
	r, err := c.edit(ctx, env, change, func(d liveedit.Draft) (liveedit.Draft, error) {
		if n := len(d.Damaged.Problems); n > 0 {
			return d, errors.New(entries(n) + " of the table can't be read and would be lost: run guards limits repair first, which keeps them in a file")
		}
		d.Settings = next
		return d, nil
	})
	if err != nil {
		return err
	}
	return c.print(env, r, contents(next)+" instead of "+contents(r.before))
}

func (c *importCommand) read() ([]byte, error) {
	if c.File == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(c.File)
}

// contents returns what settings have, for people.
func contents(s live.Settings) string {
	return fmt.Sprintf("%s and %s", plural(int64(len(s.Activities)), "change"), plural(int64(len(s.Grants)), "grant"))
}
