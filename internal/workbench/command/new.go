package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/workbench/scaffold"
)

type newCommand struct {
	Words []string `arg:"" name:"guard> <activity> <limit" help:"A new guard such as photos-guard, what its users do, such as upload_photo, and the limit, such as 5/1m. With --guard, only the activity and the limit."`
	Guard string   `name:"guard" placeholder:"NAME" help:"Add the activity to an existing guard."`
	optionFlags
	Dir    string `default:"." placeholder:"FOLDER" help:"The project, or a folder in it. Default: the current folder."`
	DryRun bool   `help:"Show the changes, and write nothing."`
	JSON   bool   `name:"json" help:"Print one JSON document."`
}

func (newCommand) Help() string {
	return `The command changes the page of limits, limits.go or limits.json, and the
generated files. See the changes with git diff, then run make test. An installed
program is out of date after a change of limits.go: write go run ./cmd/guards in
place of guards. Quote a limit that contains a space. Examples:
  guards new photos-guard upload_photo 5/1m
  guards new photos-guard upload_photo 5/1m --tier premium=20/1m
  guards new sms-guard send_code "minute: bucket 1/1m, day: 10/1d"
  guards new --guard {guard} do_more 5/1m
  guards new --guard {guard} write_more "more: 10/1m, writes: 100/1h" --group content
  guards new ai-guard use_tokens 100000/1d --hold
  guards new chat-guard write 10/1m --subject room=600/1m --subject "tenant?=50000/day"
  guards new photos-guard upload_photo 5/1m --dry-run`
}

// An addition is what the command did, as JSON.
type addition struct {
	Guard    string        `json:"guard"`
	Activity string        `json:"activity"`
	Limit    policy.Policy `json:"limit"`
	Tiers    limits.Tiers  `json:"tiers,omitempty"`
	Group    string        `json:"group,omitzero"`
	Hold     bool          `json:"hold,omitzero"`
	Subjects []subject     `json:"subjects,omitempty"`
	Checkout string        `json:"checkout"`
	DryRun   bool          `json:"dryRun"`
	Files    []changedFile `json:"files"`
}

func (c *newCommand) Run(ctx context.Context, env session) (err error) {
	r, err := c.request()
	if err != nil {
		return err
	}
	project, err := env.openProject(c.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, project.Close()) }()
	if err := c.known(env.guards, r); err != nil {
		return err
	}
	added, changes, err := project.Add(r)
	if err != nil {
		return err
	}
	if !c.DryRun {
		if err := env.write(ctx, project, changes); err != nil {
			return err
		}
	}
	a := addition{r.Guard, added.Name, added.Limit, added.Tiers, added.Group, added.Hold, subjectsOf(added), project.Dir, c.DryRun, changedFiles(changes, c.DryRun)}
	if c.JSON {
		return env.printJSON(a)
	}
	if err := env.printChanges(a.Files); err != nil {
		return err
	}
	c.next(env, r, added)
	return nil
}

// errWords means that new has too few or too many words.
var errWords = errors.New("want a guard, an activity and a limit; with --guard, an activity and a limit")

func (c *newCommand) request() (r scaffold.Request, err error) {
	words := c.Words
	if c.Guard != "" {
		words = append([]string{c.Guard}, words...)
	}
	if len(words) != 3 {
		return r, hint{errWords, "see guards new --help"}
	}
	r = scaffold.Request{Guard: words[0], New: c.Guard == ""}
	r.Activity, err = c.activity(words[1], words[2])
	return r, err
}

// known refuses a guard that --guard misspells.
func (c *newCommand) known(guards limits.Guards, r scaffold.Request) error {
	var names []string
	for _, g := range guards {
		names = append(names, g.Name)
	}
	if r.New || slices.Contains(names, r.Guard) {
		return nil
	}
	if meant, ok := nearest(r.Guard, names); ok {
		return fmt.Errorf("there is no guard %q, did you mean %s?", r.Guard, meant)
	}
	return hint{fmt.Errorf("there is no guard %q, want one of %s", r.Guard, strings.Join(names, ", ")), "leave out --guard to make a new guard"}
}

func (c *newCommand) next(env session, r scaffold.Request, a limits.Activity) {
	if c.DryRun {
		env.note("nothing was written, because of --dry-run")
		return
	}
	if names := namesOf(countedIn(env.guards, a.Group)); len(names) > 0 {
		env.note("it counts in the group " + a.Group + ", together with " + strings.Join(names, ", "))
	} else if a.Group != "" {
		env.note("the group " + a.Group + " is new: no other activity is in it yet")
	}
	env.note("next, try it: " + env.itself() + " check " + a.Name + " --user u1" + scaffold.Options(a))
	if slices.ContainsFunc(a.Parts(), func(s limits.Subject) bool { return a.WithMax(s.Name) != nil }) {
		env.note("an app can give another number up to max, as limit in its request; --limit does this here")
	}
	if env.pageFile == "" {
		env.note("then run make test, and deploy")
	}
	g, _ := env.guards.Named(r.Guard)
	_, taken := env.guards.Queued()
	if a.Limit.Queues() && !g.DelayedQueue && (taken || !r.New) {
		env.note("a delayed job of this guard gets a time, but no queue takes it: see https://github.com/cric-talk/guards/blob/main/docs/delayed-jobs.md")
	}
}
