package ratelimit

import (
	"time"

	"github.com/cric-talk/guards/internal/policy"
)

// Known is what this process knows of one item. Its methods are pure: they
// return a new Known and change nothing.
//
// Two states bound what a process admits during an outage. An action must fit
// in Seen and in Fallback, and is then counted in both. When the store answers
// again, its answer replaces Seen, and Fallback stays. So one process admits alone
// at most what the policy allows, even if single requests get through.
//
// For example, with log 100/12h:
//
//	event                           Seen  Fallback  room in both
//	the store shows 40              40    0         60
//	outage: 60 are admitted alone   100   60        0
//	one request gets through        41    60        40
//	outage: 40 are admitted alone   81    100       0
//
// The places of a reservoir are different. An admission leaves Seen and Fallback with the same
// latest place. Fallback also has places that writes under way have skipped to.
type Known struct {
	Seen     Item      // as the store last showed it, plus what was admitted alone since
	Fallback Item      // what was admitted alone, and nothing else but places of a reservoir
	Asked    time.Time // when the attempt that brought Seen began; zero: the store never showed this Seen

	Invalidated time.Time // when this process last released or reset; zero: never

	replaced int // how often the store's item has replaced a Seen that had actions admitted alone

	leases []lease // of prepaid limits, at most one for each
}

// trusted is how long Seen may refuse again without asking the store. A release
// or reset on another instance takes effect here after this time.
const trusted = time.Second

// refuse returns a refusal of q if the store showed at most a second ago that q
// does not fit. It returns false if the store has to be asked.
func (k Known) refuse(q *question, now time.Time) (Decision, bool) {
	age := now.Sub(k.Asked)
	if q.op != Check || k.Asked.IsZero() || age < 0 || age > trusted || !k.Asked.After(k.Invalidated) || k.Seen.counts(q.write) {
		return Decision{}, false
	}
	q.given = k.Fallback.State
	then, rest := q, time.Duration(0)
	lease := leaseOf(k.leases, q.Policy)
	hot := lease.hot(q.write.Now)
	if hot {
		asked, left := *q, lease.rest(q.write.Now)
		asked.write.Now = min(q.write.Now, k.Asked.UnixMilli())
		asked.Count -= left
		then, rest = &asked, q.pause(asked.write.Now)
		if left > 0 { // too few: q is refused for at most half of the time until the lease ends
			rest = min(rest, time.Duration(lease.until-asked.write.Now)*time.Millisecond/2)
		}
		rest -= age
	}
	s := then.checkNew(taken{item: k.Seen}, Location{})
	switch {
	case s.sends(), hot && rest < time.Millisecond:
		return Decision{}, false
	case !hot:
		return s.decision, q.Fresh || !q.fitsAhead(k.Seen)
	}
	d := q.in(k.Seen.State).decision(0, 0)
	d.Wait = max(d.Wait, rest)
	for i := range d.Each {
		if each := &d.Each[i]; each.Name == d.Name {
			each.Wait = d.Wait
		}
	}
	return d, true
}

// fitsAhead reports whether q fits by a clock that is ahead. A request that is not fresh may
// repeat one that an instance with such a clock has counted, and only the store knows.
func (q *question) fitsAhead(seen Item) bool {
	ahead := *q
	ahead.write.Now += policy.ClocksApart.Milliseconds()
	n, _ := ahead.in(seen.State).fits()
	return n > 0
}

// learn replaces Seen with the item that an attempt brought. Asked is when that
// attempt began. If Seen is from an attempt that began later, learn ignores the
// item, unless the clock has stepped back.
func (k Known) learn(item Item, asked, now time.Time) Known {
	if asked.Before(k.Asked) && !k.Asked.After(now) {
		return k
	}
	if k.Asked.IsZero() && len(k.Fallback.State) > 0 {
		k.replaced++
	}
	k.Seen, k.Asked = item, asked
	k.Seen.Unread = nil
	return k
}

// invalidate records a release or reset. From then on, refuse ignores what was seen
// before, because there may be room again. If the clock has stepped back, what was seen has a
// later time than now.
func (k Known) invalidate(now time.Time) Known {
	if k.Invalidated = now; k.Asked.After(now) {
		k.Invalidated = k.Asked
	}
	return k
}

// admit decides a check or a status without the store. An admitted check is counted in Seen
// and in Fallback.
func (k Known) admit(q *question) (Known, Decision) {
	if kept, counted := k.find(q.write); counted && !q.late(kept) {
		if q.claim = (claim{kept: kept, fallback: true}); q.relies {
			k = k.relyOn(q.write)
		}
		return k, k.both(q, func(v view) Decision { return v.found(kept, false) })
	}
	after, seen, alone := k.plan(q)
	switch w := seen.request.write; {
	case seen.counts == 0:
		return k, k.both(q, func(v view) Decision { return v.decision(0, 0) })
	case q.op == Status:
		return k, tighter(q.in(after.Seen.State).wouldBe(seen.counts, w.Update),
			q.in(after.Fallback.State).wouldBe(alone.counts, alone.request.write.Update))
	}
	k = after
	k.Seen = k.Seen.perform(seen.request.write)
	k.Fallback = k.Fallback.perform(alone.request.write)
	k.Asked = time.Time{} // the store has never shown this Seen, so refuse must not use it
	q.claim = claim{own: true, fallback: true, replaced: k.replaced}
	return k, k.both(q, func(v view) Decision { return v.decision(seen.counts, seen.request.write.Note) })
}

// find returns where the request is counted, in Seen or in Fallback. If it has a place in
// both, the later one counts.
func (k Known) find(w Write) (Location, bool) {
	seen, counted := k.Seen.Find(w)
	alone, too := k.Fallback.Find(w)
	if !counted || too && alone.Note > seen.Note {
		return alone, too
	}
	return seen, true
}

// both returns the decision by Seen or by Fallback: the one that restricts more.
func (k Known) both(q *question, decide func(view) Decision) Decision {
	return tighter(decide(q.in(k.Seen.State)), decide(q.in(k.Fallback.State)))
}

// tighter returns the decision that restricts more, marked as one from memory.
func tighter(d, other Decision) Decision {
	if other.Binds(d.Reading) {
		d = other
	}
	d.Reason = Unavailable
	return d
}

// plan returns the steps that count as many of q's actions as fit in Seen and in Fallback.
// They count nothing if the actions do not fit in both. They are for the Known that plan
// returns. There, both have given the same places.
func (k Known) plan(q *question) (after Known, seen, alone step) {
	k.Seen.State, _ = q.Policy.Skip(q.write.Now, k.Fallback.State, k.Seen.State)
	k.Fallback.State, _ = q.Policy.Skip(q.write.Now, k.Seen.State, k.Fallback.State)
	seen, alone = q.check(taken{item: k.Seen}), q.check(taken{item: k.Fallback})
	n := min(seen.counts, alone.counts)
	switch {
	case n == 0:
		return k, step{}, step{}
	case seen.counts != alone.counts: // a partial grant: what fits in both
		both := *q
		both.Count, both.Partial = n, false
		return k.plan(&both)
	}
	return k, seen, alone
}
