package policy

import (
	"cmp"
	"math"
	"slices"
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
// 10 since 2:00. At 2:15 the window from 1:15 to 2:15 covers 45 minutes of the
// previous hour. So 10 + 40*3/4 = 40 actions count, and 10 remain.
//
// Worst case: twice the limit within one window. The estimate takes the actions of
// the previous period as even, but they may all have come at its end.
//
// Its state is one counter for each period, named c and the period's number. The
// counters of the current and the previous period are kept, and one more for a clock
// behind.
type sliding struct {
	limit  int64
	window int64 // milliseconds
	later  int64 // how many later periods an update looks at, see last
}

// overlap is how early, in milliseconds, the item can have an action of a later
// period: this update can be that far behind.
const overlap = int64(Behind / time.Millisecond)

const (
	// maxSteps is how many steps of the staircase fit in one guard, beside the last
	// step. Each takes four of DynamoDB's 300 operators. Other parts need the rest.
	maxSteps = 64

	// blind is how many old counters an update removes that may not exist.
	blind = 12

	// lookBack is how far back, in milliseconds, an update removes counters: this long, or
	// four windows if that is longer.
	lookBack = int64(30 * 24 * time.Hour / time.Millisecond)

	// strangers is how many counters an update leaves that it does not take for its own:
	// the counters of two other windows, with up to four each.
	strangers = 8
)

func makeSliding(r Rate, shared bool) (kind, error) {
	later := int64(4)
	if shared {
		later = 1 // the guard of eight limits has no room for more
	}
	return sliding{r.Limit, r.Window.Milliseconds(), later}, nil
}

func (p sliding) with(r Rate) kind {
	p.limit = r.Limit
	return p
}

func (p sliding) item(now int64, _ State) (window, expires int64) {
	return 0, expiry((p.key(now+ClockSlack.Milliseconds())+2)*p.window, ClockSlack)
}

// stays is one period at least, and two at most.
func (p sliding) stays() (least, most int64) {
	const slack = 2 * int64(ClockSlack/time.Millisecond)
	return p.window + slack, 2*p.window + slack
}

// take allows n actions if x + floor(y*z) <= limit-n. A guard cannot multiply,
// so it lists the pairs (x, y) that are allowed as the steps of a staircase. On
// step v, the previous period weighs at most v, so this period may have at most
// limit-n-v actions. The guard holds if at least one step holds.
//
// For example, sliding 4/1h takes 1 action at half past, so z = 1/2:
//
//	step  weight floor(y/2)  so y       and x
//	0     at most 0          at most 1  at most 3
//	1     at most 1          at most 3  at most 2
//	2     at most 2          at most 5  at most 1
//	3     at most 3          at most 7  at most 0
//
// x = 2 and y = 3 are allowed by step 1. x = 2 and y = 4 fail every step,
// because 2 + 2 + 1 is above 4.
//
// Two rules keep the guard short. If s has actions in this period, the previous
// period's counter no longer grows, so the guard has only the step of its weight. And
// if there are too many steps, the guard has every second one (or third, ...), with
// the step of the weight in s and the last step among them.
func (p sliding) take(now, n int64, _ uint64, s State) (Update, bool) {
	last := p.last(now)
	now = p.counted(now, s)
	k := p.key(now)
	current, previous := period(k), period(k-1)
	most := p.limit - n
	weight := p.weight(now, s.Get(previous))
	if weight > most || s.Get(current) > most-weight {
		return Update{}, false
	}
	u := Update{Acts: []Act{{Add, current, n}}}
	for later := k + 1; later <= last; later++ {
		u.Also = append(u.Also, zero(period(later), s))
	}
	step := func(v int64) []Term {
		return []Term{
			Within(previous, math.MinInt64, p.most(p.left(now), v)),
			Within(current, math.MinInt64, most-v),
		}
	}
	switch {
	case s.Get(current) > 0 && s.Get(previous) == 0:
		u.If = [][]Term{{zero(previous, s), AtMost(current, most)}}
	case s.Get(current) > 0:
		u.If = [][]Term{step(weight)}
	default:
		u.If = [][]Term{
			{Missing(previous), AtMost(current, most)},
			{Within(previous, math.MinInt64, p.most(p.left(now), most)), AtMost(current, 0)},
		}
		stride := (most-1)/maxSteps + 1
		for v := weight % stride; v < most; v += stride {
			u.If = append(u.If, step(v))
		}
	}
	return p.forget(u, k, s), true
}

// zero returns a term that holds if a counter is 0. It tests "absent" or "at most
// 0", whichever is true in s, because a test of both needs more operators.
func zero(counter string, s State) Term {
	if _, ok := s.Find(counter); ok {
		return Within(counter, math.MinInt64, 0)
	}
	return Missing(counter)
}

// counted returns now, or the start of the last period that begins within 7 s (overlap)
// and already has actions in s. If there is such a period, this clock is behind another
// one, or this update is late. For example, with sliding 1/2s at second 7, an action at
// second 12 makes it 12.
func (p sliding) counted(now int64, s State) int64 {
	for k := p.last(now); k > p.key(now); k-- {
		if s.Get(period(k)) > 0 {
			return k * p.window
		}
	}
	return now
}

// last returns the last period that can have actions in the item. Alone, it looks at
// four later ones at most, which is enough for windows of 1.75 s and more; beside other
// limits at one, enough for 7 s and more.
func (p sliding) last(now int64) int64 { return min(p.key(now+overlap), p.key(now)+p.later) }

// forget adds the removal of old counters to u. The counters of the periods k, k-1
// and k-2 stay. If s is empty, the item may only be unknown: then the 12 counters
// before go.
//
// Only the last 30 days are removed, or four windows. An older number can be a counter of
// another window or a slot of a log: during a deploy, two versions of a limit count in one
// item. For example, the current counter of 10/1h is c472222 on a day in 2023, when 10/1m's
// counter is c28333333. As a counter of 10/1m, c472222 would be from 1970, so it stays.
//
// After a longer pause of the user, old counters stay, too. If there are more than strangers
// of all these, the counters with the closest numbers go. Old counters of p are close to k,
// and the counters of another window are not. So an item can't grow forever.
func (p sliding) forget(u Update, k int64, s State) Update {
	oldest, first := k-2, k-max(4, lookBack/p.window)
	if len(s) == 0 {
		for n := oldest - 1; n >= max(first, oldest-blind); n-- {
			u.Acts = append(u.Acts, Act{Verb: Delete, Attr: period(n)})
		}
		return u
	}
	var old, others []int64
	for _, a := range s {
		digits, _ := strings.CutPrefix(a.Name, "c")
		n, err := strconv.ParseInt(digits, 10, 64)
		switch {
		case err != nil || period(n) != a.Name || oldest <= n && n <= k+p.later:
		case first <= n && n < oldest:
			old = append(old, n)
		case n > 9: // c0 to c9 are slots of a log
			others = append(others, n)
		}
	}
	slices.SortFunc(others, func(a, b int64) int { return cmp.Or(cmp.Compare(max(a-k, k-a), max(b-k, k-b)), cmp.Compare(a, b)) })
	old = append(old, others[:max(0, len(others)-strangers)]...)
	slices.Sort(old)
	for _, n := range old {
		u.Acts = append(u.Acts, Act{Verb: Delete, Attr: period(n)})
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
	from := p.counted(now, s)
	k := p.key(from)
	current, previous := s.Get(period(k)), s.Get(period(k-1))
	weight := p.weight(from, previous)
	r := Reading{
		Limit: p.limit, Window: millis(p.window), Used: current + weight, ResetAt: now, WindowKey: k,
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

// wait returns how long until current and the weight of previous are at most most.
func (p sliding) wait(now, most, current, previous int64) time.Duration {
	left := p.left(now)
	if current <= most { // only the weight of the previous period has to fall
		if covered := p.covered(previous, most-current); covered > 0 {
			return millis(left - covered)
		}
	}
	// Wait until the next period. There, this period's actions are the previous
	// ones and lose weight.
	return millis(left + p.window - min(p.window, p.covered(current, most)))
}

// covered returns the longest part of a period, in milliseconds, that the window
// may cover so that the period's y actions weigh at most v. For example, 40 actions
// weigh at most 29 if it covers less than 30/40 of their hour: 45 minutes less 1 ms.
func (p sliding) covered(y, v int64) int64 {
	if y <= 0 {
		return p.window
	}
	return p.most(y, v)
}

// most returns the largest number a with floor(a*b/window) <= v, such as the largest
// y whose weight is at most v if b is left of the period.
func (p sliding) most(b, v int64) int64 { return ((v+1)*p.window+b-1)/b - 1 }

// weight returns floor(y*z): how many of the previous period's y actions count.
func (p sliding) weight(now, y int64) int64 { return scale(y, p.left(now), p.window, 0) }

// left returns how many milliseconds of this period are still to come, 1 to window.
// The window covers as much of the previous period, so z is left/window.
func (p sliding) left(now int64) int64 { return p.window - now%p.window }

func (p sliding) key(now int64) int64 { return now / p.window }

// period names the counter of period k.
func period(k int64) string { return "c" + strconv.FormatInt(k, 10) }
