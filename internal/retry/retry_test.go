package retry_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/cric-talk/guards/internal/retry"
)

func TestABudgetLeavesTimeForTwoMoreAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Budget{Deadline: time.Now().Add(time.Second)}
		attempts := 0
		for failed := false; ; failed = true {
			began := time.Now()
			timeout, ok := b.Next(t.Context(), failed)
			if !ok {
				break
			}
			attempts++
			if paused := time.Since(began); paused > 100*time.Millisecond {
				t.Errorf("attempt %d waited for %v, want at most 100ms", attempts, paused)
			}
			if left := time.Until(b.Deadline); timeout > left/3 {
				t.Errorf("attempt %d may take %v of %v", attempts, timeout, left)
			}
			time.Sleep(timeout) // it hangs
		}
		if attempts < 3 || time.Until(b.Deadline) < 0 {
			t.Errorf("%d attempts, and %v are left, want at least 3 and nothing overdrawn", attempts, time.Until(b.Deadline))
		}
	})
}

// Attempts that fail at once are 50 ms apart on average, after two shorter pauses.
func TestABudgetPausesAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Budget{Deadline: time.Now().Add(2 * time.Second)}
		attempts, longest := 0, time.Duration(0)
		for ok := true; ok && attempts < 1000; attempts++ {
			began := time.Now()
			_, ok = b.Next(t.Context(), attempts > 0)
			longest = max(longest, time.Since(began))
		}
		if attempts < 20 || attempts > 200 || longest < 25*time.Millisecond || longest > 100*time.Millisecond {
			t.Errorf("%d attempts in 2 s, and the longest pause is %v, want about 40, and up to 100 ms", attempts, longest)
		}
	})
}

func TestAnAttemptThatHasToConnectGetsHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Budget{Deadline: time.Now().Add(time.Second), Connected: func() bool { return false }}
		if timeout, ok := b.Next(t.Context(), false); !ok || timeout != 500*time.Millisecond {
			t.Errorf("%v, %v, want 500ms", timeout, ok)
		}
	})
}

func TestAFirstAttemptTakesWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Budget{Deadline: time.Now().Add(9 * time.Millisecond)}
		if timeout, ok := b.Next(t.Context(), false); !ok || timeout != 9*time.Millisecond {
			t.Errorf("%v, %v, want all 9ms", timeout, ok)
		}
		if timeout, ok := b.Next(t.Context(), true); ok {
			t.Errorf("a second attempt gets %v", timeout)
		}
	})
}

func TestNoAttemptAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if timeout, ok := (&Budget{Deadline: time.Now()}).Next(t.Context(), false); ok {
			t.Errorf("an attempt of %v at the deadline", timeout)
		}
	})
}

func TestNoAttemptAfterTheCallerLeft(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if timeout, ok := (&Budget{Deadline: time.Now().Add(time.Hour)}).Next(ctx, false); ok {
		t.Errorf("an attempt of %v for a caller who left", timeout)
	}
}

func TestPausesGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Pause{First: 50 * time.Millisecond, Longest: 2 * time.Second}
		most, all := 50*time.Millisecond, time.Now()
		for range 20 {
			began := time.Now()
			p.Wait(t.Context())
			if took := time.Since(began); took >= most {
				t.Errorf("a pause of %v, want less than %v", took, most)
			}
			most = min(2*most, 2*time.Second)
		}
		if took := time.Since(all); took < time.Second {
			t.Errorf("20 pauses take %v, want about 16 s", took)
		}
	})
}

func TestBefore(t *testing.T) {
	end := time.Now().Add(time.Hour)
	lambda, cancel := context.WithDeadline(t.Context(), end)
	defer cancel()
	ctx, cancel := Before(lambda, Margin)
	if got, _ := ctx.Deadline(); !got.Equal(end.Add(-100 * time.Millisecond)) {
		t.Errorf("the context ends at %v, want 100 ms before %v", got, end)
	}
	cancel()
	if ctx.Err() == nil || lambda.Err() != nil {
		t.Errorf("after cancel: %v and %v, want only the new context to end", ctx.Err(), lambda.Err())
	}
	ctx, cancel = Before(t.Context(), Margin)
	if end, ok := ctx.Deadline(); ok {
		t.Errorf("without a deadline, the context ends at %v", end)
	}
	cancel()
	if ctx.Err() == nil {
		t.Error("cancel does not end the context")
	}
}
