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

// Each row is what the first attempt gets of the time that is left, and whether it is
// followed by a second one.
func TestWhatTheFirstAttemptGets(t *testing.T) {
	for name, tt := range map[string]struct {
		left      time.Duration
		connected bool
		gone      bool          // whether the caller has left
		timeout   time.Duration // 0: no attempt
		again     bool
	}{
		"a third":                      {time.Second, true, false, time.Second / 3, true},
		"half, if it has to connect":   {time.Second, false, false, time.Second / 2, true},
		"what is left, if it is short": {9 * time.Millisecond, true, false, 9 * time.Millisecond, false},
		"nothing at the deadline":      {0, true, false, 0, false},
		"nothing without the caller":   {time.Hour, true, true, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &Budget{Deadline: time.Now().Add(tt.left), Connected: func() bool { return tt.connected }}
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				if tt.gone {
					leave()
				}
				if timeout, ok := b.Next(ctx, false); ok != (tt.timeout > 0) || timeout != tt.timeout {
					t.Errorf("%v, %v, want %v", timeout, ok, tt.timeout)
				}
				if timeout, ok := b.Next(ctx, true); ok != tt.again {
					t.Errorf("a second attempt gets %v, %v", timeout, ok)
				}
			})
		})
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
