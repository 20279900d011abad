package policy

import (
	"fmt"
	"math"
	"time"
)

// bucket allows burst actions at once and then one action every interval. An
// interval is window/limit. A burst of 1 is a minimum time between two actions.
//
// Worst case: in any time t there are at most burst + t/interval actions.
//
// This is the generic cell rate algorithm (ITU-T I.371, virtual scheduling).
// Its state is, in milliseconds:
//
//	tat    the theoretical arrival time: when the bucket will be full again
//	every  the interval that tat was computed with
//	since  when the bucket was last full; older actions have no weight any more
//	asof   when tat was last changed by an action
//
// For example, bucket 10/1m burst 15 has an interval of 6 s. Three actions at
// second 100 move tat to 118. At second 106 the bucket is 12 s behind: 2
// actions count, and 13 remain. The 16th action of a moment would move tat more
// than 90 s ahead, so it is refused.
//
// The interval changes with another tier or a changed limit. The actions that
// were used at asof then stay used, and from asof on they come back at the new
// pace. For example, an action at second 0 with an interval of 12 hours makes
// tat 43,200. If the interval becomes 5 s, the bucket is full at second 5.
type bucket struct {
	interval int64 // milliseconds until one action comes back
	burst    int64
	keep     time.Duration // how long an idle item is kept at least
	shared   bool          // the item also holds other limits
}

const (
	tat   = "tat"
	every = "every"
	since = "since"
	asof  = "asof"
)

func makeBucket(r Rate, shared bool) (kind, error) {
	window := r.Window.Milliseconds()
	if window%r.Limit != 0 {
		return nil, fmt.Errorf("window is %s, want a multiple of %dms, such as %dms, so that an action comes back every whole number of milliseconds",
			span(r.Window), r.Limit, (window/r.Limit+1)*r.Limit)
	}
	p := bucket{interval: window / r.Limit, burst: r.Burst, keep: r.Keep, shared: shared}
	if p.burst < 1 || p.burst > million {
		return nil, fmt.Errorf("burst is %d, want 1 to %d", r.Burst, million)
	}
	if p.interval > longestWindow.Milliseconds()/p.burst {
		return nil, fmt.Errorf("burst is %d, and one action comes back every %s; want a bucket that is full again within 366d", r.Burst, span(millis(p.interval)))
	}
	if r.Keep < 0 || r.Keep%time.Millisecond != 0 || r.Keep > longestWindow {
		return nil, fmt.Errorf("keep is %v, want a whole number of milliseconds, at most 366 days", r.Keep)
	}
	return p, nil
}

func (p bucket) item(now int64) (window, expires int64) {
	return 0, expiry(now+p.burst*p.interval, max(clockSlack, p.keep))
}

func (p bucket) take(now, n int64, _ uint64, s State) (Update, bool) {
	cost, room := n*p.interval, (p.burst-n)*p.interval
	full := p.full(s)
	switch {
	case s[tat] <= now: // idle, whatever its interval was
		return Update{
			If:   [][]Term{{AtMost(tat, now)}},
			Acts: []Act{{Set, tat, now + cost}, {Set, every, p.interval}, {Set, since, now}, {Set, asof, now}},
		}, true
	case full-now > room:
		return Update{}, false
	case p.unit(s) == p.interval:
		terms := []Term{Within(tat, now+1, now+room), Exactly(every, p.interval)}
		if p.shared && s[since] <= now { // all limits count at now, see Policy.latest
			terms = append(terms, Within(since, math.MinInt64, now))
		}
		return Update{
			If:   [][]Term{terms},
			Acts: []Act{{Add, tat, cost}, {Set, asof, now}},
		}, true
	}
	u := Update{
		If:   [][]Term{{Exactly(tat, s[tat]), Exactly(every, s[every]), Exactly(asof, s[asof])}},
		Acts: []Act{{Set, tat, max(now, full) + cost}, {Set, every, p.interval}, {Set, asof, now}},
	}
	if full <= now { // by this interval the bucket is full
		u.Acts = append(u.Acts, Act{Set, since, now})
	}
	return u, true
}

// undo gives back actions that were taken since the bucket was last full. Then
// tat is still later than since by at least their cost.
func (p bucket) undo(_, at, n int64, s State) (Update, bool) {
	unit := p.unit(s)
	least := s[since] + n*unit
	return Update{
		If:   [][]Term{{Exactly(every, unit), Exactly(since, s[since]), Within(tat, least, math.MaxInt64)}},
		Acts: []Act{{Add, tat, -n * unit}},
		ByID: true,
	}, s[since] <= at && s[tat] >= least
}

// read computes Wait as the earlier of two moments: the bucket is idle by the
// interval it was counted with, or it has room by the interval of p.
func (p bucket) read(now, n int64, s State) Reading {
	full := p.full(s)
	behind := max(0, full-now)
	if s[tat] <= now {
		behind = 0
	}
	used := (behind + p.interval - 1) / p.interval
	r := Reading{
		Limit: p.burst, Window: millis(p.burst * p.interval),
		Used: used, Remaining: max(0, p.burst-used), ResetAt: now + min(behind, max(0, s[tat]-now)),
		At: max(now, s[since]), // the clock that first took from the full bucket may be ahead
	}
	if room := (p.burst - n) * p.interval; n > 0 && behind > room {
		r.Wait = millis(min(s[tat], full-room) - now)
	}
	return r
}

// full returns when the bucket is full by the interval of p: tat, if it was
// counted with this interval.
func (p bucket) full(s State) int64 {
	unit := p.unit(s)
	if unit == p.interval {
		return s[tat]
	}
	return s[asof] + scale(s[tat]-s[asof], p.interval, unit, unit-1)
}

// unit returns the interval that s was counted with.
func (p bucket) unit(s State) int64 {
	if unit := s[every]; 0 < unit && unit <= longestWindow.Milliseconds() {
		return unit
	}
	return p.interval
}
