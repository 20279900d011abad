package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cric-talk/guards/internal/workbench/scaffold"
)

type generateCommand struct {
	Check   bool   `xor:"check" help:"Write nothing. If a file is stale, the exit status is 2."`
	Shorten bool   `xor:"check" help:"In limits.go, write \"5/1m\" in place of guards.Limit(\"5/1m\"), which older versions needed."`
	Dir     string `default:"." placeholder:"FOLDER" help:"The project, or a folder in it. Default: the current folder."`
	JSON    bool   `name:"json" help:"Print one JSON document."`
}

func (generateCommand) Help() string {
	return `The command writes what follows from the page of limits, limits.go or
limits.json: the parts of template.yaml, the table of limits, the lists of
activities for the app's client and, in a project in Go, the missing folders of
functions and a test of the limits. It removes the folder of a guard that is
gone, if nobody changed a file in it. In the template and in a page with the
table, it replaces only the lines between "begin generated" and "end generated".
The project's file template.extra.yaml changes these lines of the template: its
maps are merged by key, other values replace, null removes. The command prints
what it changed, and names what an older version needed and can go now. Examples:
  go run ./cmd/guards generate
  go run ./cmd/guards generate --check
  go run ./cmd/guards generate --shorten`
}

func (c *generateCommand) Run(ctx context.Context, env session) (err error) {
	project, err := env.openProject(c.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, project.Close()) }()
	changes, err := project.Stale()
	var extra, older []string
	if err == nil && c.Shorten {
		var shortened []scaffold.Change
		shortened, err = project.Shortened()
		changes = append(changes, shortened...)
	}
	if err == nil && !c.Check {
		extra, err = project.Extra()
	}
	if err == nil && !c.Check {
		err = env.write(ctx, project, changes)
	}
	if err == nil {
		older, err = project.Older()
	}
	if err != nil {
		return err
	}
	files := changedFiles(changes, false)
	switch {
	case c.JSON:
		err = env.printJSON(struct {
			Checkout string        `json:"checkout"`
			Check    bool          `json:"check"`
			Files    []changedFile `json:"files"`
			Extra    []string      `json:"extra,omitempty"` // what template.extra.yaml changes
		}{project.Dir, c.Check, files, extra})
	case len(files) == 0:
		env.note("nothing is stale")
	default:
		err = env.printChanges(files)
	}
	for _, note := range older {
		env.note(note)
	}
	if err == nil && !c.JSON && len(extra) > 0 {
		_, err = fmt.Fprintf(env.out, "template.extra.yaml, in what is generated:\n  %s\n", strings.Join(extra, "\n  "))
	}
	if err == nil && c.Check && len(files) > 0 {
		err = hint{errors.New("stale: " + plural(int64(len(files)), "file")), "run " + env.itself() + " generate"}
	}
	return err
}
