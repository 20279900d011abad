package ratelimit

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// SlidingWindow allows an action while floor(x + y z) is below Limit, where x
// counts this period's actions, y the last one's, and z is the part of the last
// period that the sliding window still covers. Periods are Window long and
// follow one another from 1970 on.
//
// Worst case: it takes the last period's actions to have come evenly. Where all
// came at its end, up to twice Limit lie within one Window.
//
// Its state is a counter for each period, named c and the period's number: this
// one's, the last one's, and one more, for a clock that is a period behind. All
// of it is whole numbers; no float decides.
type SlidingWindow struct {
	Limit  int64         // actions in a window; 1 to a million
	Window time.Duration // a positive whole number of milliseconds, at most 366 days
}

// mostSteps is how many steps of the staircase fit one guard: each takes four
// of the operators, and a few are others'.
const mostSteps = 65

// pause is how many periods without a request leave nothing behind.
const pause = 12

// Validate implements [Policy].
func (p SlidingWindow) Validate() error { return validWindow(p.Limit, p.Window) }

// String is the policy in words: 50 an hour, sliding window.
func (p SlidingWindow) String() string {
	return fmt.Sprintf("%d %s, sliding window", p.Limit, per(p.Window))
}

// Quota implements [Policy].
func (p SlidingWindow) Quota() (int64, time.Duration) { return p.Limit, p.Window }

// Place implements [Policy].
func (p SlidingWindow) Place(now int64) Place {
	return Place{Expires: expiry((p.key(now)+2)*p.length(), clockSlack)}
}

// Plan implements [Policy]. What refuses is x + v + n > Limit where v =
// floor(y z): a staircase over x and y, whose steps are the guard.
func (p SlidingWindow) Plan(now, n int64) Plan {
	k := p.key(now)
	this, last := period(k), period(k-1)
	return func(s State) (Update, bool) {
		most := p.Limit - n // of x + v
		at := p.weight(now, s[last])
		if s[this]+at > most {
			return Update{}, false
		}
		u := Update{Acts: []Act{{Add, this, n}}}
		if s[this] > 0 { // then the last period was over when s was seen, and y is what it stays
			u.If = [][]Term{p.step(now, k, most, at)}
			if s[last] == 0 {
				u.If = [][]Term{{AtMost(last, 0), AtMost(this, most)}}
			}
			return p.forget(u, k, s), true
		}
		u.If = [][]Term{
			{Missing(last), AtMost(this, most)},
			{Within(last, math.MinInt64, p.top(now, most)), Missing(this)},
		}
		stride := most/mostSteps + 1
		for v := int64(0); v <= most; v++ {
			if v%stride == 0 || v == at { // where not all fit, that of s is one
				u.If = append(u.If, p.step(now, k, most, v))
			}
		}
		return p.forget(u, k, s), true
	}
}

// step is the part of the staircase where the last period weighs at most v.
func (p SlidingWindow) step(now, k, most, v int64) []Term {
	return []Term{
		Within(period(k-1), math.MinInt64, p.top(now, v)),
		Within(period(k), math.MinInt64, most-v),
	}
}

// forget has u drop the periods that no clock within one of k needs: those that
// may be there after a pause, as an item that nobody asks for longer expires,
// and what is known to be.
func (p SlidingWindow) forget(u Update, k int64, s State) Update {
	oldest := k - 2
	for n := oldest - 1; n >= oldest-pause; n-- {
		u.Acts = append(u.Acts, Act{Verb: Delete, Attr: period(n)})
	}
	for name := range s {
		digits, _ := strings.CutPrefix(name, "c")
		if n, err := strconv.ParseInt(digits, 10, 64); err == nil && period(n) == name && n < oldest-pause {
			u.Acts = append(u.Acts, Act{Verb: Delete, Attr: name})
		}
	}
	return u
}

// Release implements [Policy].
func (p SlidingWindow) Release(_, at, n int64) (Plan, bool) {
	return countDown(period(p.key(at)), n), true
}

// Figures implements [Policy]. ResetAt is the end of the last period that
// weighs.
func (p SlidingWindow) Figures(now int64, s State) Figures {
	k := p.key(now)
	this, last := s[period(k)], s[period(k-1)]
	used := this + p.weight(now, last)
	f := Figures{Used: used, Remaining: max(0, p.Limit-used), ResetAt: now, WindowKey: k}
	switch {
	case this > 0:
		f.ResetAt = (k + 2) * p.length()
	case last > 0:
		f.ResetAt = (k + 1) * p.length()
	}
	return f
}

// Wait implements [Policy].
func (p SlidingWindow) Wait(now, n int64, s State) time.Duration {
	k := p.key(now)
	this, last := s[period(k)], s[period(k-1)]
	most := p.Limit - n
	if this+p.weight(now, last) <= most {
		return 0
	}
	left := p.left(now)
	if this <= most { // it is the last period's weight that has to fall
		if covered := p.covered(last, most-this); covered > 0 {
			return millis(left - covered)
		}
	}
	// In the next period this one is the last.
	return millis(left + p.length() - min(p.length(), p.covered(this, most)))
}

// covered is the most milliseconds of a period that the sliding window may
// cover for y actions in it to weigh at most v.
func (p SlidingWindow) covered(y, v int64) int64 {
	if y == 0 {
		return p.length()
	}
	return ((v+1)*p.length()+y-1)/y - 1
}

// weight is floor(y z).
func (p SlidingWindow) weight(now, y int64) int64 { return y * p.left(now) / p.length() }

// top is the most y whose weight is at most v.
func (p SlidingWindow) top(now, v int64) int64 {
	return ((v+1)*p.length()+p.left(now)-1)/p.left(now) - 1
}

// left is how much of this period is to come, which is how much of the last one
// the window covers: 1 to Window, in milliseconds.
func (p SlidingWindow) left(now int64) int64 { return p.length() - now%p.length() }

func (p SlidingWindow) key(now int64) int64 { return now / p.length() }
func (p SlidingWindow) length() int64       { return p.Window.Milliseconds() }

// period is the counter of a period.
func period(k int64) string { return "c" + strconv.FormatInt(k, 10) }
