package ratelimit

import (
	"slices"

	"github.com/cric-talk/guards/internal/policy"
)

// late reports whether the window of the place that q's id has is over, or whether the
// policy does not give that place any more. Then a repeat of q is a late job: one update
// gives its id a new place instead of the old one, and later repeats get the new place.
// An id that was counted without a place is never late.
//
// For example, with reservoir 10/10s, and seconds instead of times:
//
//	second 8   check r1     runs now; the item keeps "r1, place 0"
//	second 9   r1 again     duplicate
//	second 27  r1 again     late: the item keeps "r1, place 20" instead, and r1 runs now
//	second 28  r1 again     duplicate
//
// Places of one id only move forward. So an update that was planned before a move finds
// the id with another place, in the same set or in a later one, and changes nothing.
func (q *question) late(kept Location) bool {
	if !q.Policy.Queues() || kept.Note <= MaxReleased { // no place, but the number of a partial grant
		return false
	}
	onTime, early := q.Policy.Due(q.write.Now, kept.Note)
	return !onTime && !early
}

// due decides a check that presents a place, without the store. If it is on time,
// it may run. If it is early, it gets the same place again. It returns false if
// there is no place, or if the place has passed and the check needs a new one.
func (q *question) due() (Decision, bool) {
	if q.ReadyAt == 0 {
		return Decision{}, false
	}
	onTime, early := q.Policy.Due(q.write.Now, q.ReadyAt)
	d := Decision{Allowed: true, Reason: OK, Granted: q.Count}
	if early {
		d = q.in(nil).delayed(d, q.ReadyAt)
		d.Waiting = 0 // only the store knows how many wait
	}
	return d, onTime || early
}

// A kept place is the place of a write under way. The memory counts it as given from
// memory, so that nobody else gets it there meanwhile.
type keptPlace struct{ before, after policy.State } // of Known.Fallback; zero: none

// choose chooses a step of the question. A step of a reservoir skips the places that this
// process has given from memory, for as long as they lie ahead: see [policy.Policy.TakeAfter].
// The store knows nothing of these places. Once a check has skipped them in the store, the
// checks of other instances get later places, too. Meanwhile, choose keeps the place of the step.
//
// For example, with reservoir 10/10s, 60 jobs get places from memory, up to second 50. At
// second 3 the table is back, which has given none of them. The next job gets second 60. If
// the memory has dropped the key meanwhile, that job gets second 0, and those windows can
// have twice their places.
func (t *attempts) choose(next func() step) (s step) {
	q, m := t.question, t.limiter.Memory
	s = next()
	if !q.Policy.Queues() || q.op != Check && q.op != Status || s.claim.kept.Set != "" {
		return s // with a claim, it is counted, with the places that were given then
	}
	q.given = m.Recall(q.write.Key).Fallback.State
	if _, ahead := q.Policy.Skip(q.write.Now, q.given, nil); !ahead || q.op == Status {
		return next()
	}
	m.Change(q.write.Key, func(k Known) Known {
		q.given = k.Fallback.State
		if s = next(); s.counts == 0 {
			return k
		}
		if after, further := q.Policy.Skip(q.write.Now, s.request.write.Update.Apply(s.from), k.Fallback.State); further {
			t.kept = keptPlace{k.Fallback.State, after}
			k.Fallback.State = after
		}
		return k
	})
	return s
}

// settle ends the keeping of a place, because the outcome of its write is known. If it was not
// performed, others can have the place, unless later ones are given already.
func (t *attempts) settle(done bool) {
	if t.kept.after != nil && !done {
		t.limiter.Memory.Change(t.question.write.Key, func(k Known) Known {
			if slices.Equal(k.Fallback.State, t.kept.after) {
				k.Fallback.State = t.kept.before
			}
			return k
		})
	}
	t.kept = keptPlace{}
}
