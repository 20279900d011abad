package ratelimit

import (
	"context"
	"errors"
	"time"

	"github.com/cric-talk/guards/internal/retry"
)

// maxWriteAge is how long after its time a write may be sent. A write drops the ids of old
// generations. A write that a freeze holds up for half a minute would drop the ids of
// requests that came meanwhile.
const maxWriteAge = 5 * time.Second

// A request is one request to the store. An answer is what it brings.
type (
	request struct {
		verb  verb
		write Write // of a read or a delete: only the key
	}
	answer struct {
		item Item
		done bool // the write was performed
		err  error
	}
	verb uint8
)

const (
	none verb = iota
	updates
	reads
	deletes
)

// repeatable reports whether r may be sent again after an unknown outcome: it changes
// nothing, or its id or its mark shows whether it was performed.
func (r *request) repeatable() bool {
	return r.verb == reads || r.verb == updates && (r.write.ID != ID{} || r.write.RelyOn.Set != "")
}

// by sends r once.
func (r *request) by(ctx context.Context, s Store) (a answer) {
	switch r.verb {
	case reads:
		a.item, a.err = s.Read(ctx, r.write.Key)
	case deletes:
		a.err = s.Delete(ctx, r.write.Key)
	default:
		a.item, a.done, a.err = s.Update(ctx, r.write)
	}
	return a
}

// attempts send the requests about one question. A request is sent again, with the
// same id, until the store answers, the budget ends, or it was sent six times.
type attempts struct {
	question *question // nil: a probe, whose failure keeps a circuit open and opens none
	limiter  *Limiter
	ctx      context.Context // the caller's context with the decision's deadline
	budget   Budget          // nil: the deadline of ctx
	began    time.Time       // when the last attempt began
	requests int             // sent so far, and beside slow requests
	busy     *StoreError     // the last answer of the class NotApplied; nil: there was none
	asked    time.Time       // when the attempt that brought the last item began; zero: none did
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
	return s.decision, unreadable(q.Unusable(q.write.Now, got.item)...)
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
	// If the store refused the guard, the attributes cannot mean what they seem to.
	if r.verb == updates && !a.done && a.item.allows(r.write) {
		return got, unreadable("")
	}
	got.item, got.done = a.item, a.done
	return got, nil
}

// oneAttempt is the budget for a store in memory: one attempt without a time limit.
type oneAttempt struct{}

func (oneAttempt) Next(_ context.Context, failed bool) bool { return !failed }

// next reports whether there is time for another attempt. If the last one failed, next
// pauses first.
func (t *attempts) next(failed bool, pause *retry.Pause) bool {
	switch {
	case t.budget != nil:
		return t.budget.Next(t.ctx, failed)
	case failed:
		return pause.Wait(t.ctx)
	}
	return t.ctx.Err() == nil
}

// ask sends r until the store answers, and returns the error of an item that can't be read.
func (t *attempts) ask(r *request) (a answer, failed *StoreError) {
	a, failed = t.send(r)
	switch {
	case failed != nil && failed.Failure == Unreadable && r.verb == updates: // a read shows which attribute
		read, err := t.send(&request{reads, Write{Key: r.write.Key}})
		if attrs := read.item.unusable(r.write); err == nil && len(attrs) > 0 {
			named := *failed
			named.Attr, failed = attrs[0], &named
		}
		return a, failed
	case failed != nil, r.verb == deletes:
		return a, failed
	case r.verb == reads:
		return a, unreadable(t.question.Unusable(t.question.write.Now, a.item)...)
	}
	return a, unreadable(a.item.unusable(r.write)...)
}

// send sends r until there is an answer that another attempt can't change, or no time. After
// an unknown outcome it makes another attempt only if r is repeatable.
func (t *attempts) send(r *request) (a answer, failed *StoreError) {
	failed = &StoreError{Failure: Unknown, What: tooLate, Err: errNoTime}
	var pause retry.Pause
	for n := 0; n < retry.MaxTries && t.next(n > 0, &pause) && !t.limiter.isOld(&r.write); n++ {
		t.began = t.limiter.Clock()
		t.requests++
		a = t.exchange(r)
		failed = asStoreError(a.err)
		switch {
		case failed == nil:
			if r.verb != deletes {
				t.asked, t.question.shown, t.question.reached = t.began, a.item, true
			}
			return a, nil
		case failed.Failure == NotApplied:
			t.busy = failed
		case failed.Failure != Unknown:
			return a, failed
		default:
			if t.question.sent.lost(r); !r.repeatable() {
				return a, failed
			}
		}
	}
	return a, t.ranOut(failed)
}

// isOld reports whether it is too late to send w. A read and a delete have no time.
func (l *Limiter) isOld(w *Write) bool {
	return w.Now != 0 && l.Clock().UnixMilli()-w.Now > maxWriteAge.Milliseconds()
}

// ranOut returns the error of a decision that ran out of time. If the store has
// answered at all, the table is not down: this one item is throttled, or
// changes too often. Then the class is NotApplied. The class says nothing
// about earlier attempts: one of them may have been performed.
func (t *attempts) ranOut(failed *StoreError) *StoreError {
	switch {
	case t.busy != nil:
		return t.busy
	case t.asked.IsZero():
		return failed
	case errors.Is(failed.Err, errNoTime):
		return &StoreError{Failure: NotApplied, What: "too many requests changed the same item", Err: errNoTime}
	}
	// The last attempts have little time, so they often get no answer.
	return &StoreError{Failure: NotApplied, What: failed.What, Err: failed.Err}
}

// errNoTime is the cause of an outage if there was no time to ask the store.
var errNoTime = errors.New("no time left for an attempt")

// unreadable returns the error for an item with these attributes that the policy cannot
// read: "" is one that is not known. If there are none, it returns nil.
func unreadable(attrs ...string) *StoreError {
	if len(attrs) == 0 {
		return nil
	}
	return &StoreError{Failure: Unreadable, What: "an attribute of the item has the wrong type", Attr: attrs[0]}
}
