package policy

import (
	"fmt"
	"math"
)

// fixed allows limit actions in each window of the clock. Windows follow one another
// from 1970 on, and all users have the same ones. They are equally long, or they are
// the days, weeks or months of a calendar.
//
// Worst case: twice the limit almost at once, at the border of two windows.
//
// Each window has an item of its own. Its state is activityCount, the number of
// actions counted. For example, with 3/1m, the third action at 0:59 is allowed, and
// the fourth one is refused with a wait of 1 s. At 1:00 a new item starts at 0.
type fixed struct {
	limit  int64
	window int64     // milliseconds; with a calendar about so many
	by     *calendar // whose units are the windows; nil: each has the length window
}

const activityCount = "activityCount"

func makeFixed(r Rate, shared bool) (kind, error) {
	p := fixed{limit: r.Limit, window: r.Window.Milliseconds()}
	if r.Unit != "" {
		var err error
		if p.by, err = newCalendar(r.Unit, r.Zone); err != nil {
			return nil, err
		}
	}
	switch {
	case shared && r.Limit == million:
		return nil, fmt.Errorf("limit is %d, want at most %d beside other limits", r.Limit, million-1)
	case shared:
		return sharedFixed{p}, nil
	}
	return p, nil
}

func (p fixed) with(r Rate) kind {
	p.limit = r.Limit
	return p
}

func (p fixed) item(now int64, _ State) (window, expires int64) {
	w := p.at(now)
	return w.Key, expiry(w.End, ClockSlack)
}

// stays is up to a window. One can end at once.
func (p fixed) stays() (least, most int64) {
	return ClockSlack.Milliseconds(), p.window + ClockSlack.Milliseconds()
}

func (p fixed) take(_, n int64, _ uint64, s State) (Update, bool) {
	most := p.limit - n
	return plan(Act{Add, activityCount, n}, AtMost(activityCount, most)), s.Get(activityCount) <= most
}

func (p fixed) undo(now, at, n int64, s State) (Update, bool) {
	if p.at(now).Key != p.at(at).Key {
		return Update{}, false
	}
	return countDown(activityCount, n, s)
}

func (p fixed) counted(now int64, _ State) int64 { return now }

// countDown plans to subtract n from a counter that has at least n.
func countDown(attr string, n int64, s State) (Update, bool) {
	return plan(Act{Add, attr, -n}, Within(attr, n, math.MaxInt64)), s.Get(attr) >= n
}

func (p fixed) read(now, n int64, s State) Reading {
	w := p.at(now)
	r := Reading{
		Limit: p.limit, Window: millis(w.End - w.Start),
		Used: s.Get(activityCount), Remaining: max(0, p.limit-max(0, s.Get(activityCount))),
		ResetAt: w.End, WindowKey: w.Key,
	}
	if n > 0 && r.Used > p.limit-n {
		r.Wait = millis(w.End - now)
	}
	return r
}

// at returns the window at now.
func (p fixed) at(now int64) Window {
	if p.by != nil {
		return p.by.at(now)
	}
	key := now / p.window
	return Window{key, key * p.window, (key + 1) * p.window}
}

// sharedFixed is a fixed window whose item also holds other limits. That item
// serves forever, so the counter also carries the start of its window.
//
// Its state is s: a stamp of the latest window with actions, and of the actions
// counted in that window. For example, 5 actions in the minute from second
// 1,700,000,040 on are 1,700,000,040,000,000,005. In the next minute every value
// below 1,700,000,100,000,000,000 reads as 0 actions.
//
// If a deploy has changed the window, what was counted in another one still counts if
// that began within the current one.
type sharedFixed struct{ fixed }

const startAndCount = "s"

// stamp packs a window's start, in Unix milliseconds, and a count below a million
// into one number, so that one condition tests both. It fits up to [Latest].
func stamp(start, count int64) int64 { return start*million + count }

// unstamp returns what stamp was given.
func unstamp(s int64) (start, count int64) { return s / million, s % million }

func (p sharedFixed) with(r Rate) kind {
	p.limit = r.Limit
	return p
}

func (p sharedFixed) item(now int64, s State) (window, expires int64) {
	_, expires = p.fixed.item(now+ClockSlack.Milliseconds(), s) // a clock ahead can have begun the window that counts
	return 0, expires
}

// take begins the current window if s shows none that began within it.
func (p sharedFixed) take(now, n int64, _ uint64, s State) (Update, bool) {
	now = p.counted(now, s)
	begun, current := p.begun(now, s), p.at(now).Start
	if s.Get(startAndCount) <= stamp(current, 0) {
		return plan(Act{Set, startAndCount, stamp(current, n)}, AtMost(startAndCount, stamp(current, 0))), true
	}
	most := stamp(begun, p.limit-n)
	return plan(Act{Add, startAndCount, n}, Within(startAndCount, stamp(begun, 0), most)), s.Get(startAndCount) <= most
}

// counted returns now, or the start of the next window if a clock ahead has begun it.
func (p sharedFixed) counted(now int64, s State) int64 {
	start, _ := unstamp(s.Get(startAndCount))
	if current := p.at(now); start < current.End || start-now > ClockSlack.Milliseconds() {
		return now
	}
	return start
}

// undo gives back only actions of the window in s. An earlier window within the
// current one can only be left from before a deploy, and s does not count it.
func (p sharedFixed) undo(now, at, n int64, s State) (Update, bool) {
	begun, count := unstamp(s.Get(startAndCount))
	u := plan(Act{Add, startAndCount, -n}, Within(startAndCount, stamp(begun, n), stamp(begun, million-1)))
	return u, begun == p.begun(now, s) && begun <= at && count >= n
}

// begun returns the start of the window that counts actions at now. That is the
// window in s if it began within the current one.
func (p sharedFixed) begun(now int64, s State) int64 {
	start, _ := unstamp(s.Get(startAndCount))
	current := p.at(now)
	if p.at(start).Key == current.Key {
		return start
	}
	return current.Start
}

func (p sharedFixed) read(now, n int64, s State) Reading {
	start, count := unstamp(s.Get(startAndCount))
	from := p.counted(now, s)
	begun, current := p.at(start).Key, p.at(from).Key
	ahead := begun > current // by a clock that is too far ahead
	switch {
	case ahead:
		from = start
	case begun < current:
		count = 0
	}
	r := p.fixed.read(from, n, State{{activityCount, count}})
	if ahead {
		r.Remaining = 0
	}
	if n > 0 && (ahead || r.Wait > 0) {
		r.Wait += millis(from - now)
	}
	return r
}
