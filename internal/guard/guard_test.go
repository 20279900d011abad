package guard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/google/go-cmp/cmp"

	. "github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/metrics"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// start is the start of a minute's window, and window its key.
var start = time.UnixMilli(1_700_000_040_000)

const (
	startMillis = 1_700_000_040_000
	end         = startMillis + 60_000
	window      = 28_333_334
	canary      = "canary-user-4711"
)

// A bench is a posts-guard on a store that can go away, at a time that a test
// sets, with its log and metrics.
type bench struct {
	*Handler
	t     *testing.T
	now   time.Time
	store *store
	log   bytes.Buffer
	lines bytes.Buffer
}

type store struct {
	ratelimit.Store
	away  error
	asked int
}

func (s *store) Update(ctx context.Context, w ratelimit.Write) (ratelimit.Item, bool, error) {
	if s.asked++; s.away != nil {
		return ratelimit.Item{}, false, s.away
	}
	return s.Store.Update(ctx, w)
}

func (s *store) Read(ctx context.Context, k ratelimit.Key) (ratelimit.Item, error) {
	if s.asked++; s.away != nil {
		return ratelimit.Item{}, s.away
	}
	return s.Store.Read(ctx, k)
}

func (s *store) Delete(ctx context.Context, k ratelimit.Key) error {
	if s.asked++; s.away != nil {
		return s.away
	}
	return s.Store.Delete(ctx, k)
}

var errAway = &ratelimit.StoreError{Failure: ratelimit.Rejected, What: "the table does not exist", Err: errors.New("arn:secret")}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, now: start, store: &store{Store: new(memstore.Store)}}
	b.Handler = &Handler{
		Guard: limits.Posts,
		Limiter: &ratelimit.Limiter{
			Store: b.store, Memory: ratelimit.NewMemory(1 << 20), Timeout: time.Second,
			Now: func() time.Time { return b.now },
		},
		BypassRoles: []string{"admin"},
		Log:         slog.New(slog.NewJSONHandler(&b.log, nil)),
		Metrics:     metrics.Writer{W: &b.lines, Namespace: "Guards"},
	}
	t.Cleanup(func() {
		if strings.Contains(b.log.String()+b.lines.String(), canary) {
			t.Errorf("a user id in the log or the metrics:\n%s%s", &b.log, &b.lines)
		}
	})
	return b
}

type fields = map[string]any

// ask invokes the guard as Lambda does, each time with another request id.
func (b *bench) ask(event string) (fields, error) {
	b.t.Helper()
	event = strings.Replace(event, "{", `{"userId": "`+canary+`", `, 1)
	if !strings.Contains(event, "activity") {
		event = strings.Replace(event, ", ", `, "activity": "create_post", `, 1)
	}
	event = strings.Replace(event, ", }", "}", 1)
	out, err := b.Invoke(b.t.Context(), []byte(event))
	if err != nil {
		return nil, err
	}
	return parse(b.t, out), nil
}

func parse(t *testing.T, raw []byte) fields {
	t.Helper()
	var f fields
	if err := json.Unmarshal(raw, &f); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return f
}

// want compares an answer, all of it: the receipt only by its presence.
func (b *bench) want(event string, want fields) fields {
	b.t.Helper()
	got, err := b.ask(event)
	if err != nil {
		b.t.Fatalf("%s: %v", event, err)
	}
	for name, v := range (fields{"userId": canary, "activity": "create_post", "op": "check"}) {
		if _, ok := want[name]; !ok {
			want[name] = v
		}
	}
	for _, name := range []string{"at", "requestId"} {
		if _, has := got[name]; has != (want["receipt"] != nil) {
			b.t.Errorf("%s: %s is there: %v", event, name, has)
		}
	}
	shown := fields{}
	for name, v := range got {
		if name == "at" || name == "requestId" {
			continue
		}
		shown[name] = v
	}
	delete(want, "receipt")
	for name, v := range want {
		if n, ok := v.(int); ok {
			want[name] = float64(n)
		}
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		b.t.Fatalf("%s (-want +got):\n%s", event, diff)
	}
	return got
}

