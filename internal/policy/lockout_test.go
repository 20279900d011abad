package policy_test

import (
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/policy"
)

const second, minute = time.Second, time.Minute

func TestLockoutTimeline(t *testing.T) {
	timeline(t, "lockout 3/10m for 1m to 4m", []moment{ // as in the comment of the kind
		{at: 0, take: 1, want: "ok 1/3"},
		{at: 20 * second, take: 1, want: "ok 2/3"},
		{at: 30 * second, take: 2, want: "no 2/3 wait 9m30s"}, // they fit in a new series
		{at: 40 * second, take: 1, want: "ok 3/3"},
		{at: minute, take: 1, want: "no 3/3 wait 40s"},
		{at: 100*second - time.Millisecond, take: 1, want: "no 3/3 wait 1ms"},
		{at: 100 * second, take: 1, want: "ok 1/3"},
		{at: 110 * second, undo: 1, of: 40 * second, want: "no 1/3"}, // of the series before
		{at: 110 * second, undo: 1, of: 100 * second, want: "ok 0/3"},
		{at: 120 * second, take: 3, want: "ok 3/3"},
		{at: 120 * second, take: 1, want: "no 3/3 wait 2m0s"},
		{at: 240 * second, take: 3, want: "ok 3/3"},
		{at: 240 * second, take: 1, want: "no 3/3 wait 4m0s"},
		{at: 480 * second, take: 3, want: "ok 3/3"},
		{at: 480 * second, take: 1, want: "no 3/3 wait 4m0s"}, // the longest
		{at: 720*second + 4*minute, take: 3, want: "ok 3/3"},
		{at: 720*second + 4*minute, take: 1, want: "no 3/3 wait 1m0s"}, // 4 quiet minutes later
	})
}

// The attempt that locked is given back, so there was no lock. Its strike does not count.
func TestALockThatIsGivenBack(t *testing.T) {
	timeline(t, "lockout 2/10m for 1m to 1d", []moment{
		{at: 0, take: 1, want: "ok 1/2"},
		{at: second, take: 1, want: "ok 2/2"},
		{at: 2 * second, take: 1, want: "no 2/2 wait 59s"},
		{at: 3 * second, undo: 1, of: second, want: "ok 1/2"},
		{at: 4 * second, take: 1, want: "ok 2/2"},
		{at: 64 * second, take: 2, want: "ok 2/2"},
		{at: 64 * second, take: 1, want: "no 2/2 wait 2m0s"},
		{at: 65 * second, undo: 3, of: 64 * second, want: "no 2/2"}, // more than there are
	})
}

// A series that did not lock keeps its strikes until a day after its latest attempt.
func TestWhenStrikesAreForgotten(t *testing.T) {
	for later, want := range map[time.Duration]string{
		24*time.Hour - second: "no 3/3 wait 2m0s",
		24 * time.Hour:        "no 3/3 wait 1m0s",
	} {
		timeline(t, "lockout 3/10m for 1m to 1d", []moment{
			{at: 0, take: 3, want: "ok 3/3"},
			{at: minute, take: 1, want: "ok 1/3"},
			{at: 6 * minute, take: 1, want: "ok 2/3"},
			{at: 6*minute + later, take: 3, want: "ok 3/3"},
			{at: 6*minute + later, take: 1, want: want},
		})
	}
}

// A clock that is behind shortens no lock, and makes no series longer.
func TestALockoutOnClocksThatDiffer(t *testing.T) {
	timeline(t, "lockout 3/1m for 30s", []moment{
		{at: 10 * second, take: 1, want: "ok 1/3"},
		{at: 8 * second, take: 1, want: "ok 2/3"},
		{at: 8 * second, take: 2, want: "no 2/3 wait 1m0s"},
		{at: 9 * second, take: 1, want: "ok 3/3"},
		{at: 9 * second, take: 1, want: "no 3/3 wait 31s"}, // 30 s after the clock ahead
		{at: 40 * second, take: 1, want: "ok 1/3"},
		{at: 41 * second, undo: 1, of: 40 * second, want: "ok 0/3"},
	})
}

