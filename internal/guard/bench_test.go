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
	"time"

	"github.com/google/go-cmp/cmp"

	. "github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/metrics"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// start is when each test starts. A window of one minute begins then, with the
// key window, and ends at end.
var start = time.UnixMilli(startMillis)

const (
	startMillis = 1_700_000_040_000
	end         = startMillis + 60_000
	window      = 28_333_334
)

// canary is the user of every test. No log line and no metric may contain it.
const canary = "canary-user-4711"

// message is what posts-guard tells a refused user.
const message = "Rate limit exceeded: Too many requests in a short period"

// A bench is a posts-guard on a store that can fail. The test sets the time.
type bench struct {
	*Handler
	t     *testing.T
	now   time.Time
	store *store
	log   bytes.Buffer
	lines bytes.Buffer // the metrics
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, now: start, store: &store{Store: new(memstore.Store)}}
	b.Handler = &Handler{
		Guard: cricket.Posts,
		Limiter: &ratelimit.Limiter{
			Store: b.store, Memory: ratelimit.NewMemory(1 << 20), Timeout: time.Second,
			Now: func() time.Time { return b.now },
		},
		BypassRoles: []string{"admin"},
		Log:         slog.New(slog.NewJSONHandler(&b.log, nil)),
		Metrics:     &metrics.Batch{Writer: metrics.Writer{W: &b.lines, Namespace: "Guards"}},
	}
	t.Cleanup(func() {
		if strings.Contains(b.log.String()+b.lines.String(), canary) {
			t.Errorf("the log or the metrics contain a user id:\n%s%s", &b.log, &b.lines)
		}
	})
	return b
}

// guarding makes b another guard, whose page has no other one. It returns b.
func (b *bench) guarding(g limits.Guard) *bench {
	if b.Guard = g; b.Live != nil {
		b.Live.Guards = limits.Guards{g}
	}
	return b
}

// A store counts its requests. A test can make it fail.
type store struct {
	ratelimit.Store
	away  error    // if set, every request fails with it
	spoil []string // attributes that can't be read; then no update is performed
	asked int
}

// errAway is an outage. Callers may read its What, but not its Err.
var errAway = &ratelimit.StoreError{Failure: ratelimit.Misconfigured, What: "the table does not exist", Err: errors.New("arn:secret")}

// fault counts a request, and returns what it brings instead of the store's answer, if it fails.
func (s *store) fault() (item ratelimit.Item, fails bool, err error) {
	s.asked++
	return ratelimit.Item{Unread: s.spoil}, s.away != nil || s.spoil != nil, s.away
}

func (s *store) Update(ctx context.Context, w ratelimit.Write) (ratelimit.Item, bool, error) {
	if item, fails, err := s.fault(); fails {
		return item, false, err
	}
	return s.Store.Update(ctx, w)
}

func (s *store) Read(ctx context.Context, k ratelimit.Key) (ratelimit.Item, error) {
	if item, fails, err := s.fault(); fails {
		return item, err
	}
	return s.Store.Read(ctx, k)
}

func (s *store) Delete(ctx context.Context, k ratelimit.Key) error {
	if s.asked++; s.away != nil {
		return s.away
	}
	s.spoil = nil
	return s.Store.Delete(ctx, k)
}

type fields = map[string]any

func parse(t *testing.T, raw []byte) fields {
	t.Helper()
	var f fields
	if err := json.Unmarshal(raw, &f); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return f
}

// ask invokes the guard as Lambda does. It adds the canary as userId, and
// create_post as activity if the event has none.
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

// mustAsk is ask for an event that must get an answer.
func (b *bench) mustAsk(event string) fields {
	b.t.Helper()
	got, err := b.ask(event)
	if err != nil {
		b.t.Fatalf("%s: %v", event, err)
	}
	return got
}

// answer invokes the guard with an event as it is, which must get an answer.
func (b *bench) answer(event string) fields {
	b.t.Helper()
	out, err := b.Invoke(b.t.Context(), []byte(event))
	if err != nil {
		b.t.Fatalf("%.999s: %v", event, err)
	}
	return parse(b.t, out)
}

// says sends members of an event, and fails the test unless the answer has each of these texts,
// with @ between them.
func (b *bench) says(members, want string) {
	b.t.Helper()
	out, err := b.Invoke(b.t.Context(), []byte(`{"userId":"`+canary+`",`+members+`}`))
	for text := range strings.SplitSeq(want, "@") {
		if err != nil || !strings.Contains(string(out), text) {
			b.t.Errorf("%s\n got %s, %v\nwant %s", members, out, err, text)
		}
	}
}

// measured returns the metrics so far.
func (b *bench) measured() string {
	b.Metrics.Flush()
	return b.lines.String()
}

// want asks, and compares the whole answer except for the receipt. The answer
// must have a receipt if want has the key "receipt", and otherwise none.
func (b *bench) want(event string, want fields) fields {
	b.t.Helper()
	got := b.mustAsk(event)
	for name, v := range (fields{"userId": canary, "activity": "create_post", "op": "check"}) {
		if _, ok := want[name]; !ok {
			want[name] = v
		}
	}
	for _, name := range []string{"at", "requestId"} {
		if _, has := got[name]; has != (want["receipt"] != nil) {
			b.t.Errorf("%s: the answer has %s: %v, want the opposite", event, name, has)
		}
	}
	shown := maps.Clone(got)
	maps.DeleteFunc(shown, func(name string, _ any) bool { return name == "at" || name == "requestId" })
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

// counted is the answer to a check of create_post that counted n actions. Used
// of 10 are counted then.
func counted(n, used int) fields {
	f := figures(true, "ok", used, fields{"granted": n, "receipt": true})
	switch {
	case used == 10:
		f["crossed"] = 100
	case used-n < 8 && used >= 8:
		f["crossed"] = 80
	}
	return f
}

// limited is the answer to a check of create_post at the start of a window that
// has no room.
func limited(used int) fields {
	return figures(false, "limited", used, fields{"granted": 0, "waitTime": 60000, "message": message})
}

// figures is an answer about create_post with used of 10 counted.
func figures(allowed bool, reason string, used int, more fields) fields {
	f := fields{
		"allowed": allowed, "reason": reason, "limit": 10, "activityCount": used, "remaining": max(0, 10-used),
		"waitTime": 0, "resetAt": end, "windowKey": window,
	}
	maps.Copy(f, more)
	return f
}

// reasons asks once for each reason that it wants.
func (b *bench) reasons(event string, want ...string) {
	b.t.Helper()
	for i, reason := range want {
		got, err := b.ask(event)
		if err != nil || got["reason"] != reason {
			b.t.Errorf("%s, time %d: %v, %v, want %s", event, i, got, err, reason)
		}
	}
}

// wantInvalid fails the test unless err is a ValidationError of this field, and
// the store was asked nothing.
func (b *bench) wantInvalid(event, field string, err error) {
	b.t.Helper()
	if e, ok := errors.AsType[*input.ValidationError](err); !ok || e.Field != field || b.store.asked != 0 {
		b.t.Errorf("%.60s: %v after %d requests, want a ValidationError of %s after none", event, err, b.store.asked, field)
	}
}

// wantUnavailable fails the test unless the error of each event is Unavailable with this message.
func (b *bench) wantUnavailable(message string, events ...string) {
	b.t.Helper()
	for _, event := range events {
		if _, err := b.ask(event); !errors.As(err, new(*input.Unavailable)) || err.Error() != message {
			b.t.Errorf("%s: the error is %v, want Unavailable: %s", event, err, message)
		}
	}
}
