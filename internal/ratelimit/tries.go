package ratelimit

import (
	"context"
	"errors"
	"time"
)

// tries sends the requests of one decision. It sends a request again, with the
// same id, until the store answers or the budget ends.
type tries struct {
	ctx      context.Context // the caller's context with the decision's deadline
	caller   context.Context
	limiter  *Limiter
	budget   Budget
	requests int // sent so far

	n        int64     // actions that the last update asked for
	unsure   bool      // an earlier update has an unknown outcome: it may have been performed
	unsureN  int64     // see settle
	asked    time.Time // when the last attempt began
	answer   Item      // the last answer, if answered
	told     time.Time // when the attempt that brought the answer began
	answered bool
	busy     *StoreError // the store's last "not now"; nil: it never said that
}

// begin starts the decision's time. A probe gets less of it. The caller must
// call stop.
func (t *tries) begin(probe bool) (stop context.CancelFunc) {
	l := t.limiter
	if l.Attempts != nil {
		t.budget = l.Attempts()
		return func() {}
	}
	timeout := l.Timeout
	if probe {
		timeout = min(timeout, longestProbe)
	}
	if timeout == 0 {
		t.budget = &oneAttempt{}
		return func() {}
	}
	t.ctx, stop = context.WithTimeout(t.ctx, timeout)
	deadline, _ := t.ctx.Deadline()
	t.budget = &shares{deadline: deadline, pace: &l.pace}
	return stop
}

// update performs w. It returns the item as it stands then, and whether w was
// performed by this attempt.
func (t *tries) update(w Write) (item Item, done bool, err error) {
	err = t.send(true, func(ctx context.Context) (err error) {
		item, done, err = t.limiter.Store.Update(ctx, w)
		if failed := asStoreError(err); failed != nil && failed.Failure == Unknown {
			t.unsure = true
		}
		return err
	})
	if e, ok := errors.AsType[*StoreError](err); ok && e.Failure == Unreadable {
		return Item{}, false, t.nameUnreadable(w, e)
	}
	if err != nil {
		return Item{}, false, err
	}
	t.learn(item)
	if attr, bad := item.unreadable(w); bad {
		return item, done, unreadable(attr)
	}
	if !done && w.Update.Holds(item.State) && !w.forbiddenBy(item) {
		return item, done, unreadable("") // the item is not what it reads as
	}
	return item, done, nil
}

// nameUnreadable reads the item to find the attribute that the store could not
// update.
func (t *tries) nameUnreadable(w Write, e *StoreError) error {
	item, err := t.read(w.Key)
	if err != nil {
		return e
	}
	named := *e
	named.Attr, _ = item.unreadable(w)
	return &named
}

// forbiddenBy reports whether w's ids are the reason why it was refused.
func (w Write) forbiddenBy(item Item) bool {
	_, counted := item.Find(w)
	return counted || !item.has(w.Drop)
}

// read reads the item under k.
func (t *tries) read(k Key) (item Item, err error) {
	err = t.send(true, func(ctx context.Context) (err error) {
		item, err = t.limiter.Store.Read(ctx, k)
		return err
	})
	if err == nil {
		t.learn(item)
	}
	return item, err
}

// delete removes the item under k. It has no id, so after an unknown outcome it
// is not sent again.
func (t *tries) delete(k Key) error {
	return t.send(false, func(ctx context.Context) error { return t.limiter.Store.Delete(ctx, k) })
}

func (t *tries) learn(item Item) { t.answer, t.told, t.answered = item, t.asked, true }

// send sends until the store answers. With again it also sends after an unknown
// outcome. The error is a *StoreError.
func (t *tries) send(again bool, request func(context.Context) error) error {
	failed := &StoreError{Failure: Unknown, What: tooLate, Err: errNoTime}
	for attempt := 0; ; attempt++ {
		timeout, ok := t.budget.Next(t.ctx, attempt > 0)
		if !ok {
			return t.outage(failed)
		}
		t.asked = t.limiter.Clock()
		t.requests++
		failed = t.once(timeout, request)
		t.limiter.pace.connected.Store(failed == nil || failed.Failure != Unknown)
		switch {
		case failed == nil:
			return nil
		case failed.Failure == NotApplied:
			t.busy = failed
		case failed.Failure == Rejected, failed.Failure == Unreadable, failed.Failure == Unknown && !again:
			return failed
		}
	}
}

// outage returns what a decision ends with that ran out of time. If the store
// answered, it is not away: this item is throttled, or changes too often. That
// must not keep other items from the store.
func (t *tries) outage(failed *StoreError) *StoreError {
	switch {
	case failed.Failure != Unknown:
		return failed
	case t.busy != nil:
		return t.busy
	case t.answered && errors.Is(failed.Err, errNoTime):
		return &StoreError{Failure: NotApplied, What: "too many requests changed the same item", Err: errNoTime}
	case t.answered: // the last attempts have little time, so they often get no answer
		return &StoreError{Failure: NotApplied, What: failed.What, Err: failed.Err}
	}
	return failed
}

// errNoTime is the cause of an outage without any attempt.
var errNoTime = errors.New("no time left for an attempt")

// once makes one attempt. A timeout of 0 means no limit.
func (t *tries) once(timeout time.Duration, request func(context.Context) error) *StoreError {
	ctx := t.ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	return asStoreError(request(ctx))
}

// unreadable is the error of an item that the policy can't read.
func unreadable(attr string) *StoreError {
	return &StoreError{Failure: Unreadable, What: "an attribute of the item has the wrong type", Attr: attr}
}

// A partial request can ask for fewer actions in a later attempt than in an
// earlier one of unknown outcome. Then its id alone would not show which
// attempt landed. So an attempt that asks for another number than the unsure
// one keeps its own number as a note.
//
// For example, 3 actions are asked for, and the answer is lost. The next answer
// shows that nothing is counted and that 2 fit. So 2 are asked for with the
// note 2. If the id is found later, the note tells whether 2 or 3 were taken.

// settle is called when an answer shows that the request is not counted so far.
// It sets unsureN: how many actions the first unsure update asked for.
func (t *tries) settle() {
	if t.unsure && t.unsureN == 0 {
		t.unsureN = t.n
	}
}

// note returns the note that an attempt for n actions keeps with its id; 0:
// none.
func (t *tries) note(n int64) int64 {
	if t.unsureN == 0 || t.unsureN == n {
		return 0
	}
	return n
}

// granted returns how many actions the attempt took whose id was found as kept.
func (t *tries) granted(kept Kept) int64 {
	switch {
	case t.unsureN == 0:
		return t.n
	case kept.Note != 0:
		return kept.Note
	}
	return t.unsureN
}
