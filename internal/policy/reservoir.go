package policy

import (
	"fmt"
	"slices"
	"time"
)

// reservoir allows limit actions in each window of the clock. It gives each
// further action a place in a later window, at most ahead from now. Places are
// given in order, and no window has more than limit of them.
//
// Worst case: twice the limit almost at once, at the border of two windows.
//
// Its state is t, the latest ticket: a stamp of the latest window that has
// places, and of how many places that window has given. For example, with
// reservoir 10/10s ahead 15m, in seconds from the start of a window, and with
// tickets as start and count:
//
//	second  caller     t      answer
//	3       the 1st    0  1   runs now
//	3       the 10th   0  10  runs now, and the window is full
//	3       the 11th   10 1   first place of the next window: come at second 10
//	3       the 20th   10 10  last place of that window: come at second 10
//	3       the 21st   20 1   first place of the window after it: come at second 20
//	12      the 22nd   20 2   come at second 20
//	45      the 23rd   40 1   runs now: nobody waits
//
// If a deploy has changed the window, the places of the latest ticket count in the
// window that their own window began in.
//
// The guard of an update holds only while its place is in the right window. So the
// update knows its ReadyAt before it is applied. The item keeps it with the request's
// id for a repeat. A place that nobody uses is lost when its window ends.
type reservoir struct {
	limit  int64
	window int64 // milliseconds
	ahead  int64 // milliseconds; 0: only the current window
}

const ticket = "t"

func makeReservoir(r Rate, _ bool) (kind, error) {
	if r.Limit >= million {
		return nil, fmt.Errorf("limit is %d, want at most %d for a reservoir", r.Limit, million-1)
	}
	return reservoir{r.Limit, r.Window.Milliseconds(), r.Ahead.Milliseconds()}, nil
}

// item returns a time after the latest ticket, too: another tier may give places further ahead.
func (p reservoir) item(now int64, s State) (window, expires int64) {
	begun, _ := unstamp(s.Get(ticket))
	last := max(p.last(now+ClockSlack.Milliseconds()), p.start(begun))
	return 0, expiry(last+p.window, ClockSlack)
}

// stays ends with the last window that can give an action a place. That window begins up to
// ahead later, and ends after that.
func (p reservoir) stays() (least, most int64) {
	const slack = 2 * int64(ClockSlack/time.Millisecond)
	return p.ahead + slack, p.ahead + p.window + slack
}

// take gives one place.
func (p reservoir) take(now, _ int64, _ uint64, s State) (Update, bool) {
	q, current := s.Get(ticket), p.start(now)
	begun, given := unstamp(q)
	window := p.start(begun)
	var guard Term
	var act Act
	switch {
	case q <= stamp(current, 0): // nobody waits and the current window is empty: its first place
		window = current
		guard, act = AtMost(ticket, stamp(current, 0)), Act{Set, ticket, stamp(window, 1)}
	case given >= p.limit: // the latest window with places is full: the first place of the next one
		window += p.window
		guard, act = Within(ticket, stamp(begun, p.limit), stamp(begun, million-1)), Act{Set, ticket, stamp(window, 1)}
	default: // the next place of the latest window with places
		guard, act = Within(ticket, stamp(begun, 0), stamp(begun, p.limit-1)), Act{Add, ticket, 1}
	}
	u := plan(act, guard)
	u.ReadyAt = window
	return u, window <= p.last(now)
}

// undo gives nothing back: a place is lost when its window ends.
func (p reservoir) undo(_, _, _ int64, _ State) (Update, bool) { return Update{}, false }

func (p reservoir) counted(now int64, _ State) int64 { return now }

func (p reservoir) read(now, n int64, s State) Reading {
	current := p.start(now)
	begun, given := unstamp(s.Get(ticket))
	window := p.start(begun)
	r := Reading{Limit: p.limit, Window: millis(p.window), ResetAt: now, WindowKey: now / p.window}
	switch {
	case window > current:
		r.Used = p.limit
	case window == current:
		r.Used = given
	}
	r.Remaining = max(0, p.limit-r.Used)
	if r.Used > 0 {
		r.ResetAt = window + p.window
	}
	if given >= p.limit { // the next window is the first one with a place
		window += p.window
	}
	if n > 0 {
		r.Wait = millis(max(0, window-p.ahead-now))
	}
	return r
}