// By a new text, no lock lasts longer than it says, and a higher limit unlocks.
func TestALockoutWithAnotherText(t *testing.T) {
	timeline(t, "lockout 2/10m for 30m to 1d", []moment{
		{at: 0, take: 2, want: "ok 2/2"},
		{at: second, take: 1, want: "no 2/2 wait 29m59s"},
		{at: second, now: "lockout 2/10m for 1m", take: 1, want: "no 2/2 wait 59s"},
		{at: second, now: "lockout 3/10m for 30m", take: 1, want: "ok 3/3"},
		{at: 2 * second, now: "lockout 2/10m for 1m", take: 1, want: "no 3/2 wait 59s"},
	})
}

func TestClear(t *testing.T) {
	p := Must("day: 20/1d, long: lockout 9/1d for 7d, try: lockout 2/10m for 1m to 1d")
	s := take(t, p, start, 1, nil)
	s = take(t, p, start+1, 1, s)
	u, ok := p.Undo(start+2, start+1, start+1, 1, s)
	if u = p.Clear(u); !ok || !u.Holds(s) {
		t.Fatalf("%+v, %v", u, ok)
	}
	r := p.Read(start+2, 0, u.Apply(s))
	if r.Each[0].Used != 1 || r.Each[1].Used != 0 || r.Each[2].Used != 0 || len(u.Apply(s)) != 1 {
		t.Errorf("%v, want one of the day, and no failures", u.Apply(s))
	}
	if u = p.Clear(Update{}); !u.Holds(s) || len(u.Apply(s)) != 1 {
		t.Errorf("%+v changes %v, want no failures", u, s)
	}
	alone := Must("lockout 2/10m for 1m")
	s = take(t, alone, start, 1, nil)
	u, _ = alone.Undo(start+1, start, start, 1, s)
	if u = alone.Clear(u); !u.Holds(s) || len(u.Apply(s)) != 0 || !u.Holds(nil) {
		t.Errorf("%+v changes %v, want no failures, whatever is counted by then", u, s)
	}
	if fixed := Must("10/1m"); fixed.HasLockout() || !p.HasLockout() || len(fixed.Clear(Update{}).Acts) != 0 {
		t.Error("a fixed window has no failures to clear")
	}
}

func TestALockIsTold(t *testing.T) {
	p := Must("lockout 2/10m for 1m")
	s := take(t, p, start, 1, nil)
	if r := p.Cross(start, 1, s, p.Read(start, 0, s)); r.Locked || r.Crossed != 0 || r.ResetAt != start+600_000 {
		t.Errorf("%+v, want no lock", r)
	}
	s = take(t, p, start+5, 1, s)
	if r := p.Cross(start+5, 1, s, p.Read(start+5, 0, s)); !r.Locked || r.Crossed != 100 || r.ResetAt != start+60_005 {
		t.Errorf("%+v, want a lock until %d", r, start+60_005)
	}
	if r := p.Read(start+60_005, 0, s); r.Locked || r.Used != 0 || r.Remaining != 2 || r.ResetAt != start+60_005 {
		t.Errorf("%+v, want no lock", r)
	}
}

// Two attempts that are planned at once, in an item with a series that is over, count twice. Here,
// clocks that differ by more than the window began the series and counted in it.
func TestTwoAttemptsBeginASeries(t *testing.T) {
	p := Must("lockout 3/1s for 1s")
	s := take(t, p, start+1000, 1, nil)
	s = take(t, p, start, 1, s)
	u, _ := p.Undo(start+1000, start, start, 1, s)
	s = u.Apply(s) // one attempt, of a series from 0 s to 1 s
	one, _ := p.Take(start+1000, 1, 1, s)
	other, _ := p.Take(start+1000, 1, 2, s)
	if s = one.Apply(s); other.Holds(s) {
		t.Errorf("%+v holds in %v, want only one of two attempts to begin a series", other, s)
	}
}
