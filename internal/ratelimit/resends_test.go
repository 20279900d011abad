package ratelimit_test

import (
	"errors"
	"testing"
	"testing/synctest"

	. "github.com/cric-talk/guards/internal/ratelimit"
)

// However many answers are lost, a release gives back its own actions and no
// others.
func TestAReleaseWhoseAnswersAreLostGivesBackOnce(t *testing.T) {
	onEachSubject(t, func(t *testing.T, s subject) {
		p := s.policy()
		if p.Queues() {
			t.Skip("a place in a queue is never given back")
		}
		synctest.Test(t, func(t *testing.T) {
			l, store := newFaulty(pass)
			l.Now = newClock().now
			used := min(2, remaining(p)-1)
			if used > 0 {
				mustCheck(t, l, request(p, "other", used))
			}
			r := request(p, "a", 1)
			r.At = mustCheck(t, l, r).At
			store.set(lose, hangAfter, lose, pass)
			for range 2 {
				if d, err := l.Decide(t.Context(), Release, r); err != nil || d.Used != used {
					t.Errorf("Release = %+v, %v, want %d used", d, err, used)
				}
			}
		})
	})
}

// A reset has no id. A second delete could remove what was counted since
// the first, so it is not sent after an unknown outcome.
func TestAResetOfUnknownOutcomeIsNotSentAgain(t *testing.T) {
	for name, f := range map[string]fault{"lost": lose, "hanging": hangAfter, "refused": refuse} {
		synctest.Test(t, func(t *testing.T) {
			l, store := newFaulty(pass)
			mustCheck(t, l, new(ids).next(2))
			store.set(f, pass)
			sent := store.count()
			_, err := l.Decide(t.Context(), Reset, new(ids).next(1))
			if e, ok := errors.AsType[*StoreError](err); !ok || e.Failure != Unknown {
				t.Errorf("%s: the error is %v, want a StoreError of unknown outcome", name, err)
			}
			if n := store.count() - sent; n != 1 {
				t.Errorf("%s: %d requests, want 1", name, n)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		l, store := newFaulty(pass)
		mustCheck(t, l, new(ids).next(2))
		store.set(throttle, pass)
		if d, err := l.Decide(t.Context(), Reset, new(ids).next(1)); err != nil || d.Used != 0 || d.Requests != 2 {
			t.Errorf("a throttled Reset = %+v, %v, want it sent again", d, err)
		}
	})
}

// A conflict between replicas, like throttling, is a request that was not
// applied. It is sent again and is no outage.
func TestARequestThatWasNotAppliedIsSentAgain(t *testing.T) {
	for _, verb := range []int{0, 1, 2, 3} {
		synctest.Test(t, func(t *testing.T) {
			l, store := newFaulty(throttle, throttle, pass)
			d, err := verbs(l)[verb](t.Context(), new(ids).next(1))
			if err != nil || d.Outage != nil || d.Reason != OK || l.CircuitOpen() {
				t.Errorf("verb %d: %+v, %v, want ok after two conflicts", verb, d, err)
			}
			if store.count() < 3 {
				t.Errorf("verb %d: %d requests, want at least 3", verb, store.count())
			}
		})
	}
}
