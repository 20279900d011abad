package ratelimit_test

import (
	"errors"
	"testing"
	"testing/synctest"

	. "github.com/cric-talk/guards/internal/ratelimit"
)

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
