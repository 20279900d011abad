// Package cleanup is the function that deletes what no longer counts: every few
// minutes, or on an operator's word everything of one user.
package cleanup

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/table"
)

// Cleanup sweeps a table.
type Cleanup struct {
	Table Table
	Now   func() time.Time // nil: time.Now
	Log   *slog.Logger     // a line for each run; nil: none

	Metrics   io.Writer // a line for each sweep that deletes; nil: none
	Namespace string    // of its metrics

	// Forget drops what operators have granted to a user, when everything of that
	// user is erased. Nil: there is nothing of the kind.
	Forget func(ctx context.Context, userID string) error

	Progress func(table.Swept) // as table.Sweep has it
}

// A Table is what there is to clean. An error, if any, comes with what was done
// until then.
type Table interface {
	// Sweep deletes what has expired. Its memory does not grow with the table.
	// It begins at random, so that what one sweep has no time for another reaches.
	Sweep(context.Context, table.Sweep) (table.Swept, error)

	// Erase deletes everything that is kept of a user, expired or not.
	Erase(ctx context.Context, userID string, s table.Sweep) (table.Swept, error)
}

// An Answer is what a run found and did.
type Answer struct {
	Scanned    int64 `json:"scanned"`  // items looked at
	Stale      int64 `json:"stale"`    // of them, how many have expired; erasing a user, all
	Deleted    int64 `json:"deleted"`  // of them, how many are known to have gone
	Users      int64 `json:"users"`    // whose items were looked at
	Finished   bool  `json:"finished"` // everything was looked at
	DurationMs int64 `json:"durationMs"`
}

// Invoke implements lambda.Handler. Its errors are *input.ValidationError and
// *input.Unavailable.
func (c *Cleanup) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	r, err := decode(payload)
	if err != nil {
		return nil, err
	}
	a, err := c.Run(ctx, r)
	if err != nil {
		return nil, err
	}
	return json.Marshal(a)
}

// Run does what r asks, and stops in good order before ctx's deadline.
func (c *Cleanup) Run(ctx context.Context, r Request) (Answer, error) {
	began := time.Now()
	sweep := table.Sweep{Now: c.now().Unix(), DryRun: r.DryRun, Progress: c.Progress}
	if by, ok := ctx.Deadline(); ok {
		spare := margin(by.Sub(began))
		sweep.Until = by.Add(-spare)
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, by.Add(-spare/2)) // for a request that hangs
		defer cancel()
	}
	var swept table.Swept
	var err error
	if r.UserID != "" {
		swept, err = c.Table.Erase(ctx, r.UserID, sweep)
		if err == nil && !r.DryRun && c.Forget != nil {
			err = c.Forget(ctx, r.UserID)
		}
	} else {
		swept, err = c.Table.Sweep(ctx, sweep)
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && (err == nil || errors.Is(err, context.DeadlineExceeded)) {
		swept.Finished, err = false, nil // out of time is not a failure: the next run goes on
	}
	a := Answer{
		Scanned: swept.Scanned, Stale: swept.Stale, Deleted: swept.Deleted, Users: swept.Users,
		Finished: swept.Finished, DurationMs: time.Since(began).Milliseconds(),
	}
	c.record(ctx, r, a, err)
	if r.UserID == "" && !r.DryRun {
		c.measure(a)
	}
	if err != nil {
		return a, input.NewUnavailable(err)
	}
	return a, nil
}

// margin is what a run keeps of its time: half for the requests under way, half
// for its answer.
func margin(left time.Duration) time.Duration {
	return min(max(left/10, time.Second), 10*time.Second)
}

func (c *Cleanup) now() time.Time {
	if c.Now == nil {
		return time.Now()
	}
	return c.Now()
}

func (c *Cleanup) record(ctx context.Context, r Request, a Answer, err error) {
	if c.Log == nil {
		return
	}
	attrs := []slog.Attr{
		slog.Bool("oneUser", r.UserID != ""), slog.Bool("dryRun", r.DryRun),
		slog.Int64("scanned", a.Scanned), slog.Int64("stale", a.Stale), slog.Int64("deleted", a.Deleted),
		slog.Int64("users", a.Users), slog.Bool("finished", a.Finished), slog.Int64("durationMs", a.DurationMs),
	}
	if err != nil {
		c.Log.LogAttrs(ctx, slog.LevelError, "cleanup failed", append(attrs, slog.Any("error", err))...)
		return
	}
	c.Log.LogAttrs(ctx, slog.LevelInfo, "cleanup done", attrs...)
}
