package client_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/internal/testkit"
)

var errVerify = errors.New("the directory is away")

// Only true without an error gives an attempt back. Whatever else verify does, no guess is
// given back, and the caller learns of it.
func TestOnlyASuccessGivesAnAttemptBack(t *testing.T) {
	var leave context.CancelFunc
	ended := func(context.Context, client.Decision) (bool, error) { runtime.Goexit(); return true, nil }
	leaves := func(ctx context.Context, _ client.Decision) (bool, error) {
		leave()
		return ctx.Err() != nil, nil
	}
	for name, tt := range map[string]struct {
		verify func(context.Context, client.Decision) (bool, error)
		ok     bool
		err    error
		panics any
	}{
		"true":             {says(true, nil), true, nil, nil},
		"the caller goes":  {leaves, true, nil, nil}, // the sign-in counts as it ended
		"false":            {says(false, nil), false, nil, nil},
		"an error":         {says(false, errVerify), false, errVerify, nil},
		"true, an error":   {says(true, errVerify), false, errVerify, nil},
		"a panic":          {func(context.Context, client.Decision) (bool, error) { panic("verify panics") }, false, nil, "verify panics"},
		"nil":              {nil, false, nil, "nil"},
		"the routine ends": {ended, false, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			eachWay(t, false, func(t *testing.T, d *door) {
				var ok bool
				var err error
				var panicked any
				var ctx context.Context
				ctx, leave = context.WithCancel(t.Context())
				var attempt sync.WaitGroup
				attempt.Go(func() {
					defer leave()
					defer func() { panicked = recover() }()
					ok, err = d.Attempt(ctx, "sign_in", u1, tt.verify)
				})
				attempt.Wait()
				if ok != tt.ok || !errors.Is(err, tt.err) || tt.err == nil && err != nil {
					t.Errorf("%v, %v, want %v, %v", ok, err, tt.ok, tt.err)
				}
				if (panicked != nil) != (tt.panics != nil) || tt.panics != "nil" && panicked != tt.panics {
					t.Errorf("panics with %v, want %v", panicked, tt.panics)
				}
				want, ops := int64(1), "check"
				if tt.ok {
					want, ops = 0, "check release"
				}
				if got := d.counted(t, "sign_in", nil).ActivityCount; got != want || d.ops() != ops || len(d.warned) != 0 {
					t.Errorf("%d attempts count after %s, and %q; want %d after %s", got, d.ops(), d.warned, want, ops)
				}
			})
		})
	}
}

// A success gives the attempt back in each part: for the account and for the address.
func TestASuccessIsGivenBackInEachPart(t *testing.T) {
	eachWay(t, false, func(t *testing.T, d *door) {
		r := client.Request{UserID: "u1", Subjects: map[string]string{"ip": "192.0.2.1"}}
		for i, ok := range []bool{false, true, true} {
			got, err := d.Attempt(t.Context(), "come_in", r, func(_ context.Context, given client.Decision) (bool, error) {
				if given.Activity != "come_in" || len(given.Limits) != 2 || given.Limits[0].Remaining != int64(8-min(i, 1)) {
					t.Errorf("verify gets %+v", given)
				}
				return ok, nil
			})
			if got != ok || err != nil {
				t.Errorf("%v, %v, want %v", got, err, ok)
			}
		}
		answer := d.counted(t, "come_in", r.Subjects)
		if a := answer.Limits; len(a) != 2 || a[0].ActivityCount != 1 || a[1].ActivityCount != 1 || a[1].Locked {
			t.Errorf("%+v, want one attempt in each part", answer)
		}
	})
}

// The user who is refused is not verified, and no mail is sent.
func TestALockedUserIsNotVerified(t *testing.T) {
	eachWay(t, false, func(t *testing.T, d *door) {
		for range 3 {
			d.fail(t)
		}
		r := client.Request{UserID: "u1", OnLocked: func(client.Decision) { t.Error("a mail is sent for a refusal") }}
		ok, err := d.Attempt(t.Context(), "sign_in", r, func(context.Context, client.Decision) (bool, error) {
			t.Error("a refused user is verified")
			return true, nil
		})
		failure, is := errors.AsType[*client.Error](err)
		if ok || !is || !errors.Is(err, client.ErrLimited) || failure.Decision == nil || !failure.Decision.Locked || failure.Decision.WaitTime != 60_000 || err.Error() != "Too many attempts." {
			t.Errorf("%v, %+v", ok, failure)
		}
		if strings.Contains(d.ops(), "release") || len(d.asked) != 4 {
			t.Error(d.ops())
		}
	})
}

