package ratelimit

import (
	"fmt"
	"time"
)

// Reservoir allows Limit actions in each window, and gives each one above them
// a place in a window to come, at most Ahead from now. Places are given in
// order, and no window has more than Limit of them.
//
// Worst case: as a fixed window's, twice Limit in a moment at a window's edge.
//
// Its state is q, the next ticket: a million for each window since 1970, and one
// for each place given in the last of them. Nothing else is counted, so a place
// that nobody comes for passes with time.
type Reservoir struct {
	Limit  int64         // places in a window; 1 to 999,999
	Window time.Duration // a positive whole number of milliseconds
	Ahead  time.Duration // how far ahead a place may be; zero: this window only
}

const ticket = "q"

// Validate implements [Policy].
func (p Reservoir) Validate() error {
	if p.Ahead < 0 || p.Ahead%time.Millisecond != 0 {
		return fmt.Errorf("ahead is %v, want a whole number of milliseconds of at least 0", p.Ahead)
	}
	if p.Limit >= million {
		return fmt.Errorf("limit is %d, want below %d", p.Limit, million)
	}
	return validWindow(p.Limit, p.Window)
}

// String is the policy in words: 10 in 10 s, the rest delayed by up to 15
// minutes.
func (p Reservoir) String() string {
	return fmt.Sprintf("%d %s, the rest delayed by up to %s", p.Limit, per(p.Window), span(p.Ahead))
}

// Quota implements [Policy].
func (p Reservoir) Quota() (int64, time.Duration) { return p.Limit, p.Window }

// Place implements [Policy].
func (p Reservoir) Place(now int64) Place {
	return Place{Expires: expiry(p.start(p.last(now)+1), clockSlack), Ordered: true}
}

// Plan implements [Policy]. It gives one place, whatever n is: in the window of
// the last one while that has room, else in the next.
func (p Reservoir) Plan(now, _ int64) Plan {
	k := p.key(now)
	return func(s State) (Update, bool) {
		q := s[ticket]
		window, given := q/million, q%million
		switch {
		case q <= k*million: // nobody waits
			return p.first(k, AtMost(ticket, k*million)), true
		case given >= p.Limit && window+1 > p.last(now), window > p.last(now):
			return Update{}, false
		case given >= p.Limit:
			return p.first(window+1, Within(ticket, window*million+p.Limit, window*million+million-1)), true
		}
		return Update{
			If:   [][]Term{{Within(ticket, window*million, window*million+p.Limit-1)}},
			Acts: []Act{{Add, ticket, 1}},
		}, true
	}
}

// first gives a window's first place.
func (p Reservoir) first(window int64, guard Term) Update {
	return Update{If: [][]Term{{guard}}, Acts: []Act{{Set, ticket, window*million + 1}}}
}

// Release implements [Policy]: a place is not given back, it passes.
func (p Reservoir) Release(_, _, _ int64) (Plan, bool) {
	return func(State) (Update, bool) { return Update{}, false }, true
}

// Figures implements [Policy]. ResetAt is the start of the first window without
// a ticket.
func (p Reservoir) Figures(now int64, s State) Figures {
	k := p.key(now)
	window, given := s[ticket]/million, s[ticket]%million
	f := Figures{Remaining: p.Limit, ResetAt: now, WindowKey: k}
	switch {
	case window > k:
		f.Used = p.Limit
	case window == k:
		f.Used = given
	}
	f.Remaining = max(0, p.Limit-f.Used)
	if f.Used > 0 {
		f.ResetAt = p.start(window + 1)
	}
	return f
}

// Wait implements [Policy]: until one more place would be given.
func (p Reservoir) Wait(now, _ int64, s State) time.Duration {
	free := s[ticket] / million // the first window with a place
	if s[ticket]%million >= p.Limit {
		free++
	}
	return millis(max(0, p.start(free)-p.Ahead.Milliseconds()-now))
}

// A Turn is when a place comes up.
type Turn struct {
	ReadyAt  int64 // Unix milliseconds, the start of its window
	Enqueued int64 // places given for windows to come, up to and including this one
}

// Turn is the place of the request after which later ones were counted in s; it
// is zero where its window has begun.
func (p Reservoir) Turn(now int64, s State, later int) Turn {
	// All windows to come have been given in full, but for the last.
	mine := s[ticket]/million*p.Limit + s[ticket]%million - 1 - int64(later)
	window := mine / p.Limit
	if window <= p.key(now) {
		return Turn{}
	}
	return Turn{ReadyAt: p.start(window), Enqueued: mine + 1 - (p.key(now)+1)*p.Limit}
}

// Presented says of a place given before whether its window is now, or is to
// come. Where it is neither, the place has passed, or is so far ahead that it was
// never given: by a window more than any, for a clock that is behind.
func (p Reservoir) Presented(now, readyAt int64) (onTime, early bool) {
	window := p.key(readyAt)
	return window == p.key(now), p.key(now) < window && window <= p.last(now)+1
}

// IsPlace says whether places come up at readyAt.
func (p Reservoir) IsPlace(readyAt int64) bool {
	return readyAt > 0 && readyAt%p.Window.Milliseconds() == 0
}

// last is the last window for which places are given at now.
func (p Reservoir) last(now int64) int64 { return p.key(now + p.Ahead.Milliseconds()) }

func (p Reservoir) start(window int64) int64 { return window * p.Window.Milliseconds() }
func (p Reservoir) key(now int64) int64      { return now / p.Window.Milliseconds() }
