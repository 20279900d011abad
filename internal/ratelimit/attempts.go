package ratelimit

import (
	"cmp"
	"context"
	"time"
)

// attempts send the requests of one decision. A request is sent again, with the
// same id, until the store answers, the budget ends, or it was sent six times.
type attempts struct {
	limiter  *Limiter
	ctx      context.Context // the caller's context with the decision's deadline
	budget   Budget          // nil: the deadline of ctx
	began    time.Time       // when the last attempt began
	requests int             // sent so far, probes and what was sent beside a slow request included
	probing  bool            // a probe is sent, whose failure keeps a circuit open and opens none
	reached  bool            // the store has answered this decision, perhaps about another part, or a probe
	busy     *StoreError     // the last answer of the class NotApplied; nil: there was none
	answered bool            // the store has answered with an item
	item     Item            // the last item, if answered
	asked    time.Time       // when the attempt that brought the item began
	amount   amount          // how many actions a counted id stands for
	lease    *lease          // what a visit took; nil: nothing
	kept     keptPlace       // of a reservoir, by the write under way; zero: none
}

// An amount is how many actions a decision took, if its id is found in the item.
// That is the number of the current attempt, until an attempt is lost. From then
// on it is the number of the lost attempt. A later attempt for another number
// keeps its own number with its id, as a note.
//
// For example, a partial request asks for 3 actions, and the answer is lost. The
// next answer shows that the request is not counted and that 2 fit. So plain stays
// 3, and the next attempt asks for 2 and keeps the note 2 with its id. If the id
// is found later with this note, 2 actions were taken, and without a note 3.
type amount struct {
	plain  int64 // what an id without a note stands for
	unsure bool  // an update had an unknown outcome, so it may have been performed
}

// note records that an attempt for n actions begins, and returns the note that it
// keeps with its id; 0: none.
func (a *amount) note(n int64) int64 {
	if !a.unsure {
		a.plain = n
	}
	if n == a.plain {
		return 0
	}
	return n
}

// of returns how many actions an id with this note stands for.
func (a amount) of(note int64) int64 { return cmp.Or(note, a.plain) }

// carryOut takes the steps of q until q is decided. Known is what is known of the item.
func (t *attempts) carryOut(q *question, known Item) (Decision, error) {
	if q.read != nil {
		known = *q.read
	}
	got := taken{item: known}
	s := t.choose(q, func() step { return q.first(known) })
	for s.sends() {
		if !s.unseen && !s.request.write.Update.Holds(got.item.State) {
			return Decision{}, unreadable("") // no policy has written this item
		}
		var err error
		if got, err = t.take(q, s, got.item); err != nil {
			return Decision{}, err
		}
		s = t.choose(q, func() step { return q.next(got) })
	}
	q.claim, q.origin, t.lease = s.claim, s.origin, s.lease
	if q.op == Check {
		return s.decision, nil
	}
	return s.decision, q.readable(got.item)
}

// take sends the request of s, in an item that was last shown as this one.
func (t *attempts) take(q *question, s step, shown Item) (got taken, err error) {
	got = taken{step: s, item: shown}
	w := s.request.write
	switch {
	case s.request.verb == deletes:
		return got, t.delete(w.Key)
	case s.request.verb == reads:
		if got.item, err = t.read(w.Key); err == nil {
			err = q.readable(got.item)
		}
		if q.look {
			item := got.item
			q.read = &item
		}
		return got, err
	case s.counts > 0:
		w.Note = max(w.Note, t.amount.note(s.counts)) // at most one is set: a queue gives one place at a time
	}
	item, done, err := t.update(w)
	got.sent = t.amount
	if err == nil || !t.amount.unsure {
		t.settle(q, done)
	}
	switch failed := asStoreError(err); {
	case failed == nil:
	case s.records: // the next refusal records the pace
		return got, nil
	case s.visit > 0 && failed.Failure == Unknown:
		got.lost = true
		return got, nil
	default:
		return got, err
	}
	if !done && item.allows(w) { // the store refused the guard, so the attributes cannot mean what they seem to
		return got, unreadable("")
	}
	got.item, got.done = item, done
	return got, nil
}

// readable returns an error if the policy uses an attribute that could not be read.
func (q *question) readable(item Item) error {
	for _, attr := range q.Unusable(q.write.Now, item) {
		return unreadable(attr)
	}
	return nil
}
