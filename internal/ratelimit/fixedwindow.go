package ratelimit

import (
	"fmt"
	"math"
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
	Limit  int64         // actions in one window; 1 to 40,000
	Window time.Duration // a positive whole number of milliseconds, at most 366 days
}

const activityCount = "activityCount"

// Validate implements [Policy].
func (p FixedWindow) Validate() error {
	if p.Limit > mostIDs {
		return fmt.Errorf("limit is %d, want at most %d: the item keeps an id for each request", p.Limit, mostIDs)
	}
	return validWindow(p.Limit, p.Window)
}

// mostIDs fit the 400 KB that an item may have.
const mostIDs = 40_000

// String is the policy in words: 10 a minute, fixed window.
func (p FixedWindow) String() string {
	return fmt.Sprintf("%d %s, fixed window", p.Limit, per(p.Window))
}

// Quota implements [Policy].
func (p FixedWindow) Quota() (int64, time.Duration) { return p.Limit, p.Window }

// Place implements [Policy].
func (p FixedWindow) Place(now int64) Place {
	return Place{Window: p.key(now), Expires: expiry(p.end(now), clockSlack)}
}

// Plan implements [Policy].
func (p FixedWindow) Plan(_, n int64) Plan {
	most := p.Limit - n
	return func(s State) (Update, bool) {
		if s[activityCount] > most {
			return Update{}, false
		}
		return Update{
			If:   [][]Term{{AtMost(activityCount, most)}},
			Acts: []Act{{Add, activityCount, n}},
		}, true
	}
}

// Release implements [Policy]. It never takes the count below 0.
func (p FixedWindow) Release(_, _, n int64) (Plan, bool) {
	return countDown(activityCount, n), true
}

// countDown takes n off a counter that has so many.
func countDown(attr string, n int64) Plan {
	return func(s State) (Update, bool) {
		return Update{
			If:   [][]Term{{Within(attr, n, math.MaxInt64)}},
			Acts: []Act{{Add, attr, -n}},
		}, s[attr] >= n
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
	return millis(p.end(now) - now)
}

func (p FixedWindow) key(now int64) int64 { return now / p.Window.Milliseconds() }
func (p FixedWindow) end(now int64) int64 { return (p.key(now) + 1) * p.Window.Milliseconds() }
