package cleanup_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	. "github.com/cric-talk/guards/internal/cleanup"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/metrics"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/table"
	"github.com/cric-talk/guards/internal/testkit"
)

const canary = "canary-user-4711"

// A fake table records how it is called, and returns what run returns.
type fake struct {
	user  string // the user to erase; empty for a sweep
	sweep table.Sweep
	calls int
	run   func(context.Context) (table.Swept, error)
}

func (f *fake) Sweep(ctx context.Context, s table.Sweep) (table.Swept, error) {
	return f.Erase(ctx, "", s)
}

func (f *fake) Erase(ctx context.Context, user string, s table.Sweep) (table.Swept, error) {
	f.user, f.sweep = user, s
	f.calls++
	return f.run(ctx)
}

var some = table.Swept{Scanned: 9, Stale: 7, Deleted: 5, Users: 3}

// done is a run that gets through everything in time.
func done(context.Context) (table.Swept, error) {
	all := some
	all.Finished = true
	return all, nil
}

func TestEvents(t *testing.T) {
	for payload, want := range map[string]struct {
		user   string
		dryRun bool
	}{
		`{}`:                               {},
		`{"dryRun": true}`:                 {dryRun: true},
		`{"dryRun": false}`:                {},
		`{"userId": "` + canary + `"}`:     {user: canary},
		`{"userId": "u1", "dryRun": true}`: {user: "u1", dryRun: true},
		`{"userId": "` + strings.Repeat("u", 128) + `"}`:                                                {user: strings.Repeat("u", 128)},
		`{"userId": "source"}`:                                                                          {user: "source"},
		`{"subject": {"room": "` + canary + `"}}`:                                                       {user: limits.SubjectID("room", canary)},
		`{"dryRun": true, "subject": {"tenant": "a!~"}}`:                                                {user: limits.SubjectID("tenant", "a!~"), dryRun: true},
		`{"source": "x", "subject": {"room": "r42"}}`:                                                   {},
		`{"source": "aws.events", "x": [1]}`:                                                            {},
		`{"version": "0", "detail-type": "Scheduled Event", "source": "aws.scheduler", "detail": "{}"}`: {},
		`{"detail-type": "Scheduled Event", "userId": "` + canary + `"}`:                                {},
	} {
		f := &fake{run: done}
		c := &Cleanup{Table: f, Now: func() time.Time { return time.Unix(1_700_000_000, 999_000_000) }}
		got, err := c.Invoke(t.Context(), []byte(payload))
		answer := `{"scanned":9,"stale":7,"deleted":5,"users":3,"finished":true,"durationMs":`
		if err != nil || !strings.HasPrefix(string(got), answer) {
			t.Errorf("%s: %s, %v, want %s...", payload, got, err, answer)
		}
		if s := f.sweep; f.calls != 1 || f.user != want.user || s.DryRun != want.dryRun || s.Now != 1_700_000_000 || !s.Until.IsZero() {
			t.Errorf("%s: asked for user %q, %+v; want %+v", payload, f.user, s, want)
		}
	}
}

// An invalid event deletes nothing, because its sender may have meant something
// else.
func TestInvalidEvents(t *testing.T) {
	for payload, field := range map[string]string{
		``:                                  "event",
		`[]`:                                "event",
		`{"dryrun": true}`:                  "event",
		`{"dryRun": "true"}`:                "dryRun",
		`{"dryRun": true, "dryRun": 0}`:     "dryRun",
		`{"userId": "canary-user 4711"}`:    "userId",
		`{"userId": " room canary"}`:        "userId", // the key of a subject
		`{"subject": {}}`:                   "subject",
		`{"subject": "canary"}`:             "subject",
		`{"subject": {"room": ""}}`:         "subject",
		`{"subject": {"room": "canary 1"}}`: "subject",
		`{"subject": {"canary-1": "room"}}`: "subject", // the wrong way round
		`{"subject": {"room": "canary", "tenant": "a"}}`: "subject",
		`{"subject": {"room": "canary"}, "userId": "u"}`: "subject",
		`{"subjects": {"room": "canary"}}`:               "event",
	} {
		f := &fake{run: done}
		_, err := (&Cleanup{Table: f}).Invoke(t.Context(), []byte(payload))
		if e, ok := errors.AsType[*input.ValidationError](err); !ok || e.Field != field || f.calls > 0 || strings.Contains(e.Problem, "canary") {
			t.Errorf("%s: %v and %d calls, want a ValidationError of %s before any", payload, err, f.calls, field)
		}
	}
}

