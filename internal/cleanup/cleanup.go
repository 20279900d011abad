// Package cleanup is the Lambda function that deletes expired items. It runs
// every few minutes and sweeps the table. An operator can also call it to erase
// everything that the table holds about one user or one subject, such as a room.
package cleanup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/metrics"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/retry"
	"github.com/cric-talk/guards/internal/strictjson"
	"github.com/cric-talk/guards/internal/table"
)

// Cleanup sweeps a table.
type Cleanup struct {
	Table Table
	Now   func() time.Time // nil means time.Now
	Log   *slog.Logger     // gets a line for each run; nil for none

	Metrics metrics.Writer // gets a line for each sweep that deletes

	// Live holds what operators have granted to users and subjects, and who is blocked. An
	// erasure forgets their grants and lifts their blocks after their items are deleted. Nil
	// if there are none.
	Live   liveedit.Table
	Guards limits.Guards // those that the settings in Live are about

	// See [table.Sweep]; each may be nil.
	Progress func(table.Swept)
	Each     func(ratelimit.Key, ratelimit.Item)
}

// A Table holds what cleanup deletes. Both methods return the work until an error.
type Table interface {
	// Sweep deletes what has expired. It starts at a random place, so that later
	// sweeps reach what one sweep has no time for.
	Sweep(context.Context, table.Sweep) (table.Swept, error)

	// Erase deletes every item of a user, or of the subject with this key, expired or not.
	Erase(ctx context.Context, userID string, s table.Sweep) (table.Swept, error)
}

// A Request is cleanup's event.
type Request struct {
	DryRun bool   // count, but delete nothing
	UserID string // the user to erase, or the key of the subject; empty to sweep out what has expired

	KeepBlocks bool // leave the user or the subject blocked
}

// An event is a request as its sender writes it.
type event struct {
	Request

	subject map[string]string // the id of the one to erase, by its name
}

var fields = []input.Field[event]{
	{Name: "dryRun", Read: func(e *event, f string, v strictjson.Value) error { return input.Bool(&e.DryRun, f, v) }},
	{Name: "userId", Read: func(e *event, f string, v strictjson.Value) error { return input.ID(&e.UserID, f, v) }},
	{Name: "keepBlocks", Read: func(e *event, f string, v strictjson.Value) error { return input.Bool(&e.KeepBlocks, f, v) }},
	{Name: "subject", Read: func(e *event, f string, v strictjson.Value) error {
		return input.TextsByName(&e.subject, f, v, `an object with a name and an id, such as {"room": "r42"}`)
	}},
}

// An Answer is the result of a run.
type Answer struct {
	table.Swept
	DurationMs int64 `json:"durationMs"`
}

// Invoke implements lambda.Handler. Its errors have the type
// *input.ValidationError or *input.Unavailable.
func (c *Cleanup) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	r, err := decode(payload)
	if err != nil {
		return nil, err
	}
	a, err := c.Run(ctx, r)
	if err != nil {
		return nil, err
	}
	return strictjson.Marshal(a, strictjson.Sorted) // subjects are a map
}

// decode reads an event strictly. An event from EventBridge always means a
// sweep, whatever else it contains.
func decode(payload []byte) (Request, error) {
	var members map[string]strictjson.Value
	if err := strictjson.Unmarshal(payload, &members); err == nil && (members["source"] != nil || members["detail-type"] != nil) {
		return Request{}, nil
	}
	e, err := input.Decode(payload, fields)
	switch {
	case err != nil:
	case e.subject != nil:
		err = e.resolve()
	case e.UserID != "":
		err = input.CheckUserID(e.UserID)
	case e.KeepBlocks:
		err = &input.ValidationError{Field: "keepBlocks", Problem: "goes only with userId or subject"}
	}
	return e.Request, err
}

// resolve makes the key of the subject that e names. Its errors never show the id, nor a
// wrong name, which may be an id.
func (e *event) resolve() error {
	invalid := func(problem string) error { return &input.ValidationError{Field: "subject", Problem: problem} }
	switch {
	case e.UserID != "":
		return invalid("does not go with userId, because an erasure is of one of them")
	case len(e.subject) != 1:
		return invalid(fmt.Sprintf("has %d names, want one", len(e.subject)))
	}
	for name, id := range e.subject {
		switch {
		case name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz") != "":
			return invalid("has a wrong name, want letters a to z, such as room")
		case input.CheckUserID(id) != nil:
			return invalid("has a wrong id, want 1 to 128 printable ASCII characters without a space")
		}
		e.UserID = limits.SubjectID(name, id)
	}
	return nil
}

