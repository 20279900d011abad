package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// exports is a guard with slots and with an activity to settle.
var exports = limits.Guard{Name: "exports-guard", Activities: []limits.Activity{
	{Name: "export", Limit: policy.Must("log 1/10m")},
	{Name: "complete", Limit: policy.Must("100000/1d"), Hold: true},
}}

// A bench is a client of exports. Each request first calls before, which can wait,
// and can return an error in place of the answer. The guard decides even so if the
// error is errLate.
type bench struct {
	*client.Guards

	mu       sync.Mutex
	before   func(op string) error
	requests []string
	warnings int
}

var (
	errNetwork = errors.New("unexpected EOF: connection broken")
	errLate    = errors.New("unexpected EOF: connection broken after the request")
)

// does sets before.
func (b *bench) does(before func(op string) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.before = before
}

func cutOff(string) error { return errNetwork }
func fine(string) error   { return nil }

// ops returns the requests, and warned the number of warnings.
func (b *bench) ops() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.requests)
}

func (b *bench) warned() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.warnings
}

func (b *bench) warn(error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.warnings++
}

func newBench(t *testing.T) *bench {
	t.Helper()
	h := &guard.Handler{Guard: exports, BypassRoles: []string{"admin"}, Limiter: &ratelimit.Limiter{Store: new(memstore.Store)}}
	b := &bench{before: fine}
	g, err := client.New(t.Context(), client.Options{
		Warn: b.warn,
		Client: fake(func(ctx context.Context, in *lambda.InvokeInput) (*lambda.InvokeOutput, error) {
			var e event
			if err := json.Unmarshal(in.Payload, &e); err != nil {
				return nil, err
			}
			b.mu.Lock()
			before := b.before
			b.requests = append(b.requests, e.Op)
			b.mu.Unlock()
			failure := before(e.Op)
			if failure != nil && failure != errLate { //nolint:errorlint // it is this very value
				return nil, failure
			}
			out, err := h.Invoke(ctx, in.Payload)
			if err != nil {
				return functionError("ValidationError", err.Error())(ctx)
			}
			return &lambda.InvokeOutput{Payload: out}, failure
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Guards = g
	return b
}

var u1 = client.Request{UserID: "u1"}

// slot takes the slot of u1.
func (b *bench) slot(t *testing.T) *client.Slot {
	t.Helper()
	s, err := b.Slot(t.Context(), "exports-guard/export", u1)
	if err != nil || !s.Allowed {
		t.Fatalf("%+v, %v", s, err)
	}
	return s
}

// used returns how many actions of u1 count.
func (b *bench) used(t *testing.T, activity string) int64 {
	t.Helper()
	b.does(fine)
	time.Sleep(2 * time.Second) // after an outage, calls fail at once
	d, err := b.Status(t.Context(), "exports-guard/"+activity, u1)
	if err != nil {
		t.Fatal(err)
	}
	return d.ActivityCount
}

// isLostAfter checks that the slot is lost after a time, and not a millisecond
// earlier.
func isLostAfter(t *testing.T, s *client.Slot, wait time.Duration) {
	t.Helper()
	time.Sleep(wait - time.Millisecond)
	if s.Lost() || s.Context().Err() != nil {
		t.Errorf("lost more than a millisecond too early")
	}
	time.Sleep(time.Millisecond)
	synctest.Wait()
	if !s.Lost() || !errors.Is(context.Cause(s.Context()), client.ErrSlotLost) {
		t.Errorf("not lost in time")
	}
}

func TestASlotRenewsUntilItIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		s := b.slot(t)
		for range 7 {
			time.Sleep(5 * time.Minute)
			if other, err := b.Slot(t.Context(), "exports-guard/export", u1); err != nil || other.Allowed {
				t.Fatalf("somebody else gets the slot: %+v, %v", other, err)
			}
		}
		if s.Lost() || s.Context().Err() != nil {
			t.Error("the slot is lost")
		}
		s.Release(t.Context())
		s.Release(t.Context())
		if used := b.used(t, "export"); used != 0 || s.Context().Err() == nil {
			t.Errorf("%d used after the release, and the context is %v", used, s.Context().Err())
		}
		time.Sleep(time.Hour)
		got := slices.DeleteFunc(b.ops(), func(op string) bool { return op != "renew" && op != "release" })
		if want := append(slices.Repeat([]string{"renew"}, 10), "release"); !slices.Equal(got, want) {
			t.Errorf("%q, want a renewal after each third of 10 minutes, and a release", got)
		}
	})
}

func TestASlotIsLostTwoSecondsBeforeItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.does(func(op string) error {
			if op == "check" {
				time.Sleep(time.Second) // a slow answer makes it earlier, never later
				return nil
			}
			return errNetwork
		})
		s := b.slot(t)
		isLostAfter(t, s, 10*time.Minute-3*time.Second)
		s.Release(t.Context())
		if all := b.ops(); !slices.Equal(all[len(all)-2:], []string{"release", "release"}) {
			t.Errorf("it ends with %q", all)
		}
	})
}

