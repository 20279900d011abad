package ratelimit

import (
	"time"

	"github.com/cric-talk/guards/internal/policy"
)

// Known is what this process knows of one item. Its methods are pure: they
// return a new Known and change nothing.
//
// Two states bound what a process admits during an outage. An action must fit
// in Seen and in Alone, and is then counted in both. When the store answers
// again, its answer replaces Seen, and Alone stays. So one process admits alone
// at most what the policy allows, even if single requests get through.
//
// For example, with log 100/12h:
//
//	event                           Seen  Alone  room in both
//	the store shows 40              40    0      60
//	outage: 60 are admitted alone   100   60     0
//	one request gets through        41    60     40
//	outage: 40 are admitted alone   81    100    0
type Known struct {
	Seen  Item      // as the store last showed it, plus what was admitted alone since
	Alone Item      // what was admitted alone, and nothing else
	Asked time.Time // when the attempt that brought Seen began; zero: the store never showed this Seen

	Doubted time.Time // when this process last released or reset; zero: never
}

// trusted is how long Seen may refuse again without asking the store. A release
// or reset on another instance takes effect here after this time.
const trusted = time.Second

// mostApart is how far the clocks of two instances may be apart.
const mostApart = 2 * time.Second

// refuse returns a refusal of r if the store showed at most a second ago that r
// does not fit. It returns false if the store has to be asked.
func (k Known) refuse(r *Request, w Write, now time.Time) (Decision, bool) {
	age := now.Sub(k.Asked)
	if k.Asked.IsZero() || age < 0 || age > trusted || !k.Asked.After(k.Doubted) {
		return Decision{}, false
	}
	if _, counted := k.Seen.Find(w); counted {
		return Decision{}, false
	}
	if n, _ := r.fits(w, k.Seen.State); n > 0 {
		return Decision{}, false
	}
	// A request that is not fresh may repeat one that an instance whose clock is
	// ahead has counted. If it fits by such a clock, only the store knows.
	if ahead := w; !r.Fresh {
		ahead.Now += mostApart.Milliseconds()
		if n, _ := r.fits(ahead, k.Seen.State); n > 0 {
			return Decision{}, false
		}
	}
	return r.decision(w.Now, k.Seen.State, 0), true
}

// shown returns the state that the store last showed. It returns nil if the
// store has shown none, or if Seen also has actions that were admitted alone.
func (k Known) shown() policy.State {
	if k.Asked.IsZero() {
		return nil
	}
	return k.Seen.State
}

// learn replaces Seen with the item that an attempt brought. Asked is when that
// attempt began. If Seen is from an attempt that began later, learn ignores the
// item, unless the clock has stepped back.
func (k Known) learn(item Item, asked, now time.Time) Known {
	if asked.Before(k.Asked) && !k.Asked.After(now) {
		return k
	}
	k.Seen, k.Asked = item, asked
	k.Seen.Unread = nil
	return k
}

// doubt records a release or reset. From then on, refuse ignores what was seen
// before, because there may be room again.
func (k Known) doubt(now time.Time) Known {
	k.Doubted = now
	return k
}

// admit decides r without the store, after the attempts in t. An admitted
// action is counted in Seen and in Alone.
func (k Known) admit(r *Request, w Write, t *tries) (Known, Decision) {
	if kept, counted := k.find(w); counted {
		return k, k.both(func(s policy.State) Decision { return r.found(s, w, kept, false, t) })
	}
	after, n, seen, alone := k.fits(r, w)
	if n == 0 {
		return k, k.refusal(r, w)
	}
	k = after
	w.Note = seen.ReadyAt
	w.Update = seen
	k.Seen = k.Seen.perform(w)
	w.Update = alone
	k.Alone = k.Alone.perform(w)
	k.Asked = time.Time{} // the store has never shown this Seen, so refuse must not use it
	return k, k.both(func(s policy.State) Decision { return r.counted(w.Now, s, n, seen.ReadyAt) })
}

// status decides r as admit would, and counts nothing.
func (k Known) status(r *Request, w Write) Decision {
	if kept, counted := k.find(w); counted {
		return k.both(func(s policy.State) Decision { return r.repeated(w.Now, s, r.place(kept)) })
	}
	k, n, seen, alone := k.fits(r, w)
	if n == 0 {
		return k.refusal(r, w)
	}
	return tighter(r.wouldBe(k.Seen.State, w, n, seen), r.wouldBe(k.Alone.State, w, n, alone))
}

// find returns where the request is counted, in Seen or in Alone.
func (k Known) find(w Write) (Kept, bool) {
	if kept, counted := k.Seen.Find(w); counted {
		return kept, true
	}
	return k.Alone.Find(w)
}

// both returns the decision by Seen or by Alone, whichever restricts the caller
// more.
func (k Known) both(decide func(policy.State) Decision) Decision {
	return tighter(decide(k.Seen.State), decide(k.Alone.State))
}

// tighter returns the decision that restricts the caller more, marked as one
// from memory.
func tighter(d, other Decision) Decision {
	if other.Binds(d.Reading) {
		d = other
	}
	d.Reason = Unavailable
	return d
}

// refusal returns the decision for r if it does not fit.
func (k Known) refusal(r *Request, w Write) Decision {
	return k.both(func(s policy.State) Decision { return r.decision(w.Now, s, 0) })
}

// fits plans as many of r's actions as fit in Seen and in Alone. The plans are
// for the Known that it returns, in which both give the same place.
func (k Known) fits(r *Request, w Write) (after Known, n int64, seen, alone policy.Update) {
	n, seen = r.fits(w, k.Seen.State)
	m, alone := r.fits(w, k.Alone.State)
	switch {
	case n == 0 || m == 0:
		return k, 0, seen, alone
	case n != m: // a partial grant: what fits in both
		n = min(n, m)
		seen, _ = r.take(w, n, k.Seen.State)
		alone, _ = r.take(w, n, k.Alone.State)
	}
	switch { // the later place is free in both
	case seen.ReadyAt < alone.ReadyAt:
		k.Seen.State = r.Policy.Skip(alone.ReadyAt, k.Seen.State)
		seen, _ = r.take(w, n, k.Seen.State)
	case alone.ReadyAt < seen.ReadyAt:
		k.Alone.State = r.Policy.Skip(seen.ReadyAt, k.Alone.State)
		alone, _ = r.take(w, n, k.Alone.State)
	}
	return k, n, seen, alone
}

// place returns the place that a counted request was given; 0: none.
func (r *Request) place(kept Kept) int64 {
	if r.Policy.Queues() {
		return kept.Note
	}
	return 0
}
