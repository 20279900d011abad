package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/cric-talk/guards/internal/ratelimit"
)

// after carries the request out and answers d later, unless nobody waits then.
func after(d time.Duration) fault {
	return func(ctx context.Context, perform func() error) error {
		err := perform()
		select {
		case <-time.After(d):
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// byTable returns the share of decisions that the table made, of one decision
// every 100 ms for some time.
func byTable(t *testing.T, l *Limiter, r *ids, d time.Duration) float64 {
	t.Helper()
	decisions, table := 0, 0
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		one := r.next(1)
		one.UserID = fmt.Sprint("u", r.last) // each user has room
		if decisions++; mustCheck(t, l, one).Reason == OK {
			table++
		}
	}
	return float64(table) / float64(decisions)
}

// A table that answers slowly decides after an outage as it did before, however
// slow it is: 5 s after its return, or 10 s if an answer takes more than 250 ms.
func TestASlowTableDecidesAgain(t *testing.T) {
	for _, timeout := range []time.Duration{300 * time.Millisecond, time.Second, 5 * time.Second} {
		for _, ms := range []int{20, 60, 90, 120, 200, 240, 260, 300, 320, 400, 600, 900} {
			answers := time.Duration(ms) * time.Millisecond
			if answers == timeout { // it comes at the moment when the decision gives up
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				l, store := newFaulty(after(answers))
				l.Timeout = timeout
				var r ids
				before := byTable(t, l, &r, 2*time.Minute)
				store.set(hang)
				byTable(t, l, &r, 3*time.Second)
				store.set(after(answers))
				back := 5 * time.Second
				if answers > 250*time.Millisecond {
					back *= 2
				}
				time.Sleep(100 * time.Millisecond)
				byTable(t, l, &r, back)
				if again := byTable(t, l, &r, 2*time.Minute); again < before-0.02 {
					t.Errorf("DECISION_TIMEOUT %v, answers after %v: the table made %.0f %% of the decisions before an outage and %.0f %% after it", timeout, answers, 100*before, 100*again)
				}
				time.Sleep(5 * time.Second)
			})
		}
	}
}

// A probe counts nothing: not if it is answered, not if it is late, and not if
// its answer is lost.
func TestAProbeCountsNothing(t *testing.T) {
	for name, f := range map[string]fault{"late": after(300 * time.Millisecond), "lost": lose, "too late": hangAfter} {
		synctest.Test(t, func(t *testing.T) {
			l, store, r := opened(t, hang)
			for range 4 {
				time.Sleep(5 * time.Second)
				store.set(f)
				if d := mustCheck(t, l, r.next(1)); d.Allowed && d.Reason != Unavailable {
					t.Errorf("%s: %+v, want it from memory", name, d)
				}
				settle()
				store.set(hang)
				for !l.CircuitOpen() {
					mustCheck(t, l, r.next(1))
				}
			}
			item, err := store.Store.Read(t.Context(), Key{UserID: "u", Activity: "act", Window: time.Now().UnixMilli() / 60_000})
			if err != nil || item.State.Get("activityCount") != 0 {
				t.Errorf("%s: the table has %v, %v, want nothing, because each action was decided from memory", name, item.State, err)
			}
			settle()
		})
	}
}

// A store refuses a probe, so it writes not even an empty item.
func TestTheStoreRefusesAProbe(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		l, f := newFaulty(deny)
		performed, c := make(chan bool, 9), newClock()
		f.Store, l.Now = afterEach(store, func(_ Write, done bool) { performed <- done }), c.now
		var r ids
		mustCheck(t, l, r.next(1))
		f.set(pass, deny) // the probe, and then the decision that sent it
		c.at(5 * time.Second)
		mustCheck(t, l, r.next(1))
		select { // the probe can outlive its decision
		case done := <-performed:
			if done || len(performed) > 0 {
				t.Errorf("an update was performed: %v, and %d others were sent, want one that was refused", done, len(performed))
			}
		case <-time.After(time.Minute):
			t.Error("no update was sent")
		}
	})
}

// A probe that fails late does not open a circuit that was closed meanwhile.
func TestALateFailureOfAProbeOpensNothing(t *testing.T) {
	for name, end := range map[string]error{
		"no answer": errors.New("connection reset"), "throttled": &StoreError{Failure: NotApplied, What: "throttled"}, "denied": &StoreError{Failure: Misconfigured, What: "denied"},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, store := newFaulty(hang)
			l.Timeout = 5 * time.Second
			var back atomic.Int64
			l.Now = func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }
			var r ids
			mustCheck(t, l, r.next(1))
			time.Sleep(5 * time.Second)
			store.set(func(context.Context, func() error) error {
				time.Sleep(time.Second)
				return end
			}, pass)
			mustCheck(t, l, r.next(1))
			back.Store(int64(time.Hour)) // so the next decision probes, too
			if d := mustCheck(t, l, r.next(1)); d.Reason != OK {
				t.Errorf("%s: the second probe: %+v, want ok", name, d)
			}
			store.set(hang)
			time.Sleep(time.Second)
			if _, key := l.CircuitProbed(Key{UserID: "u", Activity: "act"}); l.CircuitOpen() || !key.IsZero() {
				t.Errorf("%s: the circuit is open again", name)
			}
			time.Sleep(3 * time.Second)
		})
	}
}
