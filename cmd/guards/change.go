package main

import (
	"context"
	"fmt"
	"os/user"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
)

// changeFlags belong to commands that change the live limits.
type changeFlags struct {
	Why string `placeholder:"TEXT" help:"The reason, for the history."`
	By  string `placeholder:"NAME" help:"Who makes the change. Default: the name of the user who runs the command."`
	tableFlags
}

// edit changes the settings and prints when the change takes effect. What
// describes the change in the history.
func (f *changeFlags) edit(ctx context.Context, con console, what string, edit func(live.Settings) (live.Settings, error)) error {
	store, err := f.open(ctx)
	if err != nil {
		return err
	}
	if f.By == "" {
		if u, err := user.Current(); err == nil {
			f.By = u.Username
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c := live.Change{At: con.now(), By: f.By, What: what, Why: f.Why}
	if err := live.Edit(ctx, store.live, limits.All, c, edit); err != nil {
		return reached(err)
	}
	_, err = fmt.Fprintln(con.out, what+": instances follow within 30 s of use")
	return err
}
