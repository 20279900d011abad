package guard_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards"
	. "github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

func TestMemoryDecidesDuringAnOutage(t *testing.T) {
	b := newBench(t)
	b.want(`{"count": 8}`, counted(8, 8))
	b.store.away = errAway
	b.want(`{"count": 2}`, figures(true, "unavailable", 10, fields{"granted": 2}))
	b.want(`{}`, figures(false, "unavailable", 10, fields{"granted": 0, "waitTime": 60000, "message": message}))
	const line = `"msg":"table unavailable","activity":"create_post","op":"check","error":"the table does not exist: arn:secret"`
	if !strings.Contains(b.log.String(), line) || !strings.Contains(b.lines.String(), `"Degraded":1`) {
		t.Errorf("the outage is not logged with its cause and counted:\n%s%s", &b.log, &b.lines)
	}
}

func TestARefusalDuringAnOutageCanBeAnError(t *testing.T) {
	b := newBench(t)
	b.RefusalIsError = true
	b.store.away = errAway
	b.want(`{"count": 10}`, figures(true, "unavailable", 10, fields{"granted": 10}))
	b.want(`{"op": "status"}`, figures(false, "unavailable", 10, fields{"op": "status", "waitTime": 60000, "message": message}))
	if _, err := b.ask(`{}`); !errors.As(err, new(*RateLimitExceeded)) {
		t.Errorf("the error is %v, want RateLimitExceeded", err)
	}
}

// Lambda must receive the answer at least 100 ms before its deadline.
func TestAnOutageEndsBeforeTheDeadlineOfLambda(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.store.away = errors.New("no answer")
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		out, err := b.Invoke(ctx, []byte(`{"userId": "u1", "activity": "create_post"}`))
		if left, _ := ctx.Deadline(); time.Until(left) < 100*time.Millisecond {
			t.Errorf("the answer came %v before the deadline, want at least 100ms", time.Until(left))
		}
		if err != nil || parse(t, out)["reason"] != "unavailable" {
			t.Errorf("%s, %v, want unavailable", out, err)
		}
	})
}

// A live mode decides what an outage does to its activity, and to no other.
func TestALiveShadowModeAllowsInAnOutage(t *testing.T) {
	withLiveLimits(t, func(t *testing.T, b *bench, s *settings) {
		b.DenyOutage = true
		s.set(b, live.Settings{Activities: map[string]live.Override{"create_post": {Mode: "shadow"}}})
		b.reasons(`{}`, "ok")
		b.store.away = errAway
		b.reasons(`{}`, "unavailable")
		if _, err := b.ask(`{"activity": "update_post"}`); err == nil {
			t.Error("another activity is allowed too")
		}
		b.Mode = live.Shadow
		b.reasons(`{"activity": "update_post"}`, "unavailable")
	})
}

// While the circuit breaker is open, the guard answers without a request, and live
// limits are not read. One decision in 5 s asks the table, so the table decides again
// soon after it is back.
func TestAnOpenCircuitBreakerKeepsRequestsFromTheTable(t *testing.T) {
	withLiveLimits(t, func(t *testing.T, b *bench, s *settings) {
		b.reasons(`{}`, "ok") // also reads the live limits
		b.store.away = errors.New("no answer")
		b.reasons(`{}`, "unavailable") // opens the circuit breaker
		asked, looks := b.store.asked, s.looks
		b.DenyOutage = true
		b.wantUnavailable("the table did not answer in time", `{}`)
		b.DenyOutage = false
		if b.store.asked != asked {
			t.Errorf("%d requests, want none", b.store.asked-asked)
		}
		for range 10 { // 40 s: live limits would have been due
			b.now = b.now.Add(4 * time.Second)
			b.reasons(`{}`, "unavailable")
			time.Sleep(time.Second) // a probe goes on without its decision
			synctest.Wait()
		}
		if s.looks != looks {
			t.Errorf("the live limits were read %d times, want never", s.looks-looks)
		}
		b.store.away = nil
		b.now = b.now.Add(5 * time.Second)
		b.reasons(`{}`, "ok", "ok")
		synctest.Wait()
		if s.looks != looks+1 {
			t.Errorf("the live limits were read %d times after the outage, want once", s.looks-looks)
		}
	})
}

// Exempt requests never ask the table, so they can't close the circuit breaker.
// They read the live limits all the same, or a live mode "off" would stay
// forever.
func TestALiveModeOffEndsAlthoughTheCircuitBreakerIsOpen(t *testing.T) {
	withLiveLimits(t, func(t *testing.T, b *bench, s *settings) {
		s.set(b, live.Settings{Activities: map[string]live.Override{"create_post": {Mode: "off"}}})
		b.reasons(`{"activity": "like"}`, "unlimited")
		b.store.away = errAway
		b.reasons(`{"activity": "update_post"}`, "unavailable")
		if !b.Limiter.CircuitOpen() {
			t.Fatal("the circuit breaker is closed")
		}
		b.store.away = nil
		s.set(b, live.Settings{})
		b.reasons(`{}`, "unlimited", "ok")
	})
}

// newSpoiledBench returns a guard whose items have an attribute of the wrong
// type.
func newSpoiledBench(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.store.spoil = []string{"activityCount"}
	return b
}