// Run carries out r. It stops by itself before the deadline of ctx. Running out
// of time is not an error, because later runs delete the rest.
func (c *Cleanup) Run(ctx context.Context, r Request) (Answer, error) {
	began := time.Now()
	sweep := table.Sweep{Now: c.now().Unix(), DryRun: r.DryRun, Progress: c.Progress, Each: c.Each}
	if end, ok := ctx.Deadline(); ok {
		// A tenth of the time, but at least 1 s and at most 10 s, is kept back: half
		// of it for the requests on their way, and half for the answer.
		margin := min(max(end.Sub(began)/10, time.Second), 10*time.Second)
		sweep.Until = end.Add(-margin)
		var cancel context.CancelFunc
		ctx, cancel = retry.Before(ctx, margin/2) // stops a request that hangs
		defer cancel()
	}
	swept, err := c.sweep(ctx, r, sweep)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && (err == nil || errors.Is(err, context.DeadlineExceeded)) {
		swept.Finished, err = false, nil
	}
	if err != nil { // grants or blocks can be left
		swept.Finished = false
	}
	a := Answer{swept, time.Since(began).Milliseconds()}
	c.record(ctx, r, a, err)
	if r.UserID == "" && !r.DryRun {
		c.measure(a)
	}
	if err != nil {
		return a, input.NewUnavailable(err)
	}
	return a, nil
}

// sweep sweeps the table, or erases a user or a subject, then their grants, and then their
// blocks.
func (c *Cleanup) sweep(ctx context.Context, r Request, s table.Sweep) (table.Swept, error) {
	if r.UserID == "" {
		return c.Table.Sweep(ctx, s)
	}
	swept, err := c.Table.Erase(ctx, r.UserID, s)
	if err != nil || !swept.Finished || r.DryRun || c.Live == nil {
		return swept, err
	}
	if _, err := liveedit.Forget(ctx, c.Live, c.Guards, r.UserID, c.now()); err != nil {
		return swept, r.kept("grants", err)
	}
	if r.KeepBlocks {
		return swept, nil
	}
	if err := liveedit.ForgetBlocks(ctx, c.Live, r.UserID, c.now()); err != nil {
		return swept, r.kept("blocks", err)
	}
	return swept, nil
}

// kept returns the error of an erasure that deleted all but the grants or the blocks.
func (r Request) kept(what string, err error) *input.Unavailable {
	why := err.Error()
	if e, ok := errors.AsType[*ratelimit.StoreError](err); ok {
		why = e.What // the rest is only for the log
	}
	whose := "the user's"
	if r.ofSubject() {
		whose = "the subject's"
	}
	return &input.Unavailable{What: whose + " items are deleted, but " + whose + " " + what + " are not: " + why, Cause: err}
}

// ofSubject reports whether r erases a subject.
func (r Request) ofSubject() bool {
	_, _, ok := limits.SubjectOf(r.UserID)
	return ok
}

func (c *Cleanup) now() time.Time {
	if c.Now == nil {
		return time.Now()
	}
	return c.Now()
}

// record logs a run, without the id of the user or the subject.
func (c *Cleanup) record(ctx context.Context, r Request, a Answer, err error) {
	if c.Log == nil {
		return
	}
	attrs := []slog.Attr{
		slog.Bool("oneUser", r.UserID != "" && !r.ofSubject()), slog.Bool("oneSubject", r.ofSubject()), slog.Bool("dryRun", r.DryRun),
		slog.Int64("scanned", a.Scanned), slog.Int64("stale", a.Stale), slog.Int64("deleted", a.Deleted),
		slog.Int64("users", a.Users), slog.Bool("finished", a.Finished), slog.Int64("durationMs", a.DurationMs),
	}
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
		if e, ok := errors.AsType[*input.Unavailable](err); ok {
			attrs = append(attrs, slog.Any("cause", e.Cause))
		}
		c.Log.LogAttrs(ctx, slog.LevelError, "cleanup failed", attrs...)
		return
	}
	c.Log.LogAttrs(ctx, slog.LevelInfo, "cleanup done", attrs...)
}

// measure writes the metrics of a sweep. They have no dimension, because there
// is only one cleanup. Only a sweep that has seen the whole table knows the
// numbers of users and of items left.
func (c *Cleanup) measure(a Answer) {
	values := []metrics.Value{{Name: "Scanned", Count: a.Scanned}, {Name: "Deleted", Count: a.Deleted}, {Name: "Finished"}}
	if a.Finished {
		values[2].Count = 1
		values = append(values,
			metrics.Value{Name: "TrackedUsers", Count: a.Users},          // users who had items before the sweep
			metrics.Value{Name: "StaleLeft", Count: a.Stale - a.Deleted}, // expired items that are still in the table
		)
	}
	c.Metrics.Write(c.now(), nil, values)
}
