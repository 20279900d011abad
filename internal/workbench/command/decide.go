package command

import (
	"context"
	"errors"

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// decide asks a guard while a person waits for the answer.
func decide(ctx context.Context, h *guard.Handler, r guard.Request) (guard.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return h.Decide(ctx, r)
}

// follow reads the live limits. Without a table it returns nil, which follows
// nothing.
func (c console) follow(ctx context.Context, settings live.Table) (*live.Follower, error) {
	if settings == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	f := &live.Follower{Table: settings, Guards: c.guards}
	if err := f.Read(ctx); err != nil {
		return nil, reached(err)
	}
	return f, nil
}

// reached turns a failure to reach the table into [input.Unavailable], which
// ends the command with its own exit status. It returns other errors unchanged.
func reached(err error) error {
	if _, ok := errors.AsType[*ratelimit.StoreError](err); ok {
		return input.NewUnavailable(err)
	}
	return err
}
