package command

import (
	"context"
	"fmt"
	"os/user"
	"time"

	"github.com/cric-talk/guards/internal/live"
)

// changeFlags belong to commands that change the live limits.
type changeFlags struct {
	Why  string `placeholder:"TEXT" help:"Why you make this change, for the history."`
	By   string `placeholder:"NAME" help:"Who makes the change. Default: the name of the user who runs the command."`
	JSON bool   `name:"json" help:"Print one JSON document."`
	tableFlags
}

// A report is what a command prints after it changed the live limits.
type report struct {
	What     string       `json:"what"`
	UserID   string       `json:"userId,omitzero"`
	Changes  []change     `json:"changes,omitempty"`
	Granted  *live.Grant  `json:"granted,omitzero"`
	Replaced []live.Grant `json:"replaced,omitempty"` // by the grant
	Revoked  []live.Grant `json:"revoked,omitempty"`
	At       time.Time    `json:"at"`
	By       string       `json:"by"`
	Why      string       `json:"why,omitzero"`
	tableName

	before, after live.Settings
}

// edit changes the settings and records c, whose time and names it fills in.
func (f *changeFlags) edit(ctx context.Context, con console, s store, c live.Change, edit func(live.Settings) (live.Settings, error)) (r report, err error) {
	if f.By == "" {
		if u, err := user.Current(); err == nil {
			f.By = u.Username
		}
	}
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c.At, c.By, c.Why = con.now(), f.By, f.Why
	r = report{What: sentence(c), At: c.At.UTC(), By: f.By, Why: f.Why, tableName: f.named()}
	asked := false // whether the table was asked to make the change
	err = live.Edit(within, s.live, con.guards, c, func(now live.Settings) (live.Settings, error) {
		r.before = now
		r.after, err = edit(now)
		asked = err == nil
		return r.after, err
	})
	if ctx.Err() != nil && asked {
		con.note("stopped: the change may be made or not; see guards limits history")
	}
	return r, reached(err)
}

// print writes the report as JSON if --json is given. Otherwise it writes these
// lines, then the table and when instances follow.
func (f *changeFlags) print(con console, r report, lines ...string) error {
	if f.JSON {
		return con.printLine(r)
	}
	for _, line := range append(lines, "in "+f.where()+"; instances follow within 30 s of use") {
		if _, err := fmt.Fprintln(con.out, line); err != nil {
			return err
		}
	}
	return nil
}

// printChanges writes what changed of an activity, or otherwise the text of none.
func (f *changeFlags) printChanges(con console, r report, activity, none string) error {
	r.Changes = changesOf(con.viewOf(r.before), con.viewOf(r.after), activity)
	var lines []string
	for _, c := range r.Changes {
		lines = append(lines, c.String())
	}
	if len(lines) == 0 {
		lines = []string{none}
	}
	return f.print(con, r, lines...)
}