// OnLocked is called once: after the failure that locked.
func TestOnLockedIsCalledAfterTheFailureThatLocked(t *testing.T) {
	for name, tt := range map[string]struct {
		verify func(context.Context, client.Decision) (bool, error) // of the third attempt
		locks  bool
	}{
		"false":    {says(false, nil), true},
		"an error": {says(false, errVerify), true},
		"a panic":  {func(context.Context, client.Decision) (bool, error) { panic("verify panics") }, true},
		"true":     {says(true, nil), false}, // then the fourth locks
	} {
		t.Run(name, func(t *testing.T) {
			eachWay(t, false, func(t *testing.T, d *door) {
				var calls []client.Decision
				r := client.Request{UserID: "u1", OnLocked: func(d client.Decision) { calls = append(calls, d) }}
				for range 2 {
					if _, err := d.Attempt(t.Context(), "sign_in", r, says(false, nil)); err != nil || len(calls) != 0 {
						t.Fatalf("%v, and %d calls before the lock", err, len(calls))
					}
				}
				func() {
					defer func() { _ = recover() }()
					_, _ = d.Attempt(t.Context(), "sign_in", r, tt.verify)
				}()
				if _, err := d.Attempt(t.Context(), "sign_in", r, says(false, nil)); errors.Is(err, client.ErrLimited) != tt.locks {
					t.Error(err)
				}
				if len(calls) != 1 || calls[0].Crossed != 100 || !calls[0].Locked || calls[0].UserID != "u1" {
					t.Errorf("%d calls, want one: %+v", len(calls), calls)
				}
			})
		})
	}
}

// The address locks, and the user's own limit does not.
func TestOnLockedIsCalledForAnyPart(t *testing.T) {
	eachWay(t, false, func(t *testing.T, d *door) {
		calls := 0
		r := client.Request{UserID: "u1", Subjects: map[string]string{"ip": "192.0.2.1"}, OnLocked: func(client.Decision) { calls++ }}
		for i := range 3 {
			r.UserID = fmt.Sprint("user-", i)
			_, err := d.Attempt(t.Context(), "come_in", r, says(false, nil))
			if errors.Is(err, client.ErrLimited) != (i == 2) || calls != min(i, 1) {
				t.Errorf("attempt %d: %v, %d calls", i+1, err, calls)
			}
		}
	})
}

// A decision is about the limit that restricts the user most. Another one can lock.
func TestOnLockedIsCalledForALimitThatTheDecisionIsNotAbout(t *testing.T) {
	for figures, want := range map[string]int{`"crossed":100`: 1, `"crossed":80`: 0, `"remaining":0`: 0} {
		answer := strings.Replace(okBody, `"granted":2`, `"granted":1,"limits":[{"name":"day","limit":9},{"name":"lock","limit":5,`+figures+`}]`, 1)
		g, _ := with(t, client.Options{}, body(answer))
		calls := 0
		r := client.Request{UserID: "u1", OnLocked: func(client.Decision) { calls++ }}
		if _, err := g.Attempt(t.Context(), "create_post", r, says(false, nil)); err != nil || calls != want {
			t.Errorf("%s: %v, and %d calls, want %d", figures, err, calls, want)
		}
	}
}

// What OnLocked does wrong is a warning without ids.
func TestAPanicOfOnLockedIsAWarning(t *testing.T) {
	eachWay(t, false, func(t *testing.T, d *door) {
		r := client.Request{UserID: "account-17", OnLocked: func(d client.Decision) { panic("no mail for " + d.UserID) }}
		for range 3 {
			if ok, err := d.Attempt(t.Context(), "sign_in", r, says(false, errVerify)); ok || !errors.Is(err, errVerify) {
				t.Errorf("%v, %v", ok, err)
			}
		}
		if want := []string{"OnLocked panicked: no mail for ***"}; !slices.Equal(d.warned, want) {
			t.Errorf("warned of %q, want %q", d.warned, want)
		}
	})
}

