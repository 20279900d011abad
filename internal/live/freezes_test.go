package live_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// A frozenInstance is an instance that Lambda freezes after each answer. The clock
// goes on meanwhile, and the bubble's time does not: it is the time that the process
// runs.
type frozenInstance struct {
	*Follower
	t      *testing.T
	stored atomic.Pointer[Stored]
	frozen atomic.Int64 // so far
	slow   atomic.Int64 // how long the table takes for an answer, by the clock; dead: there is none
}

const dead = -1

// newFrozenInstance returns an instance whose table takes that long.
func newFrozenInstance(t *testing.T, slow time.Duration) *frozenInstance {
	t.Helper()
	i := &frozenInstance{t: t}
	i.Follower = &Follower{Source: i, Guards: cricket.All, Now: i.clock}
	i.slow.Store(int64(slow))
	i.put(1, `"limit": "20/1m"`)
	return i
}

// put makes these members the override of create_post. The code's limit is 10/1m.
func (i *frozenInstance) put(version int64, members string) {
	i.stored.Store(&Stored{Version: version, Document: fmt.Appendf(nil, `{"activities": {"create_post": {%s}}}`, members)})
}

func (i *frozenInstance) clock() time.Time { return time.Now().Add(time.Duration(i.frozen.Load())) }

// Settings implements [Source]. What was answered in a freeze is read after it.
func (i *frozenInstance) Settings(ctx context.Context, _ bool) (Stored, error) {
	found, slow := *i.stored.Load(), i.slow.Load()
	for answered := i.clock().Add(time.Duration(slow)); slow == dead || i.clock().Before(answered); {
		time.Sleep(time.Millisecond)
		if ctx.Err() != nil {
			return Stored{}, ctx.Err()
		}
	}
	return found, nil
}

func (*frozenInstance) Blocks(context.Context, bool) (Stored, error) { return Stored{}, nil }

// decide makes a decision of 10 ms, freezes the instance, and returns the mode and the
// limit that the decision used.
func (i *frozenInstance) decide(freeze time.Duration) string {
	i.CatchUp(i.t.Context())
	a, _ := i.Limits().Activity(activityOf(i.t, "create_post"))
	terms := i.Limits().Terms(Query{Activity: activityOf(i.t, "create_post"), UserID: "u1", At: i.clock()})
	wait := i.Refresh(i.t.Context(), 0)
	time.Sleep(10 * time.Millisecond)
	wait()
	i.frozen.Add(int64(freeze))
	return fmt.Sprint(a.Limit, " ", terms.Exempt())
}

// An instance is frozen between two decisions, while a read takes 20 ms longer than the
// decision that began it. It uses a change from its second decision on.
func TestAnInstanceThatIsFrozenInEachReadFollows(t *testing.T) {
	freeze := func() time.Duration { return 12*time.Second + rand.N(28*time.Second) }
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			i := newFrozenInstance(t, 50*time.Millisecond) // a decision takes 10 ms, and then waits for 20 ms
			for n, want := range []string{"10/1m false", "20/1m false", "20/1m false"} {
				if got := i.decide(freeze()); got != want {
					t.Fatalf("decision %d uses %s, want %s", n+1, got, want)
				}
			}
			i.put(2, `"mode": "off"`) // the kill switch
			for set := i.clock(); i.clock().Sub(set) < 30*time.Second; {
				i.decide(freeze())
			}
			i.decide(freeze()) // a read is due by now
			if got := i.decide(freeze()); got != "10/1m true" {
				t.Errorf("after the kill switch, the instance uses %s", got)
			}
			time.Sleep(2 * time.Second) // for the last read
		})
	}
}

// A connection is dead after a freeze, so a read gets no answer. The next decision waits
// for it for 20 ms, and begins another read 5 s after the first one, not after 30 s. The
// dead read ends after the process has run for one second.
func TestAReadOnADeadConnectionIsRepeatedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newFrozenInstance(t, dead)
		i.decide(12 * time.Second)
		i.slow.Store(int64(50 * time.Millisecond))
		began := time.Now()
		if got, took := i.decide(12*time.Second), time.Since(began); got != "10/1m false" || took != 50*time.Millisecond {
			t.Errorf("the second decision uses %s and takes %v, want the code's limit and 20 ms more than the others", got, took)
		}
		if got := i.decide(0); got != "20/1m false" {
			t.Errorf("the third decision uses %s", got)
		}
		time.Sleep(2 * time.Second) // otherwise a read that never ends fails the test
	})
}

// The first decision after a freeze waits for the read, and the ones after it do not.
func TestAnInterruptedReadIsWaitedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newFrozenInstance(t, dead)
		i.decide(2 * time.Second)
		for n, want := range []time.Duration{30 * time.Millisecond, 10 * time.Millisecond, 10 * time.Millisecond} {
			began := time.Now()
			if i.decide(time.Second); time.Since(began) != want {
				t.Errorf("decision %d takes %v, want %v", n+2, time.Since(began), want)
			}
		}
		time.Sleep(2 * time.Second) // for the read
	})
}

// A read that was interrupted ends after a later one. What it found is older.
func TestAReadThatEndsAfterALaterOneChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newFrozenInstance(t, 12*time.Second+200*time.Millisecond)
		i.put(2, `"limit": "20/1m"`)
		i.decide(12 * time.Second)
		i.slow.Store(int64(time.Millisecond))
		i.put(1, `"limit": "30/1m"`) // restored, so only the order of the reads tells which is newer
		i.decide(0)
		for range 30 {
			if got := i.decide(0); got != "30/1m false" {
				t.Fatalf("a decision uses %s", got)
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
}