// wantUnreadableLogged fails the test unless each line of the log is an ERROR
// that names the attribute and the activity, and nothing else that could be the
// user.
func (b *bench) wantUnreadableLogged(ops ...string) {
	b.t.Helper()
	lines := strings.Split(strings.TrimSpace(b.log.String()), "\n")
	if len(lines) != len(ops) {
		b.t.Fatalf("%d lines, want %d:\n%s", len(lines), len(ops), &b.log)
	}
	for i, op := range ops {
		line := parse(b.t, []byte(lines[i]))
		delete(line, "time")
		want := fields{"level": "ERROR", "msg": "item unreadable", "activity": "create_post", "attribute": "activityCount", "op": op}
		if diff := cmp.Diff(want, line); diff != "" {
			b.t.Errorf("line %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestMemoryDecidesAboutAnUnreadableItem(t *testing.T) {
	b := newSpoiledBench(t)
	b.want(`{"count": 10}`, figures(true, "unavailable", 10, fields{"granted": 10}))
	b.want(`{"op": "status"}`, figures(false, "unavailable", 10, fields{"op": "status", "waitTime": 60000, "message": message}))
	b.wantUnreadableLogged("check", "status")
	if b.store.asked > 2 || b.Limiter.CircuitOpen() {
		t.Errorf("%d requests, circuit open: %v, want at most 2 and a closed circuit", b.store.asked, b.Limiter.CircuitOpen())
	}
}

func TestAnUnreadableItemCanBeAnError(t *testing.T) {
	b := newSpoiledBench(t)
	b.DenyOutage = true
	b.wantUnavailable("an attribute of the item has the wrong type", `{}`, `{"op": "status"}`)
	b.wantUnreadableLogged("check", "status")
}

// A release of an unreadable item is an error, because its count is unknown. A
// reset deletes the item and so repairs it.
func TestAResetRepairsAnUnreadableItem(t *testing.T) {
	b := newSpoiledBench(t)
	b.wantUnavailable("an attribute of the item has the wrong type", `{"op": "release", "requestId": "r1", "at": 1700000040000}`)
	b.wantUnreadableLogged("release")
	b.want(`{"op": "reset"}`, figures(true, "ok", 0, fields{"op": "reset"}))
	b.want(`{}`, counted(1, 1))
}

// A throttled store refuses each update of one item.
type throttled struct {
	ratelimit.Store
	userID string
}

func (s throttled) Update(ctx context.Context, w ratelimit.Write) (ratelimit.Item, bool, error) {
	if w.Key.UserID == s.userID {
		return ratelimit.Item{}, false, &ratelimit.StoreError{Failure: ratelimit.NotApplied, What: "the table is throttled"}
	}
	return s.Store.Update(ctx, w)
}

// twoTries is a budget of two attempts.
type twoTries struct{ n int }

func (b *twoTries) Next(context.Context, bool) bool { b.n++; return b.n <= 2 }

// The item of an address is throttled. Somebody behind it signs in again and again, with the right
// password. The answers have a receipt of what the table has counted, so the account stays unlocked.
func TestAReceiptBesideASubjectInAnOutage(t *testing.T) {
	for _, deny := range []bool{false, true} {
		b := newBench(t).guarding(signIn)
		b.DenyOutage = deny
		b.Limiter.Store = throttled{b.store, limits.SubjectID("ip", "192.0.2.1")}
		b.Limiter.NewBudget = func() ratelimit.Budget { return &twoTries{} }
		for i := range 8 {
			b.now = b.now.Add(10 * time.Second)
			r := Request{
				UserID: canary, Activity: "sign_in", RequestID: fmt.Sprint("try", i),
				Subjects: map[string]string{"ip": "192.0.2.1", "account": secret},
			}
			a, err := b.Decide(t.Context(), r)
			if deny {
				if err == nil {
					t.Fatalf("attempt %d: %s, want an outage", i, a.Reason)
				}
				continue
			}
			testkit.NoError(t, err)
			if !a.Allowed || a.Decision.At == 0 {
				t.Fatalf("attempt %d: %s, allowed %v, receipt %d, want one", i, a.Reason, a.Allowed, a.Decision.At)
			}
			r.Op, r.At = guards.Release, a.Decision.At
			if _, err := b.Decide(t.Context(), r); err == nil {
				t.Error("a release that failed in a part has no error")
			}
		}
		for _, key := range []string{canary, limits.SubjectID("account", secret)} {
			item := testkit.Must(b.store.Read(t.Context(), ratelimit.Key{UserID: key, Activity: "sign_in"}))(t)
			if n := item.State.Get("n"); n != 0 {
				t.Errorf("deny %v: %d attempts still count, want none", deny, n)
			}
		}
	}
}

// An instance answers one request a minute. Lambda freezes it in between, and the monotonic clock
// stands still. It goes by the clock on the wall: a kill switch works at the second request, and
// the table decides again at the first one after its only failure.
func TestAFreezeEndsEachWait(t *testing.T) {
	began, minutes := time.Now(), 0 // virtual time has no monotonic clock
	synctest.Test(t, func(t *testing.T) {
		b, s := newBench(t), &settings{}
		b.Limiter.Now = func() time.Time {
			return testkit.Later(began, time.Duration(minutes)*time.Minute, time.Duration(minutes)*10*time.Millisecond)
		}
		b.Live = &live.Follower{Source: s, Guards: cricket.All, Now: b.Limiter.Now}
		next := func(want string) {
			t.Helper()
			b.reasons(`{}`, want)
			minutes++
		}
		next("ok")
		b.store.away = errAway
		next("unavailable")
		b.store.away = nil
		next("ok")
		s.set(b, live.Settings{Activities: map[string]live.Override{"create_post": {Mode: "off"}}})
		next("ok") // it reads the switch
		next("unlimited")
	})
}
