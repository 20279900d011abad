package ratelimit

import (
	"fmt"
	"time"
)

// FixedWindow allows Limit actions in each window, whenever in it they come.
// Windows follow one another from 1970 on and are the same for every user.
//
// Worst case: Limit actions at the end of one window and Limit at the start of
// the next are twice Limit in a moment.
//
// Its state is activityCount, the actions counted, in an item of each window's
// own. The item also keeps 8 bytes for each request counted: with a user id of
// 36 characters 105 of them fit one write unit of 1,024 bytes, so a limit above
// 105 costs a second unit as its window fills.
type FixedWindow struct {
	Limit  int64         // actions in one window; at least 1
	Window time.Duration // a positive whole number of milliseconds
}

const activityCount = "activityCount"

// clockSlack is how much two clocks may differ before an item that one of them
// still counts in has expired for the other.
const clockSlack = 120 * time.Second

// Validate implements [Policy].
func (p FixedWindow) Validate() error {
	if p.Limit < 1 {
		return fmt.Errorf("limit is %d, want at least 1", p.Limit)
	}
	if p.Window < time.Millisecond || p.Window%time.Millisecond != 0 {
		return fmt.Errorf("window is %v, want a positive whole number of milliseconds", p.Window)
	}
	return nil
}

// String is the policy in words: 10 a minute, fixed window.
func (p FixedWindow) String() string {
	return fmt.Sprintf("%d %s, fixed window", p.Limit, per(p.Window))
}

// per is a time in words that follow a number.
func per(d time.Duration) string {
	switch d {
	case time.Second:
		return "a second"
	case time.Minute:
		return "a minute"
	case time.Hour:
		return "an hour"
	case 24 * time.Hour:
		return "a day"
	}
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "days"}, {time.Hour, "hours"}, {time.Minute, "minutes"}, {time.Second, "s"}} {
		if d%unit.of == 0 {
			return fmt.Sprintf("in %d %s", d/unit.of, unit.name)
		}
	}
	return fmt.Sprintf("in %d ms", d.Milliseconds())
}

// Quota implements [Policy].
func (p FixedWindow) Quota() (int64, time.Duration) { return p.Limit, p.Window }

// Place implements [Policy].
func (p FixedWindow) Place(now int64) Place {
	end := p.end(now) + clockSlack.Milliseconds()
	return Place{Window: p.key(now), Expires: (end + 999) / 1000}
}

// Plan implements [Policy].
func (p FixedWindow) Plan(_, n int64) Plan {
	most := p.Limit - n
	return func(s State) (Update, bool) {
		if s[activityCount] > most {
			return Update{}, false
		}
		return Update{
			If:   [][]Term{{{activityCount, AtMost, most}}},
			Acts: []Act{{Add, activityCount, n}},
		}, true
	}
}

// Release implements [Policy].
func (p FixedWindow) Release(n int64) Update {
	return Update{
		If:   [][]Term{{{activityCount, Above, n - 1}}},
		Acts: []Act{{Add, activityCount, -n}},
	}
}

// Figures implements [Policy]. ResetAt is the end of the window, always.
func (p FixedWindow) Figures(now int64, s State) Figures {
	used := s[activityCount]
	return Figures{
		Used:      used,
		Remaining: max(0, p.Limit-used),
		ResetAt:   p.end(now),
		WindowKey: p.key(now),
	}
}

// Wait implements [Policy].
func (p FixedWindow) Wait(now, n int64, s State) time.Duration {
	if s[activityCount] <= p.Limit-n {
		return 0
	}
	return time.Duration(p.end(now)-now) * time.Millisecond
}

func (p FixedWindow) key(now int64) int64 { return now / p.Window.Milliseconds() }
func (p FixedWindow) end(now int64) int64 { return (p.key(now) + 1) * p.Window.Milliseconds() }
