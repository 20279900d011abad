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

// admit decides r without the store and counts what it admits in Seen and in
// Alone. T is what this decision has tried so far.
func (k Known) admit(r *Request, w Write, t *tries) (Known, Decision) {
	for _, item := range []Item{k.Seen, k.Alone} {
		kept, counted := item.Find(w)
		if !counted {
			continue
		}
		var d Decision
		if t.unsure {
			d = r.found(k.Seen.State, w, kept, false, t)
		} else {
			d = r.repeated(w.Now, k.Seen.State, r.place(kept))
		}
		return k, d.alone()
	}
	n, seen, alone := k.fits(r, w)
	if n == 0 {
		return k, k.refusal(r, w).alone()
	}
	readyAt := max(seen.ReadyAt, alone.ReadyAt)
	if r.Policy.Queues() {
		w.Note = readyAt
	}
	k.Seen = k.Seen.performed(w, seen)
	k.Alone = k.Alone.performed(w, alone)
	k.Asked = time.Time{} // the store has never shown this Seen, so it must not refuse in its name
	d := r.counted(w.Now, k.Seen.State, n, readyAt)
	if t.unsure && !r.Fresh {
		d.At = 0
	}
	return k, d.alone()
}

// status decides r as admit would, and counts nothing.
func (k Known) status(r *Request, w Write) Decision {
	n, seen, _ := k.fits(r, w)
	if n == 0 {
		return k.refusal(r, w).alone()
	}
	return r.wouldBe(k.Seen, w, n, seen).alone()
}

// fits plans as many of r's actions as fit in Seen and in Alone.
func (k Known) fits(r *Request, w Write) (n int64, seen, alone policy.Update) {
	n, seen = r.fits(w, k.Seen.State)
	m, alone := r.fits(w, k.Alone.State)
	switch {
	case n == m:
	case n == 0 || m == 0:
		return 0, seen, alone
	default: // a partial grant: what fits in both
		n = min(n, m)
		seen, _ = r.take(w, n, k.Seen.State)
		alone, _ = r.take(w, n, k.Alone.State)
	}
	return n, seen, alone
}

// refusal returns the refusal by Seen or by Alone, whichever lasts longer.
func (k Known) refusal(r *Request, w Write) Decision {
	d := r.decision(w.Now, k.Seen.State, 0)
	if other := r.decision(w.Now, k.Alone.State, 0); other.Wait > d.Wait {
		return other
	}
	return d
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

// alone marks a decision that was made without the store.
func (d Decision) alone() Decision {
	d.Reason = Unavailable
	return d
}