// The guard renews, and its answers are lost for 15 s. The answer that gets through is
// about the first renewal.
func TestALostRenewalIsRepeatedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		s := b.slot(t)
		b.does(func(string) error { return errLate })
		time.Sleep(200 * time.Second)
		synctest.Wait()
		first := time.Now()
		time.Sleep(15 * time.Second)
		if n := len(b.ops()); n < 15 || n > 60 {
			t.Errorf("%d requests, want one a second with its repeats", n)
		}
		b.does(func(string) error {
			b.does(cutOff)
			return nil
		})
		isLostAfter(t, s, time.Until(first.Add(10*time.Minute-2*time.Second)))
		if n := b.warned(); n < 15 || n > 420 {
			t.Errorf("%d warnings, want one a second", n)
		}
		s.Release(t.Context())
	})
}

// A guard that can't reach its table, and one that the app may not ask any more, is
// asked once a second for each slot.
func TestARenewalThatFailsIsNoStorm(t *testing.T) {
	check := `{"allowed":true,"reason":"ok","userId":"u1","activity":"export","op":"check","granted":1,"at":1000,"requestId":"r1","heldUntil":601000}`
	for _, failure := range []reply{functionError("Unavailable", "m"), byLambda(403, "AccessDeniedException", "")} {
		synctest.Test(t, func(t *testing.T) {
			g, f := with(t, client.Options{}, body(check), failure)
			s, err := g.Slot(t.Context(), "exports-guard/export", u1)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(220 * time.Second)
			s.Release(t.Context())
			if n := len(f.events); n < 20 || n > 25 {
				t.Errorf("%d requests, want one a second from 200 s to 220 s", n)
			}
		})
	}
}

func TestAnExpiredSlotIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		s := b.slot(t)
		if _, err := b.Reset(t.Context(), "exports-guard/export", u1); err != nil {
			t.Fatal(err)
		}
		isLostAfter(t, s, 200*time.Second)
		s.Release(t.Context())
		if want := []string{"check", "reset", "renew"}; !slices.Equal(b.ops(), want) {
			t.Errorf("%q, want %q", b.ops(), want)
		}
	})
}

func TestAReleaseThatFailsIsTriedOnceMore(t *testing.T) {
	for failures, warnings := range map[int]int{1: 0, 2: 1} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			s := b.slot(t)
			n := 0
			b.does(func(string) error {
				if n++; n <= 3*failures { // a call has three attempts
					return errNetwork
				}
				return nil
			})
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			s.Release(ctx)
			if used := b.used(t, "export"); used != int64(warnings) || b.warned() != warnings {
				t.Errorf("after %d failures, %d are used, and there are %d warnings", failures, used, b.warned())
			}
		})
	}
}