// Each row runs a sweep and two erasures. Times count from the start.
func TestRunsInTime(t *testing.T) {
	hang := func(ctx context.Context) (table.Swept, error) {
		<-ctx.Done()
		return some, context.Cause(ctx)
	}
	late := func(ctx context.Context) (table.Swept, error) {
		<-ctx.Done()
		return done(ctx)
	}
	stop := func(context.Context) (table.Swept, error) {
		time.Sleep(27 * time.Second)
		return some, nil
	}
	fail := func(err error) func(context.Context) (table.Swept, error) {
		return func(context.Context) (table.Swept, error) { return some, err }
	}
	secret := errors.New("arn:secret")
	throttled := &ratelimit.StoreError{Failure: ratelimit.NotApplied, What: "the table is throttled", Err: secret}
	for name, tt := range map[string]struct {
		deadline time.Duration // of the caller; 0 for none
		run      func(context.Context) (table.Swept, error)
		until    time.Duration // when the table should stop by itself; 0 for never
		over     time.Duration // when the run ends
		err      string        // of an Unavailable error
		finished bool
	}{
		"no deadline":          {run: done, finished: true},
		"5 minutes":            {deadline: 5 * time.Minute, run: done, until: 290 * time.Second, finished: true},
		"half a minute":        {deadline: 30 * time.Second, run: done, until: 27 * time.Second, finished: true},
		"3 seconds":            {deadline: 3 * time.Second, run: done, until: 2 * time.Second, finished: true},
		"stops by itself":      {deadline: 30 * time.Second, run: stop, until: 27 * time.Second, over: 27 * time.Second},
		"hangs, 5 minutes":     {deadline: 5 * time.Minute, run: hang, until: 290 * time.Second, over: 295 * time.Second},
		"hangs, half a minute": {deadline: 30 * time.Second, run: hang, until: 27 * time.Second, over: 28500 * time.Millisecond},
		"hangs, 3 seconds":     {deadline: 3 * time.Second, run: hang, until: 2 * time.Second, over: 2500 * time.Millisecond},
		"done as time ends":    {deadline: 30 * time.Second, run: late, until: 27 * time.Second, over: 28500 * time.Millisecond},
		"fails":                {deadline: 30 * time.Second, run: fail(throttled), until: 27 * time.Second, err: "the table is throttled"},
		"fails in another way": {run: fail(secret), err: "the table could not be reached"},
	} {
		for kind, user := range map[string]string{"sweep": "", "erase": canary, "erase a subject": limits.SubjectID("room", canary)} {
			t.Run(kind+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					start := time.Now()
					ctx := t.Context()
					if tt.deadline > 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, tt.deadline)
						defer cancel()
					}
					var log bytes.Buffer
					f := &fake{run: tt.run}
					c := &Cleanup{Table: f, Log: slog.New(slog.NewJSONHandler(&log, nil))}
					got, err := c.Run(ctx, Request{UserID: user})
					want := Answer{table.Swept{Scanned: 9, Stale: 7, Deleted: 5, Users: 3, Finished: tt.finished}, tt.over.Milliseconds()}
					if e, ok := errors.AsType[*input.Unavailable](err); !cmp.Equal(got, want) || (tt.err != "") != ok || (err == nil) == ok || ok && e.What != tt.err {
						t.Errorf("Run = %+v, %v, want %+v, %q", got, err, want, tt.err)
					}
					if took := time.Since(start); took != tt.over || ctx.Err() != nil {
						t.Errorf("it took %v, want %v", took, tt.over)
					}
					var until time.Time
					if tt.until > 0 {
						until = start.Add(tt.until)
					}
					if !f.sweep.Until.Equal(until) || f.user != user || f.sweep.Now != start.Unix() {
						t.Errorf("asked for user %q, %+v; want Until %v", f.user, f.sweep, until)
					}
					message := `"cleanup done"`
					if tt.err != "" {
						message = `arn:secret` // only the log shows the cause
					}
					if line := log.String(); strings.Count(line, "\n") != 1 || !strings.Contains(line, message) || strings.Contains(line, canary) ||
						strings.Contains(line, `"oneUser":true`) != (kind == "erase") || strings.Contains(line, `"oneSubject":true`) != (kind == "erase a subject") {
						t.Errorf("log %s, want one line with %s and without the user", line, message)
					}
				})
			})
		}
	}
}