// figures is an answer about create_post with used of 10.
func figures(allowed bool, reason string, used int, more fields) fields {
	f := fields{
		"allowed": allowed, "reason": reason, "limit": 10, "activityCount": used, "remaining": max(0, 10-used),
		"waitTime": 0, "resetAt": end, "windowKey": window,
	}
	maps.Copy(f, more)
	return f
}

const message = "Rate limit exceeded: Too many requests in a short period"

// The table of cases in the contract, row by row.
func TestCases(t *testing.T) {
	receipt := fields{"granted": 1, "receipt": true}
	for name, test := range map[string]func(*bench){
		"check: ok until the limit, then limited": func(b *bench) {
			for n := range 10 {
				b.want(`{}`, figures(true, "ok", n+1, fields{"granted": 1, "receipt": true}))
			}
			b.now = start.Add(18 * time.Second)
			b.want(`{}`, figures(false, "limited", 10, fields{"granted": 0, "waitTime": 42000, "message": message}))
			b.now = start.Add(time.Minute)
			b.want(`{}`, figures(true, "ok", 1, fields{"granted": 1, "receipt": true, "windowKey": window + 1, "resetAt": end + 60000}))
		},
		"status: as the check would be answered now, never counted": func(b *bench) {
			b.RefusalIsError = true
			status := fields{"op": "status"}
			for range 2 {
				b.want(`{"op": "status"}`, figures(true, "ok", 0, status)) // unknown user: activityCount 0
			}
			b.want(`{"count": 10}`, figures(true, "ok", 10, fields{"granted": 10, "receipt": true}))
			before := b.store.asked
			b.want(`{"op": "status"}`, figures(false, "limited", 10, fields{"op": "status", "waitTime": 60000, "message": message}))
			if b.store.asked != before+1 {
				t.Error("a status is not a read of the table")
			}
		},
		"partial grant": func(b *bench) {
			b.want(`{"count": 7}`, figures(true, "ok", 7, fields{"granted": 7, "receipt": true}))
			b.want(`{"op": "status", "count": 5, "partial": true}`, figures(true, "ok", 7, fields{"op": "status", "waitTime": 60000, "message": message}))
			b.want(`{"count": 5, "partial": true}`, figures(true, "ok", 10, fields{"granted": 3, "waitTime": 60000, "message": message, "receipt": true}))
			b.want(`{"count": 5, "partial": true}`, figures(false, "limited", 10, fields{"granted": 0, "waitTime": 60000, "message": message}))
		},
		"duplicate": func(b *bench) {
			b.want(`{"count": 2, "requestId": "r1"}`, figures(true, "ok", 2, fields{"granted": 2, "receipt": true}))
			b.want(`{"count": 8}`, figures(true, "ok", 10, fields{"granted": 8, "receipt": true}))
			b.want(`{"count": 2, "requestId": "r1"}`, figures(true, "duplicate", 10, fields{"granted": 2}))
			b.want(`{"op": "status", "requestId": "r1"}`, figures(true, "duplicate", 10, fields{"op": "status"}))
		},
		"unlimited": func(b *bench) {
			for _, op := range []string{"check", "status", "reset"} {
				want := fields{"allowed": true, "reason": "unlimited", "activity": "like", "op": op}
				if op == "check" {
					want["granted"] = 9e15
				}
				b.want(`{"op": "`+op+`", "activity": "like", "count": 9000000000000000}`, want)
			}
		},
		"bypassed": func(b *bench) {
			for range 2 {
				b.want(`{"roles": ["user", "admin"], "count": 11}`, fields{"allowed": true, "reason": "bypassed", "granted": 11})
			}
			b.want(`{"roles": ["user", "Admin", ""]}`, figures(true, "ok", 1, receipt))
		},
		"MODE=off": func(b *bench) {
			b.Mode = Off
			b.want(`{"count": 11}`, fields{"allowed": true, "reason": "unlimited", "granted": 11})
			if _, err := b.ask(`{"count": 0}`); err == nil {
				t.Error("input is not checked")
			}
			if b.store.asked != 0 {
				t.Error("the table was asked")
			}
		},
		"shadow, over the limit": func(b *bench) {
			b.Mode, b.RefusalIsError = Shadow, true
			b.want(`{"count": 9}`, figures(true, "ok", 9, fields{"granted": 9, "receipt": true}))
			b.want(`{"count": 2}`, figures(true, "shadow", 9, fields{"granted": 0, "waitTime": 60000}))
			b.want(`{"op": "status", "count": 2}`, figures(true, "shadow", 9, fields{"op": "status", "waitTime": 60000}))
			b.want(`{"count": 2, "partial": true}`, figures(true, "shadow", 10, fields{"granted": 1, "waitTime": 60000, "receipt": true})) // refuses nobody the rest
			b.store.away = errAway                                                                                                         // an outage in shadow allows
			b.now = start.Add(2 * time.Second)
			b.want(`{"count": 2}`, figures(true, "unavailable", 10, fields{"granted": 0, "waitTime": 58000}))
		},
		"release": func(b *bench) {
			got := b.want(`{"count": 3, "requestId": "r1"}`, figures(true, "ok", 3, fields{"granted": 3, "receipt": true}))
			back := `{"op": "release", "requestId": "r1", "count": 2, "at": 1700000040000}`
			if got["at"] != float64(startMillis) || got["requestId"] != "r1" {
				t.Errorf("the receipt is %v, %v", got["at"], got["requestId"])
			}
			b.now = start.Add(time.Second)
			for range 2 { // given back once; a repeat changes nothing
				b.want(back, figures(true, "ok", 1, fields{"op": "release"}))
			}
			b.want(`{"op": "release", "requestId": "other", "at": 1700000040000}`, figures(true, "ok", 1, fields{"op": "release"}))
			b.want(`{"requestId": "r1"}`, figures(true, "ok", 2, receipt)) // a released id is new again
			b.now = start.Add(time.Minute)                                 // too late
			next := fields{"op": "release", "windowKey": window + 1, "resetAt": end + 60000}
			b.want(back, figures(true, "ok", 0, next))
		},
		"reset": func(b *bench) {
			b.want(`{"count": 10, "requestId": "r1"}`, figures(true, "ok", 10, fields{"granted": 10, "receipt": true}))
			b.want(`{"op": "reset"}`, figures(true, "ok", 0, fields{"op": "reset"}))
			b.want(`{"requestId": "r1"}`, figures(true, "ok", 1, receipt))
		},
		"release and reset while the table is down: the Unavailable error": func(b *bench) {
			b.store.away = errAway
			for _, e := range []string{`{"op": "reset"}`, `{"op": "release", "requestId": "r1", "at": 1700000040000}`} {
				if _, err := b.ask(e); !errors.As(err, new(*input.Unavailable)) || err.Error() != "the table does not exist" {
					t.Errorf("%s: the error is %v, want Unavailable", e, err)
				}
			}
		},
		"unavailable": func(b *bench) {
			b.want(`{"count": 8}`, figures(true, "ok", 8, fields{"granted": 8, "receipt": true}))
			b.store.away = errAway
			b.want(`{"count": 2}`, figures(true, "unavailable", 10, fields{"granted": 2, "receipt": true}))
			b.want(`{}`, figures(false, "unavailable", 10, fields{"granted": 0, "waitTime": 60000, "message": message}))
			if !strings.Contains(b.log.String(), "table unavailable") || !strings.Contains(b.lines.String(), `"Degraded":1`) {
				t.Errorf("an outage is not logged and counted:\n%s%s", &b.log, &b.lines)
			}
		},
		"unavailable, ON_OUTAGE=deny": func(b *bench) {
			b.DenyOutage = true
			b.store.away = errAway
			for _, e := range []string{`{}`, `{"op": "status"}`} {
				if _, err := b.ask(e); !errors.As(err, new(*input.Unavailable)) {
					t.Errorf("the error is %v, want Unavailable", err)
				}
			}
			if !strings.Contains(b.log.String(), "table unavailable") || !strings.Contains(b.lines.String(), `"Degraded":1`) {
				t.Errorf("an outage is not logged and counted:\n%s%s", &b.log, &b.lines)
			}
		},
		"tier lowered below what is counted": func(b *bench) {
			premium := figures(true, "ok", 15, fields{"granted": 15, "receipt": true, "limit": 20, "remaining": 5})
			b.want(`{"tier": "premium", "count": 15}`, premium)
			b.want(`{}`, figures(false, "limited", 15, fields{"granted": 0, "waitTime": 60000, "message": message}))
			b.want(`{"tier": "nobody's"}`, figures(false, "limited", 15, fields{"granted": 0, "waitTime": 60000, "message": message}))
			b.want(`{"tier": "premium"}`, figures(true, "ok", 16, fields{"granted": 1, "receipt": true, "limit": 20, "remaining": 4}))
		},
		"ON_LIMIT=error": func(b *bench) {
			b.RefusalIsError = true
			b.want(`{"count": 10}`, figures(true, "ok", 10, fields{"granted": 10, "receipt": true}))
			if _, err := b.ask(`{}`); !errors.As(err, new(*RateLimitExceeded)) || err.Error() != message {
				t.Errorf("the error is %v, want RateLimitExceeded", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			test(b)
		})
	}
}

// An instance that refused does so for at most a second after another one
// released, reset or raised the limit.
func TestSeveralInstances(t *testing.T) {
	one, two := newBench(t), newBench(t)
	two.store.Store = one.store.Store
	one.want(`{"count": 10}`, figures(true, "ok", 10, fields{"granted": 10, "receipt": true}))
	limited := func() fields {
		return figures(false, "limited", 10, fields{"granted": 0, "waitTime": 60000, "message": message})
	}
	two.want(`{}`, limited())
	one.want(`{"op": "reset"}`, figures(true, "ok", 0, fields{"op": "reset"}))
	two.want(`{}`, limited())
	two.now = start.Add(1001 * time.Millisecond)
	two.want(`{}`, figures(true, "ok", 1, fields{"granted": 1, "receipt": true}))
}

// The id that a decision makes for itself is Lambda's own, which its retry of
// an event repeats.
func TestRequestIDIsLambdas(t *testing.T) {
	b := newBench(t)
	ctx := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: "from-lambda"})
	for _, reason := range []string{"ok", "duplicate"} {
		out, err := b.Invoke(ctx, []byte(`{"userId": "u1", "activity": "create_post"}`))
		if got := parse(t, out); err != nil || got["reason"] != reason || got["activityCount"] != 1.0 {
			t.Errorf("%s, %v, want %s and one counted", out, err, reason)
		}
	}
}

