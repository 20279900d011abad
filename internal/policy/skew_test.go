package policy_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	. "github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/policy/policytest"
)

// At the end of a period, a clock that is 1 s ahead and one that is 1 s behind
// count together.
func TestASlidingCounterOnClocksThatDiffer(t *testing.T) {
	p := Must("sliding 50/1h")
	const end = 472_223 * 3_600_000
	var s State
	admitted := 0
	for i := range 200 {
		now := int64(end + 1000 - 2000*(i%2))
		if u, ok := p.Take(now, 1, 1, s); ok {
			if !u.Holds(s) {
				t.Fatalf("an update does not hold in %v, where it was planned", s)
			}
			s = u.Apply(s)
			admitted++
		}
	}
	if admitted != 50 {
		t.Errorf("%d actions admitted within a second by two clocks, want 50", admitted)
	}
}

// A clock that is ahead writes in the third period. A clock that is a period
// behind still needs the first one.
func TestASlidingCounterKeepsAPeriodForAClockBehind(t *testing.T) {
	timeline(t, "sliding 50/1h", []moment{
		{at: 0, take: 40, want: "ok 40/50"},
		{at: 2 * time.Hour, take: 1, want: "ok 1/50"},
		{at: 90 * time.Minute, want: "is 20/50"}, // half of the first period is covered
		{at: 90 * time.Minute, take: 31, want: "no 20/50 wait 1ms"},
		{at: 130 * time.Minute, undo: 1, of: 0, want: "no 1/50"}, // its period has no weight any more
	})
}

// An action counts until the sliding window has left its period, so until then it
// can be given back.
func TestASlidingCounterGivesBackInThePreviousPeriod(t *testing.T) {
	timeline(t, "sliding 50/1h", []moment{
		{at: 0, take: 40, want: "ok 40/50"},
		{at: 90 * time.Minute, undo: 10, of: 0, want: "ok 15/50"}, // half of 30
	})
}

// An item expires no sooner because a clock that is 2 s behind has written last.
// A window of an hour is longer than the slack of 120 s.
func TestLawExpiryOnClocksThatDiffer(t *testing.T) {
	policytest.Run(t, func(t *rapid.T, w *policytest.World) {
		p := w.Any(t)
		window := p.Rates()[0].Window.Milliseconds()
		end := (w.Latest/window + 1) * window
		ahead, behind := *w, *w
		ahead.Now = end + rapid.Int64Range(0, 1000).Draw(t, "ahead")
		behind.Now = ahead.Now - rapid.Int64Range(0, 2000).Draw(t, "behind")
		n, _ := p.Item(ahead.Now)
		if !ahead.Take(p, 1, 1) || !behind.Take(p, 1, 2) || w.Items[n] == nil {
			return
		}
		if got := p.Read(ahead.Now, 0, w.Items[n]); got.ResetAt > w.Expires[n]*1000 {
			t.Fatalf("%v: the item expires at %d and counts until %d", p, w.Expires[n]*1000, got.ResetAt)
		}
	})
}
