package ratelimit

import (
	"fmt"
	"math"
	"math/bits"
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
// is refused where it would be more than Burst intervals ahead. And it is every,
// the interval that tat was counted by, in milliseconds: where a tier or a
// changed limit has another, what is used stays so many actions. And it is since,
// when the bucket was last full: an action of before has no weight any more.
type TokenBucket struct {
	Limit  int64         // actions in Window; 1 to a million
	Window time.Duration // a multiple of Limit in milliseconds, at most 366 days
	Burst  int64         // actions at once; 1 to a million
	Keep   time.Duration // how long an idle item is kept; zero: as long as it matters
}

const (
	tat   = "tat"
	every = "every"
	since = "since"
)

// Validate implements [Policy].
func (p TokenBucket) Validate() error {
	if err := validWindow(p.Limit, p.Window); err != nil {
		return err
	}
	if p.Window.Milliseconds()%p.Limit != 0 {
		return fmt.Errorf("window is %v, want a multiple of %d ms, so that each action takes a whole number of milliseconds", p.Window, p.Limit)
	}
	if p.Burst < 1 || p.Burst > million {
		return fmt.Errorf("burst is %d, want at least 1, and at most %d", p.Burst, million)
	}
	if longest := longestWindow.Milliseconds(); p.interval() > longest/p.Burst {
		return fmt.Errorf("burst is %d, of which one comes back every %v: want it full within 366 days", p.Burst, p.Interval())
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
	cost, room := n*p.interval(), p.room(n)
	return func(s State) (Update, bool) {
		behind := p.behind(now, s)
		switch {
		case behind > room: // also where n is above the burst
			return Update{}, false
		case behind == 0: // full
			return Update{
				If:   [][]Term{{AtMost(tat, now)}},
				Acts: []Act{{Set, tat, now + cost}, {Set, every, p.interval()}, {Set, since, now}},
			}, true
		case p.unit(s) == p.interval():
			return Update{
				If:   [][]Term{{Within(tat, now+1, now+room), Within(every, p.interval(), p.interval())}},
				Acts: []Act{{Add, tat, cost}},
			}, true
		}
		return Update{
			If:   [][]Term{{Within(tat, s[tat], s[tat]), Within(every, s[every], s[every])}},
			Acts: []Act{{Set, tat, now + behind + cost}, {Set, every, p.interval()}},
		}, true
	}
}

// Release implements [Policy]. A bucket that has been full since has nothing to
// give back.
func (p TokenBucket) Release(_, at, n int64) (Plan, bool) {
	return func(s State) (Update, bool) {
		unit := p.unit(s)
		return Update{
			If:   [][]Term{{Within(every, unit, unit), Within(since, 0, at)}},
			Acts: []Act{{Add, tat, -n * unit}},
		}, s[since] <= at
	}, true
}

// Figures implements [Policy]. ResetAt is the moment at which the bucket is full.
func (p TokenBucket) Figures(now int64, s State) Figures {
	behind := p.behind(now, s)
	used := (behind + p.interval() - 1) / p.interval()
	return Figures{
		Used:      used,
		Remaining: max(0, p.Burst-used),
		ResetAt:   now + behind,
	}
}

// Wait implements [Policy].
func (p TokenBucket) Wait(now, n int64, s State) time.Duration {
	return millis(max(0, s[tat]-now-scale(p.room(n), p.unit(s), p.interval(), 0)))
}

// behind is how long the bucket takes to be full, in milliseconds.
func (p TokenBucket) behind(now int64, s State) int64 {
	ahead, unit := max(0, s[tat]-now), p.unit(s)
	if unit == p.interval() {
		return ahead
	}
	return scale(ahead, p.interval(), unit, unit-1)
}

// unit is the interval that s is counted by.
func (p TokenBucket) unit(s State) int64 {
	if unit := s[every]; unit > 0 {
		return unit
	}
	return p.interval()
}

// interval is the time in which one action comes back, in milliseconds.
func (p TokenBucket) interval() int64 { return p.Window.Milliseconds() / p.Limit }

// room is how far ahead tat may be for n actions more, in milliseconds.
func (p TokenBucket) room(n int64) int64 { return (p.Burst - n) * p.interval() }

// scale is floor((a b + up) / c) of numbers whose product may not fit: none is
// negative, but a, for which it is 0.
func scale(a, b, c, up int64) int64 {
	if a <= 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(a), uint64(b))
	low, carry := bits.Add64(low, uint64(up), 0)
	if high += carry; high >= uint64(c) {
		return math.MaxInt64 / 4 // for ever, and still a number to add to
	}
	q, _ := bits.Div64(high, low, uint64(c))
	return int64(min(q, math.MaxInt64/4))
}