// With Clear, a success forgets the user's failures. Without it, they stay.
func TestClearForgetsTheFailures(t *testing.T) {
	for forgets, want := range map[bool]int64{true: 0, false: 2} {
		eachWay(t, false, func(t *testing.T, d *door) {
			d.fail(t)
			d.fail(t)
			ok, err := d.Attempt(t.Context(), "sign_in", client.Request{UserID: "u1", Clear: forgets}, says(true, nil))
			if got := d.counted(t, "sign_in", nil); !ok || err != nil || got.ActivityCount != want || got.Locked {
				t.Errorf("clear %v: %v, %v, and %+v; want %d failures", forgets, ok, err, got, want)
			}
			if last := d.asked[len(d.asked)-1]; last.Op != guards.Release || last.Clear != forgets {
				t.Errorf("%+v", last)
			}
		})
	}
}

// A release can clear, too. Clear and OnLocked go with nothing else, because a guard that is
// away can't refuse them.
func TestClearGoesWithARelease(t *testing.T) {
	eachWay(t, false, func(t *testing.T, d *door) {
		given := testkit.Must(d.Check(t.Context(), "sign_in", u1))(t)
		d.fail(t)
		before := len(d.asked)
		for name, call := range map[string]func(context.Context, string, client.Request) (client.Decision, error){"check": d.Check, "status": d.Status, "renew": d.Renew, "reset": d.Reset} {
			for _, r := range []client.Request{{Clear: true}, {OnLocked: func(client.Decision) {}}} {
				r.UserID, r.At, r.RequestID = "u1", given.At, given.RequestID
				if _, err := call(t.Context(), "sign_in", r); !errors.Is(err, client.ErrValidation) || len(d.asked) != before {
					t.Errorf("%s: %v after %s", name, err, d.ops())
				}
			}
		}
		r := client.Request{UserID: "u1", At: given.At, RequestID: given.RequestID, Clear: true}
		if back, err := d.Release(t.Context(), "sign_in", r); err != nil || back.ActivityCount != 0 {
			t.Errorf("%+v, %v", back, err)
		}
	})
}

// An id from outside would let its repeats guess for free.
func TestAnAttemptHasAnIDOfItsOwn(t *testing.T) {
	eachWay(t, false, func(t *testing.T, d *door) {
		for field, r := range map[string]client.Request{
			"requestId": {RequestID: "r1"}, "count": {Count: 1}, "partial": {Partial: true}, "at": {At: 1}, "readyAt": {ReadyAt: 1}, "job": {Job: 1},
		} {
			r.UserID = "u1"
			ok, err := d.Attempt(t.Context(), "sign_in", r, says(true, nil))
			if ok || !errors.Is(err, client.ErrValidation) || !strings.HasPrefix(err.Error(), field+" does not go with an attempt") || len(d.asked) != 0 {
				t.Errorf("%s: %v, %v after %s", field, ok, err, d.ops())
			}
		}
		var ids []string
		for range 2 {
			testkit.Must(d.Attempt(t.Context(), "sign_in", u1, func(_ context.Context, given client.Decision) (bool, error) {
				ids = append(ids, given.RequestID)
				return false, nil
			}))(t)
		}
		if ids[0] == "" || ids[0] == ids[1] || d.counted(t, "sign_in", nil).ActivityCount != 2 {
			t.Errorf("the ids are %q", ids)
		}
	})
}

