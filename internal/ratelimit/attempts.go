package ratelimit

import (
	"cmp"
	"context"
	"time"

	"github.com/cric-talk/guards/internal/policy"
)

// attempts send the requests of one decision. A request is sent again, with the
// same id, until the store answers, the budget ends, or it was sent six times.
type attempts struct {
	limiter  *Limiter
	ctx      context.Context // the caller's context with the decision's deadline
	caller   context.Context // the caller's context
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

// carryOut does what q asks for in the store. Shown is the item as the store last
// showed it.
func (t *attempts) carryOut(q *question, shown Item) (Decision, error) {
	switch q.op {
	case Status:
		return t.status(q)
	case Release:
		return t.release(q, shown)
	case Renew:
		return t.renew(q, shown)
	case Reset:
		return q.in(nil).decision(q.Count, 0), t.delete(q.write.Key)
	default: // Check
		if q.relies {
			return t.rely(q, shown)
		}
		if q.take > 0 {
			return t.acquire(q, shown)
		}
		return t.check(q, shown.State)
	}
}

// check counts q in the store. Each turn of its loop sends one update and looks
// at the item that comes back. The first line that applies decides:
//
//	the item has q's id         counted, by this attempt or an earlier one
//	but its place is over       a late job: the plan moves the id to a new place
//	the sent guard holds there  unreadable: the store refused the guard, so the
//	                            attributes cannot mean what they seem to
//	q does not fit in the item  limited
//	the new plan does not hold  unreadable: no policy has written this item
//	otherwise                   send the new plan
//
// For example, 10 of 10/1m are counted and this process knows nothing. The plan
// for an empty item has the guard activityCount <= 9. The store refuses it and
// returns the count of 10. Then q does not fit: limited, after one request.
func (t *attempts) check(q *question, shown policy.State) (Decision, error) {
	w, n := q.write, min(q.Count, q.Policy.Max())
	w.Update = t.first(q, shown, n)
	for {
		w.First, w.Last = w.Update.CountedAt, w.Update.CountedAt
		w.Note = max(w.Update.ReadyAt, t.amount.note(n)) // at most one is set: a queue gives one place at a time
		item, done, err := t.update(w)
		if err != nil {
			return Decision{}, err
		}
		t.settle(q, done)
		v := q.in(item.State)
		kept, found := item.Find(q.write)
		if found && !q.late(kept) {
			q.claim = claim{own: done, kept: kept}
			return v.found(kept, done, t.amount), nil
		}
		if item.allows(w) {
			return Decision{}, unreadable("")
		}
		if n, w.Update = t.fits(v); n == 0 && t.repace(v) { // the item may have changed meanwhile
			v = q.in(t.item.State)
			if kept, found = t.item.Find(q.write); found && !q.late(kept) {
				q.claim = claim{kept: kept}
				return v.found(kept, false, t.amount), nil
			}
			n, w.Update = t.fits(v)
		}
		if n == 0 {
			return v.decision(0, 0), nil
		}
		w.Drop = kept
		if !w.Update.Holds(v.state) {
			return Decision{}, unreadable("")
		}
	}
}

// first plans n of q's actions before the store has answered. If they do not fit what was
// shown, which may be old, it plans for an empty item.
func (t *attempts) first(q *question, shown policy.State, n int64) policy.Update {
	for _, s := range []policy.State{shown, nil} {
		if u, ok := t.take(q, s, n); ok {
			return u
		}
	}
	return nothing // all places are given from memory: only look for the id
}

// status reads the item and decides without counting.
func (t *attempts) status(q *question) (Decision, error) {
	item, err := t.readFor(q)
	if err != nil {
		return Decision{}, err
	}
	q.skip(t.limiter.Memory)
	v := q.in(item.State)
	if kept, counted := item.Find(q.write); counted && !q.late(kept) {
		return v.found(kept, false, amount{}), nil
	}
	return v.wouldBe(v.fits()), nil
}

// readFor reads the item of q. It returns an error if the policy uses an attribute
// that could not be read.
func (t *attempts) readFor(q *question) (Item, error) {
	item, err := t.read(q.write.Key)
	if err == nil {
		err = q.readable(item)
	}
	return item, err
}

// readable returns an error if the policy uses an attribute that could not be read.
func (q *question) readable(item Item) error {
	for _, attr := range q.Unusable(q.write.Now, item) {
		return unreadable(attr)
	}
	return nil
}