// A slot of a decision without a receipt is not renewed, not released and never lost.
func TestASlotWithoutAReceipt(t *testing.T) {
	body := func(reason string) reply {
		return body(`{"allowed":true,"reason":"` + reason + `","userId":"u1","activity":"export","op":"check","granted":1}`)
	}
	for name, r := range map[string]reply{
		"outage": broken(errNetwork), "unlimited": body("unlimited"), "bypassed": body("bypassed"), "shadow": body("shadow"), "duplicate": body("duplicate"),
	} {
		synctest.Test(t, func(t *testing.T) {
			g, f := with(t, client.Options{}, r)
			s, err := g.Slot(t.Context(), "exports-guard/export", u1)
			if err != nil || !s.Allowed {
				t.Fatalf("%s: %+v, %v", name, s, err)
			}
			asked := len(f.events)
			time.Sleep(24 * time.Hour)
			if s.Lost() || s.Context().Err() != nil {
				t.Errorf("%s: lost", name)
			}
			s.Release(t.Context())
			if err := g.Settle(t.Context(), s.Decision, 0); err != nil || len(f.events) != asked {
				t.Errorf("%s: %v, %+v", name, err, f.events)
			}
		})
	}
}

// In shadow mode, and while nothing is limited any more, work goes on.
func TestASlotThatIsNotLimitedAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		check := `{"allowed":true,"reason":"ok","userId":"u1","activity":"export","op":"check","granted":1,"at":1000,"requestId":"r1","heldUntil":601000}`
		g, f := with(t, client.Options{}, body(check), body(`{"allowed":true,"reason":"shadow","userId":"u1","activity":"export","op":"renew","granted":0}`))
		s, err := g.Slot(t.Context(), "exports-guard/export", u1)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if s.Lost() || s.Context().Err() != nil || len(f.events) != 2 {
			t.Errorf("lost: %v, after %+v", s.Lost(), f.events)
		}
		s.Release(t.Context())
		if len(f.events) != 2 {
			t.Errorf("%+v", f.events)
		}
	})
}

func TestTheCallersContextEndsTheRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		ctx, cancel := context.WithCancel(t.Context())
		s, err := b.Slot(ctx, "exports-guard/export", u1)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		cancel()
		time.Sleep(4 * time.Minute)
		s.Release(ctx)
		if want := []string{"check", "renew", "release"}; !slices.Equal(b.ops(), want) || b.used(t, "export") != 0 {
			t.Errorf("%q, want %q", b.ops(), want)
		}
	})
}

func TestOnlyALogHasSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		s, err := b.Slot(t.Context(), "exports-guard/complete", u1)
		if !errors.Is(err, client.ErrValidation) || !strings.Contains(err.Error(), "not a log") || b.used(t, "complete") != 0 {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

// An app reserves, and settles for what it used.
func TestSettle(t *testing.T) {
	for _, tt := range []struct{ used, counts int64 }{{1400, 1400}, {0, 0}, {-5, 0}, {4000, 4000}, {5000, 4000}} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			d, err := b.Check(t.Context(), "exports-guard/complete", client.Request{UserID: "u1", Count: 4000})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(14 * time.Minute)
			asked := len(b.ops())
			b.does(cutOff)
			if err := b.Settle(t.Context(), d, tt.used); errors.Is(err, client.ErrOutage) != (tt.used < 4000) {
				t.Errorf("in an outage: %v", err)
			}
			time.Sleep(time.Second)
			b.does(fine)
			for _, used := range []int64{tt.used, 5000, 100} {
				if used == 100 && tt.used >= 4000 {
					break
				}
				if err := b.Settle(t.Context(), d, used); err != nil {
					t.Error(err)
				}
				if n := len(b.ops()) - asked; tt.used >= 4000 && n != 0 {
					t.Errorf("%d requests, want none", n)
				}
			}
			if counts := b.used(t, "complete"); counts != tt.counts {
				t.Errorf("settled for %d: %d count", tt.used, counts)
			}
		})
	}
}
