package ratelimit

import (
	"fmt"
	"math"
	"time"
)

// TokenBucket allows Burst actions at once, and after them Limit in each
// Window, evenly. A Burst of 1 is a minimum interval: one action every
// Window/Limit.
//
// Worst case: in any time t there are at most Burst and t times Limit/Window
// actions.
//
// Its state is tat, the theoretical arrival time of the generic cell rate
// algorithm (ITU-T I.371, virtual scheduling), in Unix milliseconds: the moment
// at which the bucket is full again. An action moves it on by one interval, and
// is refused where it would be more than Burst intervals ahead.
type TokenBucket struct {
	Limit  int64         // actions in Window; at least 1
	Window time.Duration // a multiple of Limit in milliseconds
	Burst  int64         // actions at once; at least 1
	Keep   time.Duration // how long an idle item is kept; zero: as long as it matters
}

const tat = "tat"

// Validate implements [Policy].
func (p TokenBucket) Validate() error {
	if err := validWindow(p.Limit, p.Window); err != nil {
		return err
	}
	if p.Window.Milliseconds()%p.Limit != 0 {
		return fmt.Errorf("window is %v, want a multiple of %d ms, so that each action takes a whole number of milliseconds", p.Window, p.Limit)
	}
	if p.Burst < 1 || p.Burst > math.MaxInt32 {
		return fmt.Errorf("burst is %d, want at least 1", p.Burst)
	}
	return nil
}

// String is the policy in words: 15 at once, then 10 a minute.
func (p TokenBucket) String() string {
	rate := fmt.Sprintf("%d %s", p.Limit, per(p.Window))
	if p.Limit == 1 {
		rate = "one every " + span(p.Window)
	}
	if p.Burst == 1 {
		return rate
	}
	return fmt.Sprintf("%d at once, then %s", p.Burst, rate)
}

// Quota implements [Policy]: the burst, and the time in which it comes back.
func (p TokenBucket) Quota() (int64, time.Duration) { return p.Burst, millis(p.Burst * p.interval()) }

// Interval is the time in which one action comes back.
func (p TokenBucket) Interval() time.Duration { return millis(p.interval()) }

// Place implements [Policy].
func (p TokenBucket) Place(now int64) Place {
	return Place{Expires: expiry(now+p.Burst*p.interval(), max(clockSlack, p.Keep))}
}

// Plan implements [Policy].
func (p TokenBucket) Plan(now, n int64) Plan {
	cost := n * p.interval()
	latest := now + p.room(n)
	return func(s State) (Update, bool) {
		switch {
		case latest < now || s[tat] > latest:
			return Update{}, false
		case s[tat] <= now: // full
			return Update{
				If:   [][]Term{{AtMost(tat, now)}},
				Acts: []Act{{Set, tat, now + cost}},
			}, true
		}
		return Update{
			If:   [][]Term{{Within(tat, now+1, latest)}},
			Acts: []Act{{Add, tat, cost}},
		}, true
	}
}

// Release implements [Policy]. A bucket that is full stays so.
func (p TokenBucket) Release(_, _, n int64) (Plan, bool) {
	return always(Update{Acts: []Act{{Add, tat, -n * p.interval()}}}), true
}

// Figures implements [Policy]. ResetAt is the moment at which the bucket is full.
func (p TokenBucket) Figures(now int64, s State) Figures {
	behind := max(0, s[tat]-now)
	used := (behind + p.interval() - 1) / p.interval()
	return Figures{
		Used:      used,
		Remaining: max(0, p.Burst-used),
		ResetAt:   now + behind,
	}
}

// Wait implements [Policy].
func (p TokenBucket) Wait(now, n int64, s State) time.Duration {
	return millis(max(0, s[tat]-now-p.room(n)))
}

// interval is the time in which one action comes back, in milliseconds.
func (p TokenBucket) interval() int64 { return p.Window.Milliseconds() / p.Limit }

// room is how far ahead tat may be for n actions more, in milliseconds.
func (p TokenBucket) room(n int64) int64 { return (p.Burst - n) * p.interval() }
