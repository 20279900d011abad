package client_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/testkit"
)

// exports is a guard with slots and with an activity to settle.
var exports = limits.Guard{Name: "exports-guard", Activities: []limits.Activity{
	{Name: "export", Limit: policy.Must("log 1/10m")},
	{Name: "complete", Limit: policy.Must("100000/1d"), Hold: true},
}}

// slot takes the slot of a user.
func (b *local) slot(t *testing.T, user string) *client.Slot {
	t.Helper()
	s, err := b.Slot(t.Context(), "exports-guard/export", client.Request{UserID: user})
	if err != nil || !s.Allowed {
		t.Fatalf("%+v, %v", s, err)
	}
	return s
}

// used returns how many actions of u1 count.
func (b *local) used(t *testing.T, activity string) int64 {
	t.Helper()
	b.does(fine)
	time.Sleep(2 * time.Second) // after an outage, calls fail at once
	return testkit.Must(b.Status(t.Context(), "exports-guard/"+activity, u1))(t).ActivityCount
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
		b := newLocal(t, exports)
		s := b.slot(t, "u1")
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
		b := newLocal(t, exports)
		b.does(func(op string) error {
			if op == "check" {
				time.Sleep(time.Second) // a slow answer makes it earlier, never later
				return nil
			}
			return errNetwork
		})
		s := b.slot(t, "u1")
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
		b := newLocal(t, exports)
		s := b.slot(t, "u1")
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

// Two releases that fail at the same moment are two warnings, because each slot stays taken.
func TestEachSlotThatIsNotReleasedIsAWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newLocal(t, exports)
		first, second := b.slot(t, "u1"), b.slot(t, "u2")
		b.does(cutOff)
		var wg sync.WaitGroup
		for _, s := range []*client.Slot{first, second} {
			wg.Go(func() { s.Release(t.Context()) })
		}
		wg.Wait()
		if n := b.warned(); n != 2 {
			t.Errorf("%d warnings, want 2", n)
		}
	})
}

// A guard that can't reach its table, and one that the app may not ask any more, is
// asked once a second for each slot.
func TestARenewalThatFailsIsNoStorm(t *testing.T) {
	check := `{"allowed":true,"reason":"ok","userId":"u1","activity":"export","op":"check","granted":1,"at":1000,"requestId":"r1","heldUntil":601000}`
	for _, failure := range []reply{functionError("Unavailable", "m"), byLambda(403, "AccessDeniedException", "")} {
		synctest.Test(t, func(t *testing.T) {
			g, f := with(t, client.Options{}, body(check), failure)
			s := testkit.Must(g.Slot(t.Context(), "exports-guard/export", u1))(t)
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
		b := newLocal(t, exports)
		s := b.slot(t, "u1")
		testkit.Must(b.Reset(t.Context(), "exports-guard/export", u1))(t)
		isLostAfter(t, s, 200*time.Second)
		s.Release(t.Context())
		if want := []string{"check", "reset", "renew"}; !slices.Equal(b.ops(), want) {
			t.Errorf("%q, want %q", b.ops(), want)
		}
	})
}

// While the guard limits nobody, a slot keeps its receipt and its end. Afterwards it is
// renewed and released, if it was not lost meanwhile. A slot lasts 10 minutes, and is
// renewed after 200 s. Without a receipt, it is asked again sooner each time.
func TestASlotWhileTheGuardLimitsNobody(t *testing.T) {
	for name, tt := range map[string]struct {
		from, until time.Duration // when the mode holds
		mode        string
		reset       bool // whether the slot is gone meanwhile
		works       time.Duration
		lost        bool
		ends        string // the last requests
	}{
		"off for a while":       {from: time.Minute, until: 5 * time.Minute, mode: live.Off, works: time.Hour, ends: "renew release"},
		"off nearly to the end": {from: time.Minute, until: 595 * time.Second, mode: live.Off, works: time.Hour, ends: "renew release"},
		"released while off":    {from: time.Minute, until: 2 * time.Hour, mode: live.Off, works: 9 * time.Minute, ends: "renew release"},
		"off for too long":      {from: time.Minute, until: 2 * time.Hour, mode: live.Off, works: 598 * time.Second, lost: true, ends: "renew release"},
		"shadow":                {from: time.Minute, until: 2 * time.Hour, mode: live.Shadow, works: time.Hour, ends: "renew release"},
		"gone in shadow":        {from: time.Minute, until: 5 * time.Minute, mode: live.Shadow, reset: true, works: 7 * time.Minute, lost: true, ends: "reset renew" + " renew"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newLocal(t, exports)
				s := b.slot(t, "u1")
				time.AfterFunc(tt.from, func() {
					if tt.reset {
						if _, err := b.Reset(t.Context(), "exports-guard/export", u1); err != nil {
							t.Error(err)
						}
					}
					b.switchTo(tt.mode)
				})
				time.AfterFunc(tt.until, func() { b.switchTo(live.Enforce) })
				time.Sleep(tt.works)
				synctest.Wait()
				if s.Lost() != tt.lost || (context.Cause(s.Context()) != nil) != tt.lost {
					t.Errorf("lost: %v, want %v", s.Lost(), tt.lost)
				}
				s.Release(t.Context())
				if ops := strings.Join(b.ops(), " "); !strings.HasSuffix(ops, tt.ends) || len(ops) > 60*len("renew ") {
					t.Errorf("the requests are %q, want %q at the end", ops, tt.ends)
				}
				b.switchTo(live.Enforce)
				if used, off := b.used(t, "export"), tt.mode == live.Off && tt.until > tt.works; used != 0 && !off {
					t.Errorf("%d slots are used after the release", used)
				}
			})
		})
	}
}

func TestTheCallersContextEndsTheRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newLocal(t, exports)
		ctx, cancel := context.WithCancel(t.Context())
		s := testkit.Must(b.Slot(ctx, "exports-guard/export", u1))(t)
		time.Sleep(5 * time.Minute)
		cancel()
		time.Sleep(4 * time.Minute)
		s.Release(ctx)
		if want := []string{"check", "renew", "release"}; !slices.Equal(b.ops(), want) || b.used(t, "export") != 0 {
			t.Errorf("%q, want %q", b.ops(), want)
		}
	})
}

// An app returns without a Release if a slot is refused. So the context of a refused slot has
// ended, and nothing of it stays with the caller's. If the guard limits nobody, the work goes on.
func TestTheContextOfARefusedSlotEnds(t *testing.T) {
	for mode, ended := range map[string]bool{live.Enforce: true, live.Shadow: false, live.Off: false} {
		synctest.Test(t, func(t *testing.T) {
			b := newLocal(t, exports)
			defer b.slot(t, "u1").Release(t.Context())
			b.switchTo(mode)
			s := testkit.Must(b.Slot(t.Context(), "exports-guard/export", u1))(t)
			if got := s.Context().Err() != nil; s.Allowed == ended || got != ended || s.Lost() {
				t.Errorf("%s: %+v, the context has ended: %v, want %v", mode, s.Decision, got, ended)
			}
		})
	}
}

// An app reserves, and settles for what it used, once.
func TestSettle(t *testing.T) {
	for _, tt := range []struct{ used, counts int64 }{{1400, 1400}, {0, 0}, {4000, 4000}, {5000, 4000}} {
		synctest.Test(t, func(t *testing.T) {
			b := newLocal(t, exports)
			d := testkit.Must(b.Check(t.Context(), "exports-guard/complete", client.Request{UserID: "u1", Count: 4000}))(t)
			time.Sleep(14 * time.Minute)
			for range 2 {
				testkit.NoError(t, b.Settle(t.Context(), d, tt.used))
			}
			if n := len(b.ops()); tt.used >= 4000 && n != 1 {
				t.Errorf("%d requests, want the check alone", n)
			}
			if counts := b.used(t, "complete"); counts != tt.counts {
				t.Errorf("settled for %d: %d count", tt.used, counts)
			}
		})
	}
}

// To settle wrongly would give back everything, or lose a slot. So nothing is sent.
func TestAWrongSettlementIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newLocal(t, limits.Guard{Name: "exports-guard", Activities: []limits.Activity{{Name: "export", Limit: policy.Must("log 3/10m")}}})
		s := testkit.Must(b.Slot(t.Context(), "exports-guard/export", client.Request{UserID: "u1", Count: 3}))(t)
		other := s.Decision
		other.RequestID = "another"
		for name, tt := range map[string]struct {
			d    client.Decision
			used int64
		}{"of a slot": {s.Decision, 1}, "negative": {other, -1}, "without a receipt": {client.Decision{}, -1}} {
			if err := b.Settle(t.Context(), tt.d, tt.used); !errors.Is(err, client.ErrValidation) {
				t.Errorf("%s: %v", name, err)
			}
		}
		time.Sleep(time.Hour)
		if s.Lost() || slices.Contains(b.ops(), "release") {
			t.Errorf("lost: %v, after %q", s.Lost(), b.ops())
		}
		s.Release(t.Context())
	})
}
