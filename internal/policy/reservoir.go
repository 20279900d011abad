package policy

import "fmt"

// reservoir allows limit actions in each window of the clock. It gives each
// further action a place in a later window, at most ahead from now. Places are
// given in order, and no window has more than limit of them.
//
// Worst case: twice the limit almost at once, at the border of two windows.
//
// Its state is q, the latest ticket: a million times the number of the latest
// window that has places, plus how many places that window has given. For
// example, with reservoir 10/10s ahead 15m, and windows counted from 0:
//
//	second  caller     q          answer
//	3       the 1st    1          runs now
//	3       the 10th   10         runs now, and window 0 is full
//	3       the 11th   1,000,001  first place of window 1: come at second 10
//	3       the 20th   1,000,010  last place of window 1: come at second 10
//	3       the 21st   2,000,001  first place of window 2: come at second 20
//	12      the 22nd   2,000,002  come at second 20
//	45      the 23rd   4,000,001  runs now: nobody waits
//
// Each update gives its place in one certain window, and its guard holds only
// while that window is the right one. So the update knows its ReadyAt before it
// is applied. The item keeps ReadyAt with the request's id, and a repeat of the
// request gets the same time. A place that nobody uses is lost when its window
// ends.
type reservoir struct {
	limit  int64
	window int64 // milliseconds
	ahead  int64 // milliseconds; 0: only the current window
}

const ticket = "q"

func makeReservoir(r Rate, _ bool) (kind, error) {
	if r.Limit >= million {
		return nil, fmt.Errorf("limit is %d, want at most %d for a reservoir", r.Limit, million-1)
	}
	return reservoir{r.Limit, r.Window.Milliseconds(), r.Ahead.Milliseconds()}, nil
}

func (p reservoir) item(now int64) (window, expires int64) {
	return 0, expiry(p.start(p.last(now+clockSlack.Milliseconds())+1), clockSlack)
}

// take gives one place. There are three cases:
//
//   - Nobody waits and the current window is empty: its first place.
//   - The latest window with places is full: the first place of the next one.
//   - Otherwise: the next place of the latest window with places.
func (p reservoir) take(now, _ int64, _ uint64, s State) (Update, bool) {
	q := s[ticket]
	window, given := q/million, q%million
	switch k := p.key(now); {
	case q <= k*million:
		return p.first(k, AtMost(ticket, k*million)), true
	case given >= p.limit:
		u := p.first(window+1, Within(ticket, window*million+p.limit, window*million+million-1))
		return u, window < p.last(now)
	}
	return Update{
		If:      [][]Term{{Within(ticket, window*million, window*million+p.limit-1)}},
		Acts:    []Act{{Add, ticket, 1}},
		ReadyAt: p.start(window),
	}, window <= p.last(now)
}

// first returns the update that gives the first place of a window.
func (p reservoir) first(window int64, guard Term) Update {
	return Update{
		If:      [][]Term{{guard}},
		Acts:    []Act{{Set, ticket, window*million + 1}},
		ReadyAt: p.start(window),
	}
}

// undo gives nothing back: a place is lost when its window ends.
func (p reservoir) undo(_, _, _ int64, _ State) (Update, bool) { return Update{}, false }

func (p reservoir) read(now, n int64, s State) Reading {
	k := p.key(now)
	window, given := s[ticket]/million, s[ticket]%million
	r := Reading{Limit: p.limit, Window: millis(p.window), ResetAt: now, WindowKey: k, At: now}
	switch {
	case window > k:
		r.Used = p.limit
	case window == k:
		r.Used = given
	}
	r.Remaining = max(0, p.limit-r.Used)
	if r.Used > 0 {
		r.ResetAt = p.start(window + 1)
	}
	if given >= p.limit { // the next window is the first one with a place
		window++
	}
	if n > 0 {
		r.Wait = millis(max(0, p.start(window)-p.ahead-now))
	}
	return r
}

// due does not look at ahead: it may have been longer when the place was given.
// No policy gives a place more than longestWindow ahead.
func (p reservoir) due(now, readyAt int64) (onTime, early bool) {
	window, k := readyAt/p.window, p.key(now)
	return window == k, k < window && readyAt-now <= longestWindow.Milliseconds()
}

// waiting returns the places of all full windows after the current one, plus
// the places that the latest window has given.
func (p reservoir) waiting(now, readyAt int64, s State) int64 {
	latest, given := s[ticket]/million, min(s[ticket]%million, p.limit)
	window := readyAt / p.window
	if window < latest {
		given = p.limit
	}
	return max(0, (window-p.key(now)-1)*p.limit+given)
}

// skip returns the ticket before the first place of the window at readyAt.
func (p reservoir) skip(readyAt int64) (attr string, least int64) {
	return ticket, readyAt / p.window * million
}

// last returns the latest window in which take gives places at now.
func (p reservoir) last(now int64) int64 { return p.key(now + p.ahead) }

func (p reservoir) start(window int64) int64 { return window * p.window }
func (p reservoir) key(now int64) int64      { return now / p.window }
