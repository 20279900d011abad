// Package policy decides how often somebody may act. It is pure: no function
// here reads a clock, draws a random number or talks to a database.
//
// A [Policy] is written as text and read with [Parse]:
//
//	10/1m                          at most 10 in each minute of the clock
//	bucket 10/1m burst 15          15 at once, then one every 6 s
//	log 100/12h                    at most 100 in any 12 hours
//	sliding 50/1h                  about 50 in any hour, from two counters
//	reservoir 10/10s ahead 15m     10 in 10 s; the next ones get a later time
//	minute: 10/1m, day: 200/1d     both limits must allow the action
//
// The state of a policy is a few integers in one item of a database.
// [Policy.Take] reads a state and plans an [Update]: some changes, and a guard.
// The guard is a condition that must still hold when the changes are applied.
// The database checks it and applies the changes in one atomic step. If another
// request has changed the item and the guard fails, the caller gets the item as
// it is now and plans again. So nobody reads the item first, and nobody locks
// it.
//
// For example, the limit is 10/1m and 9 actions are counted. Take plans "add 1
// to activityCount" with the guard "activityCount <= 9". Two callers send this
// update at once. The first one makes the count 10. The guard of the second one
// fails. Its caller plans again from the count of 10, and Take refuses.
//
// [Policy.Read] returns the figures of a state, such as how many actions
// remain. [Policy.Undo] plans to give actions back. [Share] reports why two
// policies cannot count in the same items.
//
// All times are Unix milliseconds unless a name says otherwise.
package policy

import (
	"cmp"
	"time"
)

// A Policy is one limit, or several that must all allow an action. The zero
// Policy has no limit: [Policy.IsZero] reports it, and no other method may be
// called on it. A Policy never changes, so it is safe for concurrent use.
type Policy struct {
	limits []limit // one without a name, or several with names
	most   int64
	queue  int // the index of the limit that gives places in later windows; -1: none does
}

// A limit is one part of a policy.
type limit struct {
	rate Rate
	kind kind
}

// A Reading is what callers are told about a state.
type Reading struct {
	Name      string        // the limit that these figures are about, if the policy has several; else empty
	Limit     int64         // actions per window; for a bucket its burst
	Window    time.Duration // the time in which Limit actions come back
	Used      int64         // actions counted in the current window
	Remaining int64         // actions left now; never below 0
	ResetAt   int64         // when everything that counts now has expired; now if nothing counts
	WindowKey int64         // floor(now / window); 0 if the policy has no windows of the clock
	Wait      time.Duration // how long until the actions asked about fit, if nobody else acts; 0: they fit now
	At        int64         // the receipt of actions counted now: pass it to Undo
	Each      []Reading     // one for each limit, if the policy has several
}

// IsZero reports whether p is the zero Policy, which has no limit.
func (p Policy) IsZero() bool { return len(p.limits) == 0 }

// Equal reports whether p and q have the same text form.
func (p Policy) Equal(q Policy) bool { return p.String() == q.String() }

// Most returns the most actions that one request can take.
func (p Policy) Most() int64 { return p.most }

// Item names the item that counts at now. Window is floor(now / window) if each
// window has an item of its own, and 0 if one item serves forever. Expires is
// in Unix seconds: from then on, dropping the item changes no decision, even on
// a clock that is 120 s behind.
func (p Policy) Item(now int64) (window, expires int64) {
	if one, ok := p.single(); ok {
		return one.item(now)
	}
	for _, l := range p.limits {
		_, e := l.kind.item(now)
		expires = max(expires, e)
	}
	return 0, expires
}

// Take plans to count n actions at now in an item with state s. It returns
// false if s has no room for them. The guard of the update is as weak as the
// policy allows, so concurrent requests that all fit do not make each other
// fail.
//
// Seed spreads concurrent requests over the free slots of a log. Any value is
// correct; requests with different seeds collide less often.
func (p Policy) Take(now, n int64, seed uint64, s State) (Update, bool) {
	if n < 1 || n > p.most {
		return Update{}, false
	}
	if one, ok := p.single(); ok {
		return one.take(now, n, seed, s)
	}
	now = p.latest(now, s)
	return p.combine(s, func(k kind, mine State) (Update, step) {
		u, ok := k.take(now, n, seed, mine)
		if !ok {
			return u, stop
		}
		return u, keep
	})
}

