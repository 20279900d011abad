package ratelimit

import (
	"time"

	"github.com/cric-talk/guards/internal/policy"
)

// Known is what this process knows of one item. Its methods are pure.
//
// Two states bound what a process admits during an outage. An action must fit
// in Seen and in Alone, and is then counted in both. When the store answers
// again, the answer replaces Seen, and Alone stays. So one process admits alone
// at most what the policy allows, even if single requests get through.
//
// For example, with a limit of 100 in 12 hours: the store showed 40, and 60 are
// admitted alone. One request gets through and shows 41. Seen has room for 59
// more, but Alone has 60 of 100. At most 40 more are admitted alone in these 12
// hours.
type Known struct {
	Seen  Item      // as the store last showed it, plus what was admitted alone since
	Alone Item      // what was admitted alone, and nothing else
	Asked time.Time // when the attempt that brought Seen began; zero: no attempt brought it

	Doubted   time.Time // when this process last released or reset; zero: never
	Throttled time.Time // when this item was last throttled or probed; zero: the store answers
}

// trusted is how long Seen may refuse again without asking the store. A release
// or reset on another instance takes effect here after this time.
const trusted = time.Second

// refuse returns a refusal of r if the store showed at most a second ago that r
// does not fit.
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
	return r.decision(w.Now, k.Seen.State, 0), true
}

// shown returns the state that the store last showed. It is empty if Seen has
// actions that the store does not know.
func (k Known) shown() policy.State {
	if k.Asked.IsZero() {
		return nil
	}
	return k.Seen.State
}

// learn replaces Seen by the item that an attempt brought. Asked is when the
// attempt began. If a later attempt was answered first, the item is dropped,
// unless the clock has stepped back.
func (k Known) learn(item Item, asked, now time.Time) Known {
	k.Throttled = time.Time{}
	if asked.Before(k.Asked) && !k.Asked.After(now) {
		return k
	}
	k.Seen, k.Asked = item, asked
	k.Seen.Unread = nil
	return k
}

// doubt records a release or reset. What was seen before now no longer refuses,
// because there may be room again.
func (k Known) doubt(now time.Time) Known {
	k.Doubted = now
	return k
}

// throttled records that the store throttles this item.
func (k Known) throttled(now time.Time) Known {
	k.Throttled = now
	return k
}

// admit decides r without the store, as part of a decision that has tried t. An
// admitted action is counted in Seen and in Alone.
func (k Known) admit(r *Request, w Write, t *tries) (Known, Decision) {
	if kept, counted := k.find(w); counted {
		return k, k.both(func(s policy.State) Decision {
			if t.unsure {
				return r.found(s, w, kept, false, t)
			}
			return r.repeated(w.Now, s, r.place(kept))
		})
	}
	n, seen, alone := k.fits(r, w)
	if n == 0 {
		return k, k.refusal(r, w)
	}
	if r.Policy.Queues() {
		w.Note = seen.ReadyAt
	}
	k.Seen = k.Seen.performed(w, seen)
	k.Alone = k.Alone.performed(w, alone)
	k.Asked = time.Time{} // the store has never shown this Seen, so it must not refuse in its name
	d := k.both(func(s policy.State) Decision { return r.counted(w.Now, s, n, seen.ReadyAt) })
	if t.unsure && !r.Fresh {
		d.At = 0
	}
	return k, d
}

// status decides r as admit would, and counts nothing.
func (k Known) status(r *Request, w Write) Decision {
	if kept, counted := k.find(w); counted {
		return k.both(func(s policy.State) Decision { return r.repeated(w.Now, s, r.place(kept)) })
	}
	n, seen, alone := k.fits(r, w)
	if n == 0 {
		return k.refusal(r, w)
	}
	d := r.wouldBe(k.Seen.State, w, n, seen)
	if other := r.wouldBe(k.Alone.State, w, n, alone); other.Binds(d.Reading) {
		d = other
	}
	d.Reason = Unavailable
	return d
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
	d := decide(k.Seen.State)
	if other := decide(k.Alone.State); other.Binds(d.Reading) {
		d = other
	}
	d.Reason = Unavailable
	return d
}

func (k Known) refusal(r *Request, w Write) Decision {
	return k.both(func(s policy.State) Decision { return r.decision(w.Now, s, 0) })
}

// fits plans as many of r's actions as fit in Seen and in Alone.
func (k Known) fits(r *Request, w Write) (n int64, seen, alone policy.Update) {
	n, seen = r.fits(w, k.Seen.State)
	m, alone := r.fits(w, k.Alone.State)
	switch {
	case n == 0 || m == 0:
		return 0, seen, alone
	case n != m: // a partial grant: what fits in both
		n = min(n, m)
		seen, _ = r.take(w, n, k.Seen.State)
		alone, _ = r.take(w, n, k.Alone.State)
	}
	if seen.ReadyAt != alone.ReadyAt {
		return k.samePlace(r, w, n, seen, alone)
	}
	return n, seen, alone
}

// samePlace plans again until both plans give the same place. Whichever is
// earlier skips to the later one.
func (k Known) samePlace(r *Request, w Write, n int64, seen, alone policy.Update) (int64, policy.Update, policy.Update) {
	var latest int64
	for _, rate := range r.Policy.Rates() {
		latest = max(latest, w.Now+rate.Ahead.Milliseconds())
	}
	for seen.ReadyAt != alone.ReadyAt {
		var ok bool
		at := w
		at.Now = max(seen.ReadyAt, alone.ReadyAt)
		if seen.ReadyAt < at.Now {
			seen, ok = r.take(at, n, k.Seen.State)
		} else {
			alone, ok = r.take(at, n, k.Alone.State)
		}
		if !ok || max(seen.ReadyAt, alone.ReadyAt) > latest {
			return 0, seen, alone
		}
	}
	return n, seen, alone
}

// performed returns the item after w with the update u, which holds in it.
func (i Item) performed(w Write, u policy.Update) Item {
	w.Update = u
	return i.perform(w)
}

// place returns the place that a counted request was given; 0: none.
func (r *Request) place(kept Kept) int64 {
	if r.Policy.Queues() {
		return kept.Note
	}
	return 0
}
