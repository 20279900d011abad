package ratelimit

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/cric-talk/guards/internal/policy"
)

// validate returns an error if r has no id, or a count that op can't take.
func (r *Request) validate(op Op) error {
	most := r.Policy.Max()
	switch {
	case op == Reset:
		return nil
	case op == Release || op == Renew:
		most = MaxReleased
	case r.Partial:
		most = max(r.Count, 1)
	}
	switch {
	case r.ID == "":
		return fmt.Errorf("request id is empty, want the id of the request")
	case r.Count < 1 || r.Count > most:
		return fmt.Errorf("count is %d, want 1 to %d", r.Count, most)
	}
	return nil
}

// A question is a request at the time of its decision.
type question struct {
	Request

	op    Op
	write Write // what the request writes, without the update; its Now is the time
	hot   bool  // check: the key is hot, see lease
	take  int64 // check: how many actions a visit for a lease takes; 0: none
	held  int64 // check: how many actions of a lease the visit hands out beside these
	until int64 // check: when that lease ends
	mine  bool  // release: this decision has counted what it gives back

	budget  Budget      // what a probe for it has begun; nil: none was sent
	looked  bool        // its circuits were looked at
	barred  *StoreError // why a circuit is open, if one is
	reached bool        // the store has answered this decision, perhaps about another part
	sent    amount      // how many actions this decision's id stands for, by the writes so far
	shown   Item        // the item as the store last showed it; zero: it has not

	claim  claim  // check: where the action is counted
	lease  *lease // check: what a visit took; nil: nothing
	relies bool   // check: it is about to be admitted because of its claim, and has to mark it

	to     int64  // renew: when the parts before this one were renewed; 0: never
	origin origin // release: of the check, as the parts before this one know it
	own    int64  // release: the receipt that the caller has; At is the check's time, if origin has that

	slotsOnly bool // release: frees the slots of a log, and leaves other limits as they are
	look      bool // renew: read whether the slots count, and move none
	read      bool // renew: this decision has read the item, and shown is what it has read

	given policy.State // places of a reservoir that this process gave from memory; nil: none
}

// ask returns the question that r puts at now. A release or a renewal can name a check
// that was counted by a clock ahead; its question is put at the time of the check.
//
// A check that presents a place is a different request from the check that got
// the place, so it needs another id, such as "place 1700000010000 r1".
func (r Request) ask(op Op, now int64) question {
	ahead := 0 < r.At-now && r.At-now <= policy.ClockSlack.Milliseconds()
	if ahead {
		now = r.At
	}
	window, expires := r.Policy.Item(now)
	what := ""
	if r.ReadyAt != 0 && r.Policy.Queues() {
		what = "place " + strconv.FormatInt(r.ReadyAt, 10)
	}
	log := r.Policy.HasLog()
	alone := log && !r.Policy.Named() && !r.Shared // a log alone keeps receipts as long as its slots, without ids
	return question{Request: r, op: op, own: r.At, write: Write{
		Key: Key{UserID: r.UserID, Activity: cmp.Or(r.Group, r.Activity), Window: window},
		ID:  r.id(what), KeepAll: window != 0 && r.Policy.Highest() <= maxKeepAll, Hold: r.Hold && !alone,
		Renewed: log || r.Policy.Queues(), Now: now, KeepOld: ahead, Expires: expires,
	}}
}

// id returns the id of r, or of what is said about r. In the item of a group, the
// same id in two activities means two requests. In the item of a subject, the same id
// of two users means two requests, too. No caller's id contains a space, so no caller
// can send one of these.
func (r *Request) id(what string) ID {
	id, activity := r.ID, r.Activity
	if r.Group == "" {
		activity = ""
	}
	for _, word := range [...]string{what, activity, r.For} {
		if word != "" {
			id = word + " " + id
		}
	}
	return NewID(id)
}

// maxKeepAll is the highest limit whose window's item keeps all its ids. About
// 140 ids fit in one write unit, beside a user id of 36 characters.
const maxKeepAll = 100

