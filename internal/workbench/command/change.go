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
}

// edit changes the settings. It returns a report, and the settings before and
// after the change. The text of what describes the change in the history.
func (f *changeFlags) edit(ctx context.Context, con console, s store, what string, edit func(live.Settings) (live.Settings, error)) (r report, before, after live.Settings, err error) {
	if f.By == "" {
		if u, err := user.Current(); err == nil {
			f.By = u.Username
		}
	}
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c := live.Change{At: con.now(), By: f.By, What: what, Why: f.Why}
	asked := false // whether the table was asked to make the change
	err = live.Edit(within, s.live, con.guards, c, func(now live.Settings) (live.Settings, error) {
		if before, err = copied(now); err != nil {
			return now, err
		}
		after, err = edit(now)
		asked = err == nil
		return after, err
	})
	if ctx.Err() != nil && asked {
		con.note("stopped: the change may be made or not; see guards limits history")
	}
	r = report{What: what, At: c.At.UTC(), By: f.By, Why: f.Why, tableName: f.named()}
	return r, before, after, reached(err)
}

// copied returns a copy of s that an edit of s does not change.
func copied(s live.Settings) (live.Settings, error) {
	document, err := s.Document()
	if err != nil {
		return s, err
	}
	return live.Parse(document)
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
