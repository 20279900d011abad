package ratelimit

import (
	"strconv"
	"time"

	"github.com/cric-talk/guards/internal/policy"
)

// A question is a request at the time at which it is decided.
type question struct {
	Request

	op    Op
	write Write // what the request writes, without the update; its Now is the time
}

// ask returns the question that r puts at now.
//
// A check that presents a place is a different request from the check that got
// the place, so it needs another id, such as "place 1700000010000 r1". No caller's
// id contains a space, so no caller can send that id.
func (r Request) ask(op Op, now int64) *question {
	if ahead := r.At - now; op == Release && 0 < ahead && ahead <= policy.ClockSlack.Milliseconds() {
		now = r.At // the check was counted by an instance whose clock is ahead
	}
	window, expires := r.Policy.Item(now)
	id := r.ID
	if r.ReadyAt != 0 {
		id = "place " + strconv.FormatInt(r.ReadyAt, 10) + " " + id
	}
	return &question{r, op, Write{
		Key: Key{UserID: r.UserID, Activity: r.Activity, Window: window},
		ID:  NewID(id), Whole: window != 0 && r.Policy.Most() <= wholeLimit,
		Now: now, Expires: expires,
	}}
}

// wholeLimit is the highest limit at which a window's item keeps all its ids.
// About 140 ids fit in one write unit, beside a user id of 36 characters.
const wholeLimit = 100

// due decides a check that presents a place, without the store. If it is on time,
// it may run. If it is early, it gets the same place again. due returns false if
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

// readable returns an error if item has an attribute that the policy uses and
// that could not be read.
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

// A view is a question with a state that answers it.
type view struct {
	*question

	state policy.State
}

func (q *question) in(s policy.State) view { return view{q, s} }

// take plans n of the request's actions.
func (v view) take(n int64) (policy.Update, bool) {
	return v.Policy.Take(v.write.Now, n, v.write.ID.number(), v.state)
}

// fits plans the request's actions and returns how many fit: all of them or none.
// With Partial it can be any number in between.
func (v view) fits() (int64, policy.Update) {
	n := v.Count
	if v.Partial {
		n = min(n, v.Policy.Most(), v.Policy.Read(v.write.Now, 0, v.state).Remaining)
	}
	if u, ok := v.take(n); ok {
		return n, u
	}
	return 0, policy.Update{}
}

// decision returns the decision with the figures of the state, without a receipt.
// Granted is how many actions were taken, or would be.
func (v view) decision(granted int64) Decision {
	d := v.withReceipt(granted)
	d.At = 0
	return d
}

// withReceipt returns what decision returns, and the receipt of actions that are
// counted now.
func (v view) withReceipt(granted int64) Decision {
	need := v.Count // how many actions the request waits for
	switch {
	case granted == v.Count:
		need = 0
	case v.Partial:
		need = 1
	}
	d := Decision{Allowed: granted > 0, Reason: OK, Reading: v.Policy.Read(v.write.Now, need, v.state), Granted: granted}
	if need > 0 {
		d.LimitedBy = d.Name
	}
	if granted == 0 {
		d.Reason = Limited
	}
	return d
}

// counted returns the decision for a request of which n actions are counted.
// ReadyAt is the place that it was given; 0: none.
func (v view) counted(n, readyAt int64) Decision { return v.delayed(v.withReceipt(n), readyAt) }

// found returns the decision for a request whose id is in the item. There are
// three cases:
//
//   - This attempt counted it (done).
//   - An earlier attempt of this decision had an unknown outcome. Then that
//     attempt counted it, or an earlier decision did if the id is the caller's.
//   - Otherwise an earlier decision counted it: a duplicate. Granted is 0 for a
//     partial request, because the item does not show how many actions it got.
func (v view) found(kept Kept, done bool, sent amount) Decision {
	readyAt, note := int64(0), kept.Note
	if v.Policy.Queues() { // the note of a queue is the place
		readyAt, note = kept.Note, 0
	}
	if !done && !sent.unsure {
		d := v.decision(v.Count)
		d.Reason = Duplicate
		if v.Partial {
			d.Granted = 0
		}
		return v.delayed(d, readyAt)
	}
	d := v.counted(sent.of(note), readyAt)
	if !done && (!v.Fresh || d.At != v.write.Now) {
		d.At = 0 // it may have been counted at another time, so there is no receipt
	}
	return d
}

// delayed returns d if readyAt has come, and otherwise the answer "come at
// readyAt".
func (v view) delayed(d Decision, readyAt int64) Decision {
	now := v.write.Now
	if readyAt <= now {
		return d
	}
	d.Allowed, d.Reason, d.Granted = false, Delayed, 0
	d.ReadyAt, d.Waiting = readyAt, v.Policy.Waiting(now, readyAt, v.state)
	d.Wait = time.Duration(readyAt-now) * time.Millisecond
	return d
}

// wouldBe returns the decision that a check would get. N of its actions fit, with
// the update u.
func (v view) wouldBe(n int64, u policy.Update) Decision {
	d := v.decision(n)
	if n == 0 {
		return d
	}
	after := v.in(u.Apply(v.state))
	if n < v.Count { // a partial grant: the wait is the one after these n actions
		d.Wait = v.Policy.Read(v.write.Now, 1, after.state).Wait
	}
	return after.delayed(d, u.ReadyAt)
}

// undo plans to give back the request's actions in item. It returns false if they
// do not count there, or if they were given back already.
//
// The update removes the check's id and keeps an id of the release itself. So a
// second copy of the release changes nothing, even if the same check was
// counted again in between. For example:
//
//	12:00:00  check r1           counted, receipt 12:00:00
//	12:00:01  release r1         given back; item keeps "release 12:00:00 r1"
//	12:00:02  check r1           counted again
//	12:00:03  the release again  its id is in the item, so nothing changes
//
// The item forgets the id of a release after 21 to 28 s. A late copy of an
// attempt arrives within 5 s.
//
// A log remembers its actions for longer than their ids. When the ids are gone,
// slots with the time of the receipt are enough.
func (q *question) undo(item Item) (Write, bool) {
	u, ok := q.Policy.Undo(q.write.Now, q.At, q.Count, item.State)
	if !ok {
		return Write{}, false
	}
	kept, found := item.Find(q.write)
	age := q.write.Now - q.At
	switch {
	case u.ByID && (!found || age > promised && kept.Set != wholeSet):
		return Write{}, false // unknown, released already, or too late
	case !found && age < remembered:
		return Write{}, false // unknown, or released already
	}
	back := Write{Key: q.write.Key, Update: u, Drop: kept, Now: q.write.Now}
	back.ID = NewID("release " + strconv.FormatInt(q.At, 10) + " " + q.ID)
	_, released := item.Find(back)
	return back, !released
}