// A view is a question with a state that answers it.
type view struct {
	*question

	stored policy.State // of the item
	state  policy.State // the same, as if the store had given the places of q.given, too
}

func (q *question) in(s policy.State) view {
	v := view{question: q, stored: s, state: s}
	if q.given != nil {
		v.state, _ = q.Policy.Skip(q.write.Now, q.given, s)
	}
	return v
}

// take plans n of the request's actions.
func (v view) take(n int64) (policy.Update, bool) {
	return v.Policy.TakeAfter(v.write.Now, n, v.write.ID.number(), v.given, v.stored)
}

// fits plans the request's actions and returns how many fit: all of them or none.
// With Partial it can be any number in between.
func (v view) fits() (int64, policy.Update) {
	n := v.Count
	if v.Partial {
		n = min(n, v.Policy.Max(), v.Policy.Read(v.write.Now, 0, v.state).Remaining)
	}
	if u, ok := v.take(n); ok {
		return n, u
	}
	return 0, policy.Update{}
}

// decision returns the decision that grants this many actions, with the figures
// of the state, which counts them. ReadyAt is the place that they were given; 0:
// none. Only a check that is counted now has a receipt.
func (v view) decision(granted, readyAt int64) Decision {
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
	if granted > 0 && v.op == Check {
		d.At = v.write.Now
	}
	return v.delayed(d, readyAt)
}

// found returns the decision for a request whose id is in the item:
//
//   - This attempt counted it (done).
//   - An earlier attempt of this decision had an unknown outcome. Then that
//     attempt counted it, or an earlier decision did if the id is the caller's.
//   - Otherwise an earlier decision counted it: a duplicate. Granted is 0 for a
//     partial request, because the item does not show how many actions it got.
func (v view) found(kept Location, done bool) Decision {
	readyAt, note := int64(0), kept.Note
	switch {
	case v.Policy.Queues(): // the note of a queue is the place
		readyAt, note = kept.Note, 0
	case v.renewed(kept):
		note = 0
	}
	if !done && !v.sent.unsure {
		d := v.decision(v.Count, readyAt)
		d.At = 0
		if d.Reason == OK {
			d.Reason = Duplicate
		}
		if v.Partial {
			d.Granted = 0
		}
		return d
	}
	n := cmp.Or(note, v.sent.plain)
	d := v.decision(n, readyAt)
	if done { // the state is as this attempt left it, without what others counted later
		d.Reading = v.Policy.Cross(v.write.Now, n, v.state, d.Reading)
	}
	if !done && !v.Fresh {
		d.At = 0 // it may have been counted at another time, so there is no receipt
	}
	return d
}

// CountIn decides a check of r at now, in Unix milliseconds, as a limiter does, and
// counts it in s if it is admitted. It is for a program that holds all items itself,
// such as a replay: it sends nothing and needs no id. S is the state of r's item, and
// nobody else holds it. R is no repeat, and its Count at most the policy's Max. A decision
// that admits all of Count now has no figures, which can take as long as the decision.
// No decision has Crossed.
func (r Request) CountIn(now int64, s *policy.State) Decision {
	q := question{Request: r, write: Write{Now: now}}
	step := q.check(taken{item: Item{State: *s}})
	u := step.request.write.Update
	u.ApplyTo(s)
	if step.counts == r.Count && u.ReadyAt <= now {
		return Decision{Allowed: true, Reason: OK, Granted: r.Count}
	}
	return q.in(*s).decision(step.counts, u.ReadyAt)
}

// delayed returns d if readyAt has come, and otherwise "come at readyAt".
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

// wouldBe returns what a check would get if n of its actions fit, with the update u.
func (v view) wouldBe(n int64, u policy.Update) Decision {
	d := v.decision(n, 0)
	if n == 0 {
		return d
	}
	after := u.Apply(v.state)
	if n < v.Count { // a partial grant: the wait is the one after these n actions
		d.Wait = v.Policy.Read(v.write.Now, 1, after).Wait
	}
	return v.in(after).delayed(d, u.ReadyAt)
}