// Undo plans to give back n actions that were counted at at. It returns false
// if the actions no longer count, or if s counts fewer than n.
func (p Policy) Undo(now, at, n int64, s State) (Update, bool) {
	if n < 1 || n > million || at > now {
		return Update{}, false
	}
	if one, ok := p.single(); ok {
		return one.undo(now, at, n, s)
	}
	u, ok := p.combine(s, func(k kind, mine State) (Update, step) {
		u, ok := k.undo(now, at, n, mine)
		if !ok {
			return u, skip
		}
		return u, keep
	})
	u.ByID = true
	return u, ok && len(u.Acts) > 0
}

// Read returns the figures of s at now. Wait is about n actions more; with n 0
// it is 0. With several limits, the figures are those of the limit that binds:
// the one with the longest wait. If no limit has a wait, it is the limit with
// the fewest remaining actions.
func (p Policy) Read(now, n int64, s State) Reading {
	if one, ok := p.single(); ok {
		return one.read(now, n, s).plausible(now)
	}
	each := make([]Reading, len(p.limits))
	binding, at := 0, p.latest(now, s)
	for i, l := range p.limits {
		each[i] = l.kind.read(at, n, l.mine(s))
		if each[i].Wait > 0 {
			each[i].Wait += millis(at - now)
		}
		each[i] = each[i].plausible(now)
		each[i].Name, each[i].WindowKey = l.rate.Name, 0
		if each[i].Binds(each[binding]) {
			binding = i
		}
	}
	r := each[binding]
	r.At, r.Each = at, each
	return r
}

// plausible brings figures back into their ranges. Only a state that no policy
// has written has figures beyond them.
func (r Reading) plausible(now int64) Reading {
	const longest = 2 * longestWindow // no policy counts an action for longer
	r.Used = max(0, r.Used)
	r.Remaining = min(max(0, r.Remaining), r.Limit)
	if r.Wait < 0 || r.Wait > longest {
		r.Wait = longest
	}
	r.ResetAt = min(max(now, r.ResetAt), now+longest.Milliseconds())
	return r
}

// Binds reports whether r restricts the caller more than other does: it waits
// longer, or it leaves less.
func (r Reading) Binds(other Reading) bool {
	return cmp.Or(
		cmp.Compare(r.Wait, other.Wait),
		cmp.Compare(other.Remaining, r.Remaining),
		cmp.Compare(r.ResetAt, other.ResetAt),
	) > 0
}

// Rates returns the numbers of each limit, for tables and pictures.
func (p Policy) Rates() []Rate {
	rates := make([]Rate, len(p.limits))
	for i, l := range p.limits {
		rates[i] = l.rate
	}
	return rates
}

// Queues reports whether the policy gives places in later windows instead of
// refusing.
func (p Policy) Queues() bool { return !p.IsZero() && p.queue >= 0 }

// AtOnce returns p without places in later windows. It refuses what p delays.
// A policy that does not queue is returned unchanged.
func (p Policy) AtOnce() Policy {
	if !p.Queues() {
		return p
	}
	rates := p.Rates()
	rates[p.queue].Ahead = 0
	return must(newPolicy(rates))
}

// Due compares readyAt, a time that p gave earlier, with now. OnTime means that
// its window is the current one. Early means that its window is still to come,
// within 366 days. If neither holds, the time has passed or was never given.
func (p Policy) Due(now, readyAt int64) (onTime, early bool) {
	if !p.Queues() {
		return false, false
	}
	return p.limits[p.queue].kind.(queue).due(now, readyAt)
}

// IsPlace reports whether readyAt is a time that p can give: the start of a
// window.
func (p Policy) IsPlace(readyAt int64) bool {
	return p.Queues() && readyAt > 0 && readyAt%p.limits[p.queue].rate.Window.Milliseconds() == 0
}

// Waiting returns how many places are taken in later windows, up to and
// including the window of readyAt. It counts the current limit for each full
// window.
func (p Policy) Waiting(now, readyAt int64, s State) int64 {
	if !p.Queues() {
		return 0
	}
	l := p.limits[p.queue]
	if len(p.limits) > 1 {
		s = l.mine(s)
	}
	return l.kind.(queue).waiting(now, readyAt, s)
}

// single returns the kind of a policy that has one limit.
func (p Policy) single() (kind, bool) {
	if len(p.limits) == 1 {
		return p.limits[0].kind, true
	}
	return nil, false
}