func TestDeadlineOfLambda(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.store.away = errors.New("no answer")
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		out, err := b.Invoke(ctx, []byte(`{"userId": "u1", "activity": "create_post"}`))
		if left, _ := ctx.Deadline(); time.Until(left) < 100*time.Millisecond {
			t.Errorf("answered %v before Lambda's deadline, want at least 100ms", time.Until(left))
		}
		if err != nil || parse(t, out)["reason"] != "unavailable" {
			t.Errorf("%s, %v", out, err)
		}
	})
}

func TestLogOfARefusal(t *testing.T) {
	b := newBench(t)
	b.want(`{"count": 10}`, figures(true, "ok", 10, fields{"granted": 10, "receipt": true}))
	if b.log.Len() > 0 {
		t.Errorf("an allowed request is logged: %s", &b.log)
	}
	if _, err := b.ask(`{}`); err != nil {
		t.Fatal(err)
	}
	if _, err := b.ask(`{"op": "status"}`); err != nil {
		t.Fatal(err)
	}
	line := parse(t, b.log.Bytes()) // one line: a status refuses nobody
	delete(line, "time")
	want := fields{
		"level": "INFO", "msg": "refused", "activity": "create_post", "user": "***4711", "reason": "limited",
		"limit": 10.0, "activityCount": 10.0, "waitTime": 60000.0,
	}
	if diff := cmp.Diff(want, line); diff != "" {
		t.Errorf("the log of a refusal (-want +got):\n%s", diff)
	}
}

