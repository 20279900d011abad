package policy

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// lockout allows limit attempts in a window that begins with the first of them. The attempt
// that reaches the limit locks, and nothing is allowed for the time lock. Each further lock
// lasts twice as long as the one before, up to longest. An attempt that succeeds is given
// back, so only failures lock.
//
// Worst case: limit-1 at the end of one series and limit at the beginning of the next. That is
// 2*limit-1 in any window if lock is at least as long. Otherwise it is limit in each lock.
//
// Its state is one series of attempts, with times in Unix milliseconds:
//
//	n        attempts counted
//	opened   when the series began
//	latest   when the latest attempt was counted
//	strikes  how many locks came before the series, and are not forgotten
//
// For example, with lockout 3/10m for 1m to 4m, in minutes and seconds:
//
//	time   event               n  opened  latest  strikes  answer
//	00:00  the 1st attempt     1  00:00   00:00   0        ok, 2 remain
//	00:20  the 2nd             2  00:00   00:20   0        ok, 1 remains
//	00:40  the 3rd             3  00:00   00:40   0        ok, and locked until 01:40
//	01:00  the 4th             3  00:00   00:40   0        refused, wait 40 s
//	01:40  the 5th             1  01:40   01:40   1        ok: a new series, whose lock lasts 2 minutes
//	01:50  it is given back    0  01:40   01:40   1
//
// A series that does not lock ends when the window after its first attempt has passed.
// Strikes are forgotten when the time longest has passed since the end of the last lock. After a
// series that did not lock, it is the time since the latest attempt, or the end of the series.
//
// A strike is counted when the next series begins, not when the lock does. So who gives back
// the attempt that locked takes back the lock, and nothing else. A clock that is behind moves
// opened back, so the series does not last too long, and leaves latest, so no lock ends early.
type lockout struct {
	limit   int64
	window  int64 // milliseconds, as the others
	lock    int64
	longest int64
}

const (
	attempts = "n"
	opened   = "opened"
	latest   = "latest"
	strikes  = "strikes"

	maxAttempts = 1000
	minLockout  = time.Second // of each time
)

func makeLockout(r Rate, _ bool) (kind, error) {
	switch {
	case r.Limit > maxAttempts:
		return nil, fmt.Errorf("limit is %d, want at most %d attempts for a lockout", r.Limit, maxAttempts)
	case r.Window < minLockout:
		return nil, fmt.Errorf("window is %s, want at least %s for a lockout", span(r.Window), span(minLockout))
	case r.Lock == 0:
		return nil, fmt.Errorf("lockout %d/%s has no lock; write for and how long, as in lockout %d/%s for 30m", r.Limit, span(r.Window), r.Limit, span(r.Window))
	case r.Lock < minLockout:
		return nil, fmt.Errorf("for is %s, want at least %s", span(r.Lock), span(minLockout))
	case r.MaxLock < r.Lock:
		return nil, fmt.Errorf("to is %s, want at least the %s of for", span(r.MaxLock), span(r.Lock))
	}
	return lockout{r.Limit, r.Window.Milliseconds(), r.Lock.Milliseconds(), r.MaxLock.Milliseconds()}, nil
}

func (p lockout) item(now int64, _ State) (window, expires int64) {
	return 0, expiry(now+p.lasts(), ClockSlack)
}

func (p lockout) stays() (least, most int64) {
	stays := p.lasts() + ClockSlack.Milliseconds()
	return stays, stays
}

// lasts returns for how long an attempt can matter: the longest lock, and until it is
// forgotten.
func (p lockout) lasts() int64 { return max(p.window, 2*p.longest) }

// A series is the state of a lockout, with each number in its range. It is zero if s has none.
type series struct{ n, opened, latest, strikes int64 }

func seriesOf(s State) (x series, ok bool) {
	n, has := s.Find(attempts)
	began, begun := s.Find(opened)
	last, ends := s.Find(latest)
	if !has || !begun || !ends {
		return series{}, false
	}
	in := func(v, most int64) int64 { return min(max(0, v), most) }
	return series{in(n, million), in(began, Latest), in(last, Latest), in(s.Get(strikes), maxStrikes)}, true
}

// maxStrikes is how many locks are counted: a second, doubled so often, is more than 366 days.
const maxStrikes = 25

