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
		if read, err := t.send(&request{reads, Write{Key: r.write.Key}}); err == nil {
			named := *failed
			named.Attr = read.item.unreadable(r.write)
			failed = &named
		}
		return a, failed
	case failed != nil, r.verb == deletes:
		return a, failed
	case r.verb == reads:
		return a, t.question.readable(a.item)
	}
	if attr := a.item.unreadable(r.write); attr != "" {
		return a, unreadable(attr)
	}
	return a, nil
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
				t.item, t.asked, t.answered, t.question.reached = a.item, t.began, true, true
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

// ranOut returns the error of a decision that ran out of time. If the store has
// answered at all, the table is not down: this one item is throttled, or
// changes too often. Then the class is NotApplied. The class says nothing
// about earlier attempts: one of them may have been performed.
func (t *attempts) ranOut(failed *StoreError) *StoreError {
	switch {
	case t.busy != nil:
		return t.busy
	case t.answered && errors.Is(failed.Err, errNoTime):
		return &StoreError{Failure: NotApplied, What: "too many requests changed the same item", Err: errNoTime}
	case t.answered: // the last attempts have little time, so they often get no answer
		return &StoreError{Failure: NotApplied, What: failed.What, Err: failed.Err}
	}
	return failed
}

// errNoTime is the cause of an outage if there was no time to ask the store.
var errNoTime = errors.New("no time left for an attempt")

// unreadable returns the error for an item that the policy cannot read. Attr is
// the attribute, or empty if it is not known.
func unreadable(attr string) *StoreError {
	return &StoreError{Failure: Unreadable, What: "an attribute of the item has the wrong type", Attr: attr}
}
