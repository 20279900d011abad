package ratelimit

import (
	"cmp"
	"context"
	"time"
)

// attempts send the requests about one question. A request is sent again, with the
// same id, until the store answers, the budget ends, or it was sent six times.
type attempts struct {
	question *question // nil: a probe, whose failure keeps a circuit open and opens none
	limiter  *Limiter
	ctx      context.Context // the caller's context with the decision's deadline
	budget   Budget          // nil: the deadline of ctx
	began    time.Time       // when the last attempt began
	requests int             // sent so far, what was sent beside a slow request included
	busy     *StoreError     // the last answer of the class NotApplied; nil: there was none
	answered bool            // the store has answered with an item
	item     Item            // the last item, if answered
	asked    time.Time       // when the attempt that brought the item began
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

// lost records that r had an unknown outcome.
func (a *amount) lost(r *request) { a.unsure = a.unsure || r.write.ID != ID{} }

// carryOut takes the steps of the question until it is decided.
func (t *attempts) carryOut() (Decision, *StoreError) {
	q := t.question
	got := taken{item: q.shown}
	s := t.choose(func() step { return q.first(q.shown) })
	for s.sends() {
		if !s.unseen && !s.request.write.Update.Holds(got.item.State) {
			return Decision{}, unreadable("") // no policy has written this item
		}
		var failed *StoreError
		if got, failed = t.take(s, got.item); failed != nil {
			return Decision{}, failed
		}
		s = t.choose(func() step { return q.next(got) })
	}
	q.claim, q.origin, q.lease = s.claim, s.origin, s.lease
	if q.op == Check {
		return s.decision, nil
	}
	return s.decision, q.readable(got.item)
}

// take sends the request of s, in an item that was last shown as this one.
func (t *attempts) take(s step, shown Item) (got taken, failed *StoreError) {
	got = taken{step: s, item: shown}
	r, sent := s.request, &t.question.sent
	if s.counts > 0 {
		r.write.Note = max(r.write.Note, sent.note(s.counts)) // at most one is set: a queue gives one place at a time
	}
	a, failed := t.ask(&r)
	if failed == nil || !sent.unsure {
		t.settle(a.done)
	}
	switch {
	case failed == nil:
	case s.records: // the next refusal records the pace
		return got, nil
	case s.visit > 0 && failed.Failure == Unknown:
		got.lost = true
		return got, nil
	default:
		return got, failed
	}
	if r.verb == updates && !a.done && a.item.allows(r.write) { // the attributes cannot mean what they seem to
		return got, unreadable("")
	}
	got.item, got.done = a.item, a.done
	return got, nil
}

// readable returns an error if the policy uses an attribute that could not be read.
func (q *question) readable(item Item) *StoreError {
	for _, attr := range q.Unusable(q.write.Now, item) {
		return unreadable(attr)
	}
	return nil
}