// last returns the start of the latest window that take, at now, gives places
// in.
func (p reservoir) last(now int64) int64 { return p.start(min(now+p.ahead, max(now, Latest))) }

// start returns the start of the window at a time.
func (p reservoir) start(at int64) int64 { return at / p.window * p.window }

// AtOnce returns p without places in later windows: it refuses what p delays.
func (p Policy) AtOnce() Policy {
	if !p.Queues() {
		return p
	}
	p.limits = slices.Clone(p.limits)
	p.index() // finds the queue in the copy
	r := p.queue.kind.(reservoir)
	r.ahead, p.queue.rate.Ahead = 0, 0
	p.queue.kind = r
	return p
}

// Due compares readyAt, a time that p gave earlier, with now. OnTime means that
// the window of readyAt is the current one. Early means that this window has
// not begun and is at most 366 days away. If both are false, it is late, or p does not
// give that time: no window starts there. For example, with reservoir 10/10s, second 20
// is early at second 13, on time from 20 to just before 30, and late at 30.
func (p Policy) Due(now, readyAt int64) (onTime, early bool) {
	if !p.Queues() {
		return false, false
	}
	r := p.queue.kind.(reservoir)
	current := r.start(now)
	if readyAt <= 0 || readyAt != r.start(readyAt) {
		return false, false
	}
	far := readyAt-now > maxWindow.Milliseconds() // ahead may have been up to that when the place was given
	return readyAt == current, current < readyAt && !far
}

// Waiting returns how many places are taken in later windows, up to and
// including the window of readyAt. Each window before the last one counts as
// full at the current limit. For example, with reservoir 10/10s at second 3, all
// places of second 10 and 3 of second 20 are taken: 13 wait for second 20.
func (p Policy) Waiting(now, readyAt int64, s State) int64 {
	if !p.Queues() {
		return 0
	}
	r := p.queue.kind.(reservoir)
	begun, given := unstamp(p.queue.mine(s).Get(ticket))
	given = min(given, r.limit)
	if r.start(readyAt) < r.start(begun) {
		given = r.limit
	}
	between := (r.start(readyAt)-r.start(now))/r.window - 1
	return max(0, between*r.limit+given)
}

// Skip returns s as if p had also given the places that the state given has, unless all of
// them are in windows that have passed. The later of both tickets counts as the latest one.
// Skip also reports whether that is given's.
func (p Policy) Skip(now int64, given, s State) (after State, skips bool) {
	if !p.Queues() {
		return s, false
	}
	attr := p.queue.attr(ticket)
	if begun, _ := unstamp(given.Get(attr)); given.Get(attr) <= s.Get(attr) || begun < p.queue.kind.(reservoir).start(now) {
		return s, false
	}
	return Update{Acts: []Act{{Set, attr, given.Get(attr)}}}.Apply(s), true
}

// TakeAfter plans what [Policy.Take] plans in the state that [Policy.Skip] returns. The guard
// of the update also holds in each item with an earlier ticket, because the next place is the
// same there. For example, with reservoir 10/10s, in seconds, and with tickets as start and
// count:
//
//	t      given  guard                        act
//	0  10  none   Within(t, 0 10, 0 999999)    Set t = 10 1
//	0  10  40 10  AtMost(t, 40 999999)         Set t = 50 1
//	0  10  50 8   AtMost(t, 50 8)              Set t = 50 9
//	50 9   50 8   Within(t, 50 0, 50 9)        Add 1
func (p Policy) TakeAfter(now, n int64, seed uint64, given, s State) (Update, bool) {
	after, skips := p.Skip(now, given, s)
	u, ok := p.Take(now, n, seed, after)
	if !ok || !skips {
		return u, ok
	}
	attr := p.queue.attr(ticket)
	act := &u.Acts[slices.IndexFunc(u.Acts, func(a Act) bool { return a.Attr == attr })]
	for _, terms := range append(u.If, u.Also) {
		for i, t := range terms {
			switch {
			case t.Attr != attr:
			case act.Verb == Add: // holds for several places: this one is the next
				terms[i] = AtMost(attr, after.Get(attr))
			default:
				terms[i] = AtMost(attr, t.To)
			}
		}
	}
	if act.Verb == Add {
		*act = Act{Set, attr, after.Get(attr) + act.Value}
	}
	return u, true
}
