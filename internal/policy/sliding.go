package policy

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// sliding estimates the actions in the last window from two counters. Periods
// are one window long and follow one another from 1970 on. With x actions in
// this period and y in the previous one, it counts
//
//	x + floor(y * z)
//
// where z is the part of the previous period that the sliding window still
// covers. This is the sliding window counter that Cloudflare described in 2017.
//
// For example, sliding 50/1h has counted 40 actions between 1:00 and 2:00, and
// 10 since 2:00. At 2:15 the window still covers 45 minutes of the previous
// hour, so 10 + 40*3/4 = 40 count.
//
// Worst case: it assumes that the previous period's actions came evenly. If all
// came at its end, up to twice the limit lie within one window.
//
// Its state is one counter for each period, named c and the number of the
// period. Three are kept: this period's, the previous one's, and one more for a
// clock that is a period behind. Only whole numbers decide; there is no
// floating point.
type sliding struct {
	limit  int64
	window int64 // milliseconds
}

// mostSkew is how far clocks may differ, in milliseconds.
const mostSkew = 2_000

const (
	// mostSteps is how many steps of the staircase fit in one guard. Each step
	// takes four of DynamoDB's 300 operators, and other parts of the guard need
	// the rest.
	mostSteps = 65

	// pause is how many older periods an update removes without having seen
	// them.
	pause = 12
)

func makeSliding(r Rate, _ bool) (kind, error) {
	return sliding{r.Limit, r.Window.Milliseconds()}, nil
}

func (p sliding) item(now int64) (window, expires int64) {
	return 0, expiry((p.key(now+clockSlack.Milliseconds())+2)*p.window, clockSlack)
}

// take allows n actions if x + floor(y*z) <= limit-n. A guard cannot compute,
// so it lists the corners of that region as steps of a staircase:
//
//	(y*z < 1 AND x <= limit-n) OR (y*z < 2 AND x <= limit-n-1) OR ...
//
// For example, with 3 actions allowed in all and z = 1/2, the steps are y <= 1
// AND x <= 3, y <= 3 AND x <= 2, y <= 5 AND x <= 1, and y <= 7 AND x <= 0.
//
// If this period has begun in s, the previous one is over and its count is
// final, so the one step that s stands on is enough. If there are more than
// mostSteps steps, the guard lists only some, and always the one that s stands
// on.
//
// If a clock that is ahead has begun the next period, the action counts there.
// Clocks are assumed to differ by at most 2 s.
func (p sliding) take(now, n int64, _ uint64, s State) (Update, bool) {
	begun := p.begun(now, s)
	late := begun > now
	now = begun
	k := p.key(now)
	current, previous := period(k), period(k-1)
	most := p.limit - n
	weight := p.weight(now, s[previous])
	if weight > most || s[current] > most-weight {
		return Update{}, false
	}
	u := Update{Acts: []Act{{Add, current, n}}}
	if !late && p.left(now) <= mostSkew {
		u.Also = []Term{AtMost(period(k+1), 0)}
	}
	switch {
	case s[current] > 0 && s[previous] == 0:
		u.If = [][]Term{{AtMost(previous, 0), AtMost(current, most)}}
	case s[current] > 0:
		u.If = [][]Term{p.step(now, most, weight)}
	default:
		u.If = [][]Term{
			{Missing(previous), AtMost(current, most)},
			{Within(previous, math.MinInt64, p.highest(now, most)), Missing(current)},
		}
		stride := most/mostSteps + 1
		for v := int64(0); v <= most; v += stride {
			u.If = append(u.If, p.step(now, most, v))
		}
		if weight%stride != 0 {
			u.If = append(u.If, p.step(now, most, weight))
		}
	}
	return p.forget(u, k, s), true
}

// begun returns now or, if the next period is close and has actions in s, its
// start: then the clock of now is behind.
func (p sliding) begun(now int64, s State) int64 {
	next := p.key(now) + 1
	if p.left(now) <= mostSkew && s[period(next)] > 0 {
		return next * p.window
	}
	return now
}

// step is the step on which the previous period weighs at most v.
func (p sliding) step(now, most, v int64) []Term {
	k := p.key(now)
	return []Term{
		Within(period(k-1), math.MinInt64, p.highest(now, v)),
		Within(period(k), math.MinInt64, most-v),
	}
}

// forget makes u remove the periods that no clock needs any more: those that
// can be left after a pause, and the older ones that are in s.
func (p sliding) forget(u Update, k int64, s State) Update {
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

func (p sliding) undo(now, at, n int64, s State) (Update, bool) {
	if p.key(at) < p.key(now)-1 {
		return Update{}, false
	}
	return countDown(period(p.key(at)), n, s)
}

func (p sliding) read(now, n int64, s State) Reading {
	from := p.begun(now, s)
	k := p.key(from)
	current, previous := s[period(k)], s[period(k-1)]
	weight := p.weight(from, previous)
	r := Reading{
		Limit: p.limit, Window: millis(p.window), Used: current + weight, ResetAt: now, WindowKey: k, At: from,
	}
	r.Remaining = max(0, p.limit-r.Used)
	switch {
	case current > 0:
		r.ResetAt = (k + 2) * p.window
	case previous > 0:
		r.ResetAt = (k + 1) * p.window
	}
	if n > 0 && r.Used > p.limit-n {
		r.Wait = p.wait(from, p.limit-n, current, previous) + millis(from-now)
	}
	return r
}

// wait returns how long it takes until current and the weight of previous are
// at most most.
func (p sliding) wait(now, most, current, previous int64) time.Duration {
	left := p.left(now)
	if current <= most { // the weight of the previous period has to fall
		if covered := p.covered(previous, most-current); covered > 0 {
			return millis(left - covered)
		}
	}
	// In the next period this one is the previous one.
	return millis(left + p.window - min(p.window, p.covered(current, most)))
}

// covered returns the most milliseconds of a period with y actions that the
// window may still cover if they shall weigh at most v.
func (p sliding) covered(y, v int64) int64 {
	if y <= 0 {
		return p.window
	}
	return ((v+1)*p.window+y-1)/y - 1
}

// weight returns floor(y*z).
func (p sliding) weight(now, y int64) int64 { return scale(y, p.left(now), p.window, 0) }

// highest returns the largest y that weighs at most v.
func (p sliding) highest(now, v int64) int64 {
	return ((v+1)*p.window+p.left(now)-1)/p.left(now) - 1
}

// left returns how much of this period is still to come, 1 to window. The
// window covers the same part of the previous period.
func (p sliding) left(now int64) int64 { return p.window - now%p.window }

func (p sliding) key(now int64) int64 { return now / p.window }

// period names the counter of period k.
func period(k int64) string { return "c" + strconv.FormatInt(k, 10) }
