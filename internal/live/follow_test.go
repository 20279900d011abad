package live_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/limits"
)

// A bench is a follower and its table, in a bubble of test time.
type bench struct {
	*table
	*Follower
	t *testing.T
}

func newBench(t *testing.T) bench {
	table := new(table)
	return bench{table, &Follower{Source: table, Guards: limits.All}, t}
}

// set makes rate the live limit of create_post. The code's limit is 10/1m.
func (b bench) set(rate string) {
	b.t.Helper()
	b.put(fmt.Sprintf(`{"create_post": {"limit": %q}}`, rate))
	b.reads = 0
}

// look waits until the next look is due, looks, and checks the limit of
// create_post and how often the table was read.
func (b bench) look(limit int64, reads int) {
	b.t.Helper()
	time.Sleep(30 * time.Second)
	b.reads = 0
	b.Refresh(b.t.Context(), 0)()
	b.check(limit, reads)
}

func (b bench) check(limit int64, reads int) {
	b.t.Helper()
	a, _ := b.Limits().Activity(activityOf(b.t, "create_post"))
	if got := a.Limit.Most(); got != limit || b.reads != reads {
		b.t.Errorf("the limit is %d after %d reads, want %d after %d", got, b.reads, limit, reads)
	}
}

func TestLimitsAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.set("20/1m")
		b.check(10, 0) // the code's, before the first look
		b.look(20, 1)
		b.Refresh(t.Context(), 0)()
		b.check(20, 1) // another request at the same moment
		b.set("5/1m")
		time.Sleep(29 * time.Second)
		b.Refresh(t.Context(), 0)()
		b.check(20, 0) // not due yet
		time.Sleep(time.Second)
		b.Refresh(t.Context(), 0)()
		b.check(5, 1)
		b.look(5, 1) // nothing new
	})
}

func TestSettingsThatCannotBeReadKeepTheLastGoodOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.set("5/1m")
		b.look(5, 1)
		b.err = errors.New("away")
		b.look(5, 1)
		b.err = nil
		for i, document := range []string{`{`, `{"activities": {"create_post": {"limit": "none"}}}`, `{"limits": {}}`} {
			b.kept = kept{[]byte(document), 9 + int64(i)}
			b.look(5, 1)
		}
		// An activity that the code does not have is no reason to lose the
		// rest.
		b.kept = kept{[]byte(`{"activities": {"gone": {"limit": "1/1m"}, "create_post": {"limit": "7/1m"}}}`), 12}
		b.look(7, 1)
	})
}

// One lost read must not make an instance a minute late.
func TestALookThatFailedIsRepeatedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.set("5/1m")
		b.err = errors.New("away")
		b.look(10, 1)
		b.err = nil
		time.Sleep(4 * time.Second)
		b.reads = 0
		b.Refresh(t.Context(), 0)()
		b.check(10, 0) // not due yet
		time.Sleep(time.Second)
		b.Refresh(t.Context(), 0)()
		b.check(5, 1)
		time.Sleep(29 * time.Second)
		b.reads = 0
		b.Refresh(t.Context(), 0)()
		b.check(5, 0) // a look that succeeded lasts for 30 s
	})
}

// A look that finds an older document, or none, reads once more with a
// consistent read before the follower applies the change.
func TestSettingsThatGoBackAreFollowed(t *testing.T) {
	seven := kept{[]byte(`{"activities": {"create_post": {"limit": "7/1m"}}}`), 1}
	for name, tt := range map[string]struct {
		now   kept
		limit int64
	}{
		"deleted, which means no live limits":               {kept{}, 10},
		"restored with a lower version":                     {seven, 7},
		"restored, and then changed up to the same version": {kept{seven.document, 2}, 7},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.set("30/1m")
				b.set("20/1m")
				b.look(20, 1)
				b.kept = tt.now
				b.look(tt.limit, 2)
				b.look(tt.limit, 1) // it is now the last good one
				b.set("25/1m")
				b.look(25, 1)
			})
		})
	}
}

func TestAnEventuallyConsistentReadThatGoesBackChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.set("20/1m")
		first := b.kept
		b.set("5/1m")
		b.look(5, 1)
		for _, stale := range []kept{first, {}} {
			b.stale = &stale
			b.look(5, 2)
		}
		b.stale = nil
		b.look(5, 1)
	})
}

// The first read returns an older document, and the consistent read that would
// confirm it fails. Then the follower changes nothing.
func TestAConfirmationThatFailsChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.set("20/1m")
		b.look(20, 1)
		b.kept = kept{}
		b.failFrom = 2
		b.look(20, 2)
		b.failFrom = 0
		b.look(10, 2)
	})
}

func TestASlowLookDoesNotDelayTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.set("20/1m")
		b.slow = 500 * time.Millisecond
		b.takes(0, 20*time.Millisecond)
		if b.Limits() != nil {
			t.Error("the look ended before it could")
		}
		time.Sleep(time.Second)
		if b.Limits() == nil {
			t.Error("the result of a slow look is lost")
		}
	})
}

// A caller that does not ask the table waits for a slow look, for at most a
// twentieth of the time.
func TestALookAloneIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.set("20/1m")
		b.slow = 900 * time.Millisecond
		b.takes(time.Second, 900*time.Millisecond)
		b.check(20, 1)
		b.takes(time.Second, 0) // not due
		b.err = errors.New("away")
		b.slow = 999 * time.Millisecond
		time.Sleep(29100 * time.Millisecond)
		b.takes(time.Second, 999*time.Millisecond)
		time.Sleep(4001 * time.Millisecond)
		for range 3 { // a look that failed is repeated after 5 s
			b.takes(time.Second, 250*time.Millisecond)
			time.Sleep(4750 * time.Millisecond)
		}
	})
}

// takes checks how long an answer waits for a look, which it can do until longest.
func (b bench) takes(longest, want time.Duration) {
	b.t.Helper()
	began := time.Now()
	b.Refresh(b.t.Context(), longest)()
	if took := time.Since(began); took != want {
		b.t.Errorf("the answer waited %v, want %v", took, want)
	}
}