// A flood of refusals leaves ten lines a second, and says how many it left out.
func TestRefusalsAreSampled(t *testing.T) {
	b := newBench(t)
	b.want(`{"count": 10}`, figures(true, "ok", 10, fields{"granted": 10, "receipt": true}))
	for range 500 {
		if _, err := b.ask(`{}`); err != nil {
			t.Fatal(err)
		}
	}
	b.now = start.Add(time.Second)
	if _, err := b.ask(`{}`); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.log.String()), "\n")
	if len(lines) != 11 || parse(t, []byte(lines[9]))["notLogged"] != nil || parse(t, []byte(lines[10]))["notLogged"] != 490.0 {
		t.Errorf("%d lines for 501 refusals, the last %s, want 11, of which the last says that 490 were left out", len(lines), lines[len(lines)-1])
	}
}

func TestMask(t *testing.T) {
	for user, want := range map[string]string{"+573001234567": "***4567", "12345678": "***5678", "1234567": "***", "u": "***"} {
		b := newBench(t)
		event := `{"userId": "` + user + `", "activity": "create_post", "count": 10}`
		for range 2 {
			if _, err := b.Invoke(t.Context(), []byte(event)); err != nil {
				t.Fatal(err)
			}
		}
		if got := parse(t, b.log.Bytes())["user"]; got != want {
			t.Errorf("%s is logged as %v, want %s", user, got, want)
		}
	}
}