// end returns when a lock of x ends, or would end. Each earlier strike doubles the lock.
func (p lockout) end(x series) int64 {
	return x.latest + min(p.lock<<x.strikes, p.longest)
}

// over reports whether an attempt at now begins a new series, and the strikes of that one.
func (p lockout) over(now int64, x series) (strikes int64, over bool) {
	end, forgotten, strikes := p.end(x), p.end(x)+p.longest, min(x.strikes+1, maxStrikes)
	if x.n < p.limit {
		end, strikes = x.opened+p.window, x.strikes
		forgotten = max(end, x.latest+p.longest)
	}
	if now >= forgotten {
		strikes = 0
	}
	return strikes, now >= end
}

func (p lockout) take(now, n int64, _ uint64, s State) (Update, bool) {
	x, ok := seriesOf(s)
	if before, over := p.over(now, x); over || !ok {
		return Update{
			If: [][]Term{{asIs(attempts, s), asIs(opened, s), asIs(latest, s)}},
			Acts: []Act{
				{Set, attempts, n}, {Set, opened, now}, {Set, latest, max(now, x.latest)}, {Set, strikes, before},
			},
		}, true
	}
	u := Update{If: [][]Term{{Within(attempts, math.MinInt64, p.limit-n)}}, Acts: []Act{{Add, attempts, n}}}
	if now < x.opened {
		u.If[0] = append(u.If[0], Within(opened, now+1, math.MaxInt64))
		u.Acts = append(u.Acts, Act{Set, opened, now})
	} else {
		u.If[0] = append(u.If[0], Within(opened, now-p.window+1, now))
	}
	if now < x.latest {
		u.If[0] = append(u.If[0], Within(latest, now+1, math.MaxInt64))
	} else {
		u.If[0] = append(u.If[0], Within(latest, math.MinInt64, now))
		u.Acts = append(u.Acts, Act{Set, latest, now})
	}
	return u, x.n <= p.limit-n
}

// undo gives back attempts of the series in s alone.
func (p lockout) undo(_, at, n int64, s State) (Update, bool) {
	x, ok := seriesOf(s)
	u := plan(Act{Add, attempts, -n}, Within(attempts, n, math.MaxInt64), Within(opened, math.MinInt64, at), Within(latest, at, math.MaxInt64))
	return u, ok && x.n >= n && x.opened <= at && at <= x.latest
}

func (p lockout) counted(now int64, _ State) int64 { return now }

func (p lockout) read(now, n int64, s State) Reading {
	x, _ := seriesOf(s)
	r := Reading{Limit: p.limit, Window: millis(p.window), Remaining: p.limit, ResetAt: now}
	if _, over := p.over(now, x); over || x.n == 0 {
		return r
	}
	r.Used, r.Remaining, r.ResetAt = x.n, max(0, p.limit-x.n), x.opened+p.window
	if r.Locked = x.n >= p.limit; r.Locked {
		r.ResetAt = p.end(x)
	}
	if n > 0 && n > r.Remaining {
		r.Wait = millis(r.ResetAt - now)
	}
	return r
}

// HasLockout reports whether one of p's limits is a lockout, whose failures can be cleared.
func (p Policy) HasLockout() bool { return p.has(lockoutKind) }

// Clear returns u, which gives actions back, and ends the series of each lockout of p, too:
// none of its attempts counts any more, and no lock before it. Other limits stay as u plans.
func (p Policy) Clear(u Update) Update {
	for _, l := range p.limits {
		if _, ok := l.kind.(lockout); !ok {
			continue
		}
		for _, attr := range []string{attempts, opened, latest, strikes} {
			attr = l.attr(attr)
			about := func(t Term) bool { return t.Attr == attr }
			for i := range u.If {
				u.If[i] = slices.DeleteFunc(slices.Clone(u.If[i]), about)
			}
			u.Also = slices.DeleteFunc(slices.Clone(u.Also), about)
			u.Acts = slices.DeleteFunc(slices.Clone(u.Acts), func(a Act) bool { return a.Attr == attr })
			u.Acts = append(u.Acts, Act{Verb: Delete, Attr: attr})
		}
	}
	u.If = slices.DeleteFunc(u.If, func(terms []Term) bool { return len(terms) == 0 })
	return u
}