// The release is sent however late it is. When it may be too late, a warning names what helps.
func TestALateSuccessWarns(t *testing.T) {
	for name, tt := range map[string]struct {
		hold  bool
		takes time.Duration
		warns string
		left  int64
	}{
		"in time":      {false, 18 * time.Second, "", 0},
		"late":         {false, 19 * time.Second, "19s after its check, which may be too late to give it back. Mark the activity as Hold", 0},
		"too late":     {false, 2 * time.Minute, "2m0s after its check, which may be too late", 1},
		"in time held": {true, 14 * time.Minute, "", 0},
		"late held":    {true, 14*time.Minute + time.Second, "14m1s after its check, which may be too late to give it back. With Hold, there are 15 minutes", 0},
	} {
		t.Run(name, func(t *testing.T) {
			eachWay(t, tt.hold, func(t *testing.T, d *door) {
				ok, err := d.Attempt(t.Context(), "sign_in", u1, func(context.Context, client.Decision) (bool, error) {
					time.Sleep(tt.takes)
					return true, nil
				})
				if !ok || err != nil || d.ops() != "check release" {
					t.Errorf("%v, %v after %s", ok, err, d.ops())
				}
				if tt.warns == "" && len(d.warned) != 0 || tt.warns != "" && (len(d.warned) != 1 || !strings.Contains(d.warned[0], tt.warns)) {
					t.Errorf("warned of %q, want %q", d.warned, tt.warns)
				}
				if got := d.counted(t, "sign_in", nil).ActivityCount; got != tt.left {
					t.Errorf("%d attempts count, want %d", got, tt.left)
				}
			})
		})
	}
}

// The user has signed in, so a release that fails is a warning.
func TestASuccessIsASuccessAlthoughItsReleaseFails(t *testing.T) {
	eachWay(t, false, func(t *testing.T, d *door) {
		d.fails[guards.Release] = fmt.Errorf("%w: away", guards.ErrUnavailable)
		ok, err := d.Attempt(t.Context(), "sign_in", u1, says(true, nil))
		if !ok || err != nil || len(d.warned) != 1 || !strings.Contains(d.warned[0], "away") {
			t.Errorf("%v, %v, warned of %q", ok, err, d.warned)
		}
	})
}

// What counted nothing has no receipt, and nothing is given back. The table can have counted the
// attempt for some of its subjects, while memory decided for the others. That is given back, also
// if memory may not decide.
func TestAnAttemptIsGivenBackByItsReceipt(t *testing.T) {
	without := func(reason string) reply {
		return body(`{"allowed":true,"reason":"` + reason + `","userId":"u1","activity":"create_post","op":"check","granted":1}`)
	}
	for name, tt := range map[string]struct {
		reply    reply
		onOutage client.OnOutage
		sent     int // events: the check, and perhaps its release
	}{
		"unlimited":                      {without("unlimited"), "", 1},
		"bypassed":                       {without("bypassed"), "", 1},
		"duplicate":                      {without("duplicate"), "", 1},
		"memory":                         {without("unavailable"), "", 1},
		"outage":                         {functionError("Unavailable", "m"), "", 1},
		"memory, with a receipt":         {body(memoryBody), "", 2},
		"memory, with a receipt, denied": {body(memoryBody), client.Deny, 2},
	} {
		g, f := with(t, client.Options{}, tt.reply)
		denied := tt.onOutage != ""
		r := client.Request{UserID: "u1", Clear: !denied, OnOutage: tt.onOutage}
		ok, err := g.Attempt(t.Context(), "create_post", r, says(true, nil))
		if ok == denied || (err != nil) != denied || errors.Is(err, client.ErrLimited) != denied || errors.Is(err, client.ErrOutage) != denied {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
		if n := len(f.events); n != tt.sent || n == 2 && (f.events[1].Op != "release" || f.events[1].At != 1700000000000) {
			t.Errorf("%s: %+v were sent, want %d events", name, f.events, tt.sent)
		}
	}
}

// Of many calls, the first one decides, and only it has an effect.
func TestAnAttemptEndsOnce(t *testing.T) {
	eachWay(t, false, func(t *testing.T, d *door) {
		for _, first := range []string{"succeeded", "failed"} {
			mails := 0
			a, err := d.BeginAttempt(t.Context(), "sign_in", client.Request{UserID: "u1", OnLocked: func(client.Decision) { mails++ }})
			if err != nil || !a.Allowed {
				t.Fatalf("%+v, %v", a, err)
			}
			if first == "failed" {
				a.Failed()
			}
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() { a.Succeeded(t.Context()) })
			}
			wg.Wait()
			a.Failed()
			if mails != 0 {
				t.Errorf("%d mails", mails)
			}
		}
		if got := d.counted(t, "sign_in", nil).ActivityCount; got != 1 || d.ops() != "check release check" {
			t.Errorf("%d attempts count after %s, want the failed one", got, d.ops())
		}
	})
}