func TestMetrics(t *testing.T) {
	b := newBench(t)
	for _, e := range []string{`{"count": 7}`, `{}`, `{"op": "status"}`, `{"count": 2}`, `{}`, `{"roles": ["admin"]}`} {
		if _, err := b.ask(e); err != nil {
			t.Fatal(err)
		}
	}
	b.Mode = Shadow
	if _, err := b.ask(`{}`); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.lines.String()), "\n")
	for i, want := range []fields{
		{"Allowed": 1.0, "Requests": 1.0},
		{"Allowed": 1.0, "Requests": 1.0, "NearLimit": 1.0},
		{"Requests": 1.0}, // a status
		{"Allowed": 1.0, "Requests": 1.0, "NearLimit": 1.0},
		{"Refused": 1.0, "Requests": 0.0, "CacheRefusals": 1.0},
		{"Bypassed": 1.0},
		{"Shadowed": 1.0, "Requests": 0.0, "CacheRefusals": 1.0},
	} {
		var metrics []any
		got := parse(t, []byte(lines[i]))
		for _, name := range []string{"Allowed", "Refused", "Bypassed", "Shadowed", "Requests", "NearLimit", "CacheRefusals"} {
			if _, ok := want[name]; ok {
				metrics = append(metrics, fields{"Name": name, "Unit": "Count"})
			}
		}
		want["Guard"], want["Activity"] = "posts-guard", "create_post"
		want["_aws"] = fields{"Timestamp": float64(startMillis), "CloudWatchMetrics": []any{fields{
			"Namespace": "Guards", "Dimensions": []any{[]any{"Guard", "Activity"}}, "Metrics": metrics,
		}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("line %d (-want +got):\n%s", i, diff)
		}
	}
}