// Only a sweep that deletes writes metrics. An erasure and a dry run do not. A
// sweep that did not finish does not know how many users and items there are.
func TestMetrics(t *testing.T) {
	unfinished := func(context.Context) (table.Swept, error) { return some, nil }
	for name, tt := range map[string]struct {
		payload string
		run     func(context.Context) (table.Swept, error)
		want    string
	}{
		"sweep":      {`{}`, done, `{"Scanned":9,"Deleted":5,"Finished":1,"TrackedUsers":3,"StaleLeft":2}`},
		"unfinished": {`{}`, unfinished, `{"Scanned":9,"Deleted":5,"Finished":0}`},
		"dry run":    {`{"dryRun": true}`, done, ""},
		"erasure":    {`{"userId": "u1"}`, done, ""},
		"of a room":  {`{"subject": {"room": "r42"}}`, done, ""},
	} {
		var lines bytes.Buffer
		c := &Cleanup{Table: &fake{run: tt.run}, Metrics: metrics.Writer{W: &lines, Namespace: "Guards"}, Now: func() time.Time { return time.UnixMilli(1_700_000_000_123) }}
		testkit.Must(c.Invoke(t.Context(), []byte(tt.payload)))(t)
		var want string
		if tt.want != "" {
			var described []string
			for _, name := range regexp.MustCompile(`"(\w+)":`).FindAllStringSubmatch(tt.want, -1) {
				described = append(described, `{"Name":"`+name[1]+`","Unit":"Count"}`)
			}
			want = `{"_aws":{"Timestamp":1700000000123,"CloudWatchMetrics":[{"Namespace":"Guards","Dimensions":[[]],"Metrics":[` +
				strings.Join(described, ",") + "]}]}," + tt.want[1:] + "\n"
		}
		if lines.String() != want {
			t.Errorf("%s:\n got %s\nwant %s", name, lines.String(), want)
		}
	}
}

// A document holds live limits. Reads return its content or err, and every
// change fails with changed.
type document struct {
	liveedit.Table

	content      string
	err, changed error
}

func (d document) Settings(context.Context, bool) (live.Stored, error) {
	return live.Stored{Version: 1, Document: []byte(d.content)}, d.err
}

func (document) Blocks(context.Context, bool) (live.Stored, error) { return live.Stored{}, nil }

func (d document) ChangeSettings(context.Context, int64, live.Stored, liveedit.Change) error {
	return d.changed
}

// An erasure whose time is over leaves the grants to the run that deletes the
// last items. So an error about grants never hides that items are left.
func TestAnUnfinishedErasureDoesNotTouchGrants(t *testing.T) {
	unfinished := func(context.Context) (table.Swept, error) { return table.Swept{Deleted: 7}, nil }
	c := &Cleanup{Table: &fake{run: unfinished}, Live: document{err: errors.New("it was read")}, Log: slog.New(slog.DiscardHandler)}
	a, err := c.Run(t.Context(), Request{UserID: canary})
	if err != nil || a.Finished || a.Deleted != 7 {
		t.Errorf("%+v, %v, want 7 deleted items, unfinished, and no error", a, err)
	}
}

// An erasure that leaves the grants of the user, or of the subject, in the table is an
// error and unfinished. It says that the items are gone, and neither the error nor the log
// names whose.
func TestAnErasureThatLeavesGrantsSaysSo(t *testing.T) {
	for _, one := range []struct{ whose, key, event string }{
		{"user", canary, `{"userId": "` + canary + `"}`},
		{"user", canary, `{"userId": "` + canary + `", "keepBlocks": true}`},
		{"subject", limits.SubjectID("room", canary), `{"subject": {"room": "` + canary + `"}}`},
	} {
		granted := `{"grants": [{"userId": "` + one.key + `", "tier": "premium", "until": "2030-01-01T00:00:00Z", "reason": "r"}]}`
		for name, tt := range map[string]struct {
			live liveedit.Table
			want string
		}{
			"edited by hand": {document{content: `{"grants": "` + canary + `"}`}, "the document of the live limits has a wrong type or an unknown name"},
			"throttled":      {document{err: &ratelimit.StoreError{What: "the table is throttled", Err: errors.New("arn:secret")}}, "the table is throttled"},
			"busy":           {document{content: granted, changed: liveedit.ErrConflict}, liveedit.ErrConflict.Error()},
		} {
			var log bytes.Buffer
			c := &Cleanup{Table: &fake{run: done}, Live: tt.live, Log: slog.New(slog.NewJSONHandler(&log, nil))}
			_, err := c.Invoke(t.Context(), []byte(one.event))
			want := "the " + one.whose + "'s items are deleted, but the " + one.whose + "'s grants are not: " + tt.want
			if e, ok := errors.AsType[*input.Unavailable](err); !ok || e.Error() != want {
				t.Errorf("%s, %s:\n got %v\nwant %s", one.event, name, err, want)
			}
			if line := log.String(); !strings.Contains(line, want) || strings.Contains(line, canary) || strings.Contains(line, "arn") != (name == "throttled") || !strings.Contains(line, `"finished":false`) {
				t.Errorf("%s: the log is %s", name, line)
			}
		}
	}
}
