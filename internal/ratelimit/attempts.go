package ratelimit

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/retry"
)

// attempts send the requests of one decision. A request is sent again, with the
// same id, until the store answers or the budget ends.
type attempts struct {
	limiter  *Limiter
	ctx      context.Context // the caller's context with the decision's deadline
	caller   context.Context // the caller's context
	budget   Budget
	began    time.Time   // when the last attempt began
	requests int         // sent so far; a probe counts as one
	probing  bool        // a probe is sent, whose failure keeps a circuit open and opens none
	busy     *StoreError // the last answer of the class NotApplied; nil: there was none
	answered bool        // the store has answered with an item
	item     Item        // the last item, if answered
	asked    time.Time   // when the attempt that brought the item began
	amount   amount      // how many actions a counted id stands for
	took     *lease      // what a visit took; nil: nothing
	kept     keptPlace   // of a reservoir, by the write under way; zero: none
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
			return t.visit(q, shown)
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
// returns the count of 10, in which q does not fit: limited, after one request.
func (t *attempts) check(q *question, shown policy.State) (Decision, error) {
	w, n := q.write, min(q.Count, q.Policy.Most())
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
	if len(item.Unread) == 0 {
		return nil
	}
	w := q.write
	w.Update, _ = q.in(nil).take(q.Policy.Most()) // this update names every attribute of the policy
	if attr := item.unreadable(w); attr != "" {
		return unreadable(attr)
	}
	return nil
}

// oneAttempt is the budget for a store in memory: one attempt without a time limit.
type oneAttempt struct{}

func (oneAttempt) Next(_ context.Context, failed bool) (time.Duration, bool) { return 0, !failed }

// begin starts the time of the decision. The caller must call stop.
func (t *attempts) begin() (stop context.CancelFunc) {
	l := t.limiter
	stop = func() {}
	switch {
	case l.NewBudget != nil:
		t.budget = l.NewBudget()
	case l.Timeout == 0:
		t.budget = oneAttempt{}
	default:
		t.ctx, stop = context.WithTimeout(t.ctx, l.Timeout)
		deadline, _ := t.ctx.Deadline()
		t.budget = &retry.Budget{Deadline: deadline, Connected: l.connected.Load}
	}
	return stop
}

// update sends w until the store answers, or once if w has neither an id by which it could
// be found, nor one that it marks. It returns the item after that, and whether the last attempt performed w.
func (t *attempts) update(w Write) (item Item, done bool, err error) {
	counts := w.ID != ID{}
	err = t.send(counts || w.RelyOn.Set != "", func(ctx context.Context) (err error) {
		item, done, err = t.limiter.Store.Update(ctx, w)
		if failed := asStoreError(err); counts && failed != nil && failed.Failure == Unknown {
			t.amount.unsure = true
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
	if attr := item.unreadable(w); attr != "" {
		return item, done, unreadable(attr)
	}
	return item, done, nil
}

// nameUnreadable reads the item to find the attribute that cannot be updated.
func (t *attempts) nameUnreadable(w Write, e *StoreError) error {
	item, err := t.read(w.Key)
	if err != nil {
		return e
	}
	named := *e
	named.Attr = item.unreadable(w)
	return &named
}

// read reads the item under k.
func (t *attempts) read(k Key) (item Item, err error) {
	err = t.send(true, func(ctx context.Context) (err error) {
		item, err = t.limiter.Store.Read(ctx, k)
		return err
	})
	if err == nil {
		t.learn(item)
	}
	return item, err
}

// delete removes the item under k. A delete carries no id, so it is not sent
// again after an unknown outcome.
func (t *attempts) delete(k Key) error {
	return t.send(false, func(ctx context.Context) error { return t.limiter.Store.Delete(ctx, k) })
}

// learn records the item that the last attempt brought.
func (t *attempts) learn(item Item) { t.item, t.asked, t.answered = item, t.began, true }

// send makes attempts until an answer that another attempt can't change, or until
// the budget ends. After an unknown outcome it makes another attempt only if again
// is set. The error is a *StoreError.
func (t *attempts) send(again bool, request func(context.Context) error) error {
	failed := &StoreError{Failure: Unknown, What: tooLate, Err: errNoTime}
	for attempt := 0; ; attempt++ {
		timeout, ok := t.budget.Next(t.ctx, attempt > 0)
		if !ok {
			return t.ranOut(failed)
		}
		t.began = t.limiter.Clock()
		t.requests++
		failed = t.once(timeout, request)
		t.limiter.connected.Store(failed == nil || failed.Failure != Unknown)
		switch {
		case failed == nil:
			return nil
		case failed.Failure == NotApplied:
			t.busy = failed
		case failed.Failure != Unknown || !again:
			return failed
		}
	}
}

// ranOut returns the error of a decision that ran out of time. If the store has
// answered at all, the table is not down: this one item is throttled, or
// changes too often. Then the class is NotApplied, so that the breaker opens
// the circuit of this key and not that of the table. The class says nothing
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

// errProbe is the cause of an outage if a probe has left too little time.
var errProbe = errors.New("the probe was not answered soon enough")

// once makes one attempt. A timeout of 0 means no limit.
func (t *attempts) once(timeout time.Duration, request func(context.Context) error) *StoreError {
	ctx := t.ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	return asStoreError(request(ctx))
}

// unreadable returns the error for an item that the policy cannot read. Attr is
// the attribute, or empty if it is not known.
func unreadable(attr string) *StoreError {
	return &StoreError{Failure: Unreadable, What: "an attribute of the item has the wrong type", Attr: attr}
}
