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
//	tat    theoretical arrival time: when the bucket will be full again
//	every  the interval that tat was computed with
//	since  when the bucket was last full; older actions do not count any more
//	asof   when an action last changed tat
//
// Each action moves tat one interval later, and used = (tat - now) / interval,
// rounded up. For example, bucket 10/1m burst 15 has an interval of 6 s:
//
//	second  event           tat  used  remaining
//	100     3 actions       118  3     12
//	106     one came back   118  2     13
//	118     full again      118  0     15
//	200     15 actions      290  15    0
//	200     a 16th action   290  refused until second 206
//
// A tier or a changed limit can have another interval. What is in use at its first
// decision comes back at its pace, and a bucket that is full by then is full. If the
// interval is longer, even a refusal records it, see repace; a shorter one already serves
// from asof on. See full for an example of each.
type bucket struct {
	interval int64 // milliseconds that one action takes to come back
	burst    int64
	longest  int64         // milliseconds until it is full again at the latest, whichever number a caller gives, and with what a lease keeps back
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
	if p.longest = p.burst * p.interval; r.Max > 0 {
		p.longest = max(window+r.cost(), p.longest+r.highest().Burst) // an interval is rounded up
	}
	if p.interval > maxWindow.Milliseconds()/p.burst {
		return nil, fmt.Errorf("burst is %d, and one action comes back every %s; want a bucket that is full again within 366d", r.Burst, span(millis(p.interval)))
	}
	if r.Prepaid {
		return keepBack(p), nil
	}
	return p, nil
}

func (p bucket) with(r Rate) kind {
	p.interval, p.burst = (r.Window.Milliseconds()+r.Limit-1)/r.Limit, r.Burst
	return p
}

// item returns a time after tat, too, which another interval may have made later.
func (p bucket) item(now int64, s State) (window, expires int64) {
	return 0, expiry(max(now+p.longest, s.Get(tat)), max(ClockSlack, p.keep))
}

func (p bucket) stays() (least, most int64) {
	stays := p.longest + max(ClockSlack, p.keep).Milliseconds()
	return stays, stays
}

func (p bucket) take(now, n int64, _ uint64, s State) (Update, bool) {
	cost, room := n*p.interval, (p.burst-n)*p.interval
	now = p.counted(now, s)
	full := p.full(now, s)
	switch {
	case s.Get(tat) <= now: // idle, whatever its interval was
		return Update{
			If:   [][]Term{{AtMost(tat, now)}},
			Acts: []Act{{Set, tat, now + cost}, {Set, every, p.interval}, {Set, since, now}, {Set, asof, now}},
		}, true
	case full-now > room:
		return Update{}, false
	case p.unit(s) == p.interval:
		terms := []Term{Within(tat, now+1, now+room), Exactly(every, p.interval)}
		if s.Get(since) <= now { // a clock ahead that fills the bucket meanwhile changes when the actions count
			terms = append(terms, Within(since, math.MinInt64, now))
		}
		return Update{
			If:   [][]Term{terms},
			Acts: []Act{{Add, tat, cost}, {Set, asof, now}},
		}, true
	}
	u := Update{
		If:   [][]Term{{Exactly(tat, s.Get(tat)), Exactly(every, s.Get(every)), Exactly(asof, s.Get(asof))}},
		Acts: []Act{{Set, tat, max(now, full) + cost}, {Set, every, p.interval}, {Set, asof, now}},
	}
	if full <= now { // by this interval the bucket is full
		u.Acts = append(u.Acts, Act{Set, since, now})
	}
	return u, true
}

// repace plans to record the longer interval of p. Then what is in use comes back at p's
// pace, and not at the pace in s until the bucket is full. Only a slower p has to record it.
func (p bucket) repace(now int64, s State) (u Update, slower bool) {
	return Update{
		If:   [][]Term{{Exactly(tat, s.Get(tat)), Exactly(every, s.Get(every)), Exactly(asof, s.Get(asof))}},
		Acts: []Act{{Set, tat, p.full(now, s)}, {Set, every, p.interval}, {Set, asof, max(now, s.Get(asof), s.Get(since))}},
	}, p.interval > p.unit(s) && s.Get(tat) > now
}

// undo moves tat back by the cost of n actions. It refuses if the bucket has
// been full since they were counted, or if tat would be before since.
//
// It may give back time that has already passed. For example, with bucket 1/5s
// burst 3, actions at seconds 100 and 104 make tat 110. Releasing the first at
// second 104 makes tat 105, although the second alone would make it 109.
func (p bucket) undo(_, at, n int64, s State) (Update, bool) {
	unit := p.unit(s)
	least := s.Get(since) + n*unit
	u := plan(Act{Add, tat, -n * unit}, Exactly(every, unit), Exactly(since, s.Get(since)), Within(tat, least, math.MaxInt64))
	return u, s.Get(since) <= at && s.Get(tat) >= least
}

// read returns the figures of s. Wait ends when n actions fit by the interval of p.
func (p bucket) read(at, n int64, s State) Reading {
	now := p.counted(at, s)
	full := p.full(now, s)
	behind := max(0, full-now)
	if s.Get(tat) <= now {
		behind = 0
	}
	used := (behind + p.interval - 1) / p.interval
	r := Reading{
		Limit: p.burst, Window: millis(p.burst * p.interval),
		Used: used, Remaining: max(0, p.burst-used), ResetAt: now + behind,
	}
	if room := (p.burst - n) * p.interval; n > 0 && behind > room {
		r.Wait = millis(full - room - at)
	}
	return r
}

// counted returns now, or the time when a clock ahead took from the full bucket.
func (p bucket) counted(now int64, s State) int64 {
	if ahead := s.Get(since) - now; 0 < ahead && ahead <= ClockSlack.Milliseconds() {
		return s.Get(since)
	}
	return now
}

// full returns when the bucket is full by the interval of p. If s has another one, the
// time until tat is scaled: from asof if the interval of p is shorter, and otherwise from
// now. For example, asof 0, tat 30 and every 10 are 3 actions, which an interval of 4 gives
// back by 12. With an interval of 20, one of them is back at 10, and the others at 50.
func (p bucket) full(now int64, s State) int64 {
	unit := p.unit(s)
	if unit == p.interval {
		return s.Get(tat)
	}
	from, kept := s.Get(asof), keptBack(s)
	if p.interval > unit {
		from = max(now, s.Get(asof), s.Get(since)) // a clock ahead can have counted
	}
	busy := s.Get(tat) - kept // what is kept back is a time, at any pace
	return kept + min(busy, from) + scale(busy-from, p.interval, unit, unit-1)
}

// unit returns the interval that s was counted with, or the interval of p if s
// has none in the valid range.
func (p bucket) unit(s State) int64 {
	if unit := s.Get(every); 0 < unit && unit <= maxWindow.Milliseconds() {
		return unit
	}
	return p.interval
}
