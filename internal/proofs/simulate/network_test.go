package simulate_test

import (
	"cmp"
	"context"
	"errors"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// A fault is what happens to an attempt on its way. The empty one is none.
type fault string

const (
	lostRequest  fault = "lost request"
	lostAnswer   fault = "lost answer"
	late         fault = "delivered late" // up to 4 s later, and its answer is lost
	throttled    fault = "throttled"
	failedBefore fault = "5xx before the write"
	failedAfter  fault = "5xx after the write"
	hang         fault = "hang"
	denied       fault = "denied"
)

var faults = []fault{lostRequest, lostAnswer, late, throttled, failedBefore, failedAfter, hang}

// draw returns the fault of an attempt for a key: one in 15 % of attempts. In an outage
// almost every attempt hangs or is refused. A key that fails alone always does so in the
// same way.
func (in *instance) draw(k ratelimit.Key) fault {
	if b := in.sim.broken; k.UserID == b.user && in.sim.now < b.until {
		in.sim.stats[failedAlone]++
		return b.fault
	}
	if in.sim.now < in.downUntil && in.sim.random.IntN(25) > 0 {
		return []fault{lostRequest, hang, failedBefore, late}[in.sim.random.IntN(4)]
	}
	if in.sim.random.IntN(100) >= 15 {
		return ""
	}
	return faults[in.sim.random.IntN(len(faults))]
}

// attempt carries one request to the store and its answer back. Perform runs when
// the request arrives. The error is the one that the instance gets.
func (in *instance) attempt(k ratelimit.Key, perform func(a *landing)) (*landing, error) {
	s, o := in.sim, in.sim.op
	a := &landing{op: o, clock: in.millis()}
	f := in.draw(k)
	if o.asked == nil {
		o.asked = map[string]bool{}
	}
	o.asked[k.UserID] = true
	s.stats["attempts"]++
	if f != "" {
		s.stats["of these, "+string(f)]++
	}
	ends := o.attemptEnds
	if s.now < o.leaves { // later, the decision only gives back what it has counted
		ends = min(ends, o.leaves)
	}
	arrives := s.now + 1 + s.upTo(14)
	if s.chance(s.lag) {
		arrives += s.upTo(400)
	}
	answered := arrives + 1 + s.upTo(14)
	if s.chance(15) { // much can happen between a write and its answer
		answered += s.soon(400)
	}
	if s.now < s.slowUntil {
		s.stats[slowly]++
		arrives, answered = arrives+s.slow/2, answered+s.slow
	}
	switch f {
	case "", lostAnswer, failedAfter:
		s.at(arrives, func() { perform(a) })
	case late:
		s.at(s.now+s.upTo(max(0, min(4000, 5000-(s.now-o.began)))), func() { perform(a) })
	default:
	}
	if f == late || f == hang || answered > ends {
		answered = ends
		if f == "" {
			f = hang // too slow
		}
	}
	o.until(answered)
	if s.now >= o.leaves {
		o.cancel()
	}
	if f != "" {
		s.line("%s: attempt %d: %s", o.name, o.attempts, f)
	}
	switch f {
	case "":
		o.answers++
		return a, nil
	case throttled:
		return nil, &ratelimit.StoreError{Failure: ratelimit.NotApplied, What: "throttled"}
	case denied:
		return nil, &ratelimit.StoreError{Failure: ratelimit.Misconfigured, What: "denied"}
	default:
		o.unsure = o.unsure || o.writing
		return nil, errors.New(string(f))
	}
}

// Update implements [ratelimit.Store].
func (in *instance) Update(ctx context.Context, w ratelimit.Write) (ratelimit.Item, bool, error) {
	probe := w.Now == 0 // it counts nothing
	o := in.sim.op
	if age := in.millis() - w.Now; !probe && age > 5000 {
		in.sim.fail("%s sends a write %d ms after its time", o.name, age)
	}
	back, mark := o.givesBack(w), w.RelyOn.Set != ""
	if !probe || o.turn != nil && !o.returns(w.Key) { // a probe comes before the first part
		o.begins(w.Key, back, probe && o.shadow)
	}
	o.writing = !probe && w.ID != ratelimit.ID{} // a visit is not sent again, and the id tells whether its request is counted
	part := o.part(w.Key, back)                  // now: a late copy does not know what is counted later
	if !probe {
		o.given = cmp.Or(o.given, in.given(part)) // it is sent again as it was planned
	}
	given, again := o.given, o.again // a reset can clear the memory before it lands
	a, err := in.attempt(w.Key, func(a *landing) {
		if w.Key.UserID == spoiled && !probe {
			in.sim.spoil(a, w)
			return
		}
		before, _ := in.sim.store.Read(ctx, w.Key)
		a.op, a.given, a.again, a.bare = part, given, again, w.ID == ratelimit.ID{}
		a.item, a.done, _ = in.sim.store.Update(ctx, w)
		in.sim.ledger.update(a, w, before)
	})
	if o.again = err != nil; err != nil {
		o.failed(w.Key, back, err)
		return ratelimit.Item{}, false, err
	}
	switch {
	case w.Key.UserID == spoiled && probe: // it names no attribute of the policy
		a.op.answers--
	case probe: // the instance learns what it shows at once, and not when the decision ends
		in.learn(a.op, a)
	case mark:
		a.op.marks(a)
	default:
		a.op.answered(a)
		in.keeps(a)
		if a.took > 0 {
			in.balanceOf(ownerOf(w.Key)).takes(a.op, a.took)
		}
	}
	return a.item, a.done, nil
}

// Read implements [ratelimit.Store].
func (in *instance) Read(ctx context.Context, k ratelimit.Key) (ratelimit.Item, error) {
	o := in.sim.op
	back := o.kind == ratelimit.Check && o.part(k, false).last != nil // a check reads again only to give back
	o.begins(k, o.readsToGiveBack(k), true)
	o.writing = false
	a, err := in.attempt(k, func(a *landing) {
		if k.UserID == spoiled {
			in.sim.showSpoiled(a, k)
			return
		}
		a.op = a.op.part(k, false)
		a.item, _ = in.sim.store.Read(ctx, k)
		in.sim.ledger.read(a, k)
	})
	if o.again = err != nil; err != nil {
		o.failed(k, back, err)
		return ratelimit.Item{}, err
	}
	a.op.answered(a)
	return a.item, nil
}

// Delete implements [ratelimit.Store].
func (in *instance) Delete(ctx context.Context, k ratelimit.Key) error {
	in.sim.op.writing = false
	_, err := in.attempt(k, func(a *landing) {
		delete(in.sim.unread, k)
		_ = in.sim.store.Delete(ctx, k)
		in.sim.ledger.reset(a.op, k)
		in.sim.had(a.op.request.Activity, "reset")
	})
	return err
}

// A budget times the attempts of one decision, in the time of the run. An attempt may take
// a third of the time that is left, as if a probe beside it had shown that it is lost. If the
// table is slow, it may take all of the time. Pauses grow from 25 to 400 ms.
type budget struct {
	op         *op
	deadline   int64
	stoodStill int64 // of the instance, when the decision began
	pause      int64
}

func (in *instance) newBudget() ratelimit.Budget {
	in.sim.op.asks()
	in.sim.op.attemptEnds = in.sim.now + 250 // of a probe, which comes first
	return &budget{op: in.sim.op, deadline: in.sim.now + 1000, stoodStill: in.stoodStill}
}

// Next implements [ratelimit.Budget].
func (b *budget) Next(ctx context.Context, failed bool) bool {
	s := b.op.in.sim
	still := b.op.in.stoodStill
	b.deadline, b.stoodStill = b.deadline+still-b.stoodStill, still
	if failed {
		b.pause = min(max(2*b.pause, 25), 400)
		if wait := b.pause/2 + s.upTo(b.pause/2); s.now+wait >= b.deadline {
			b.deadline = s.now
		} else {
			b.op.until(max(s.now+1, min(s.now+wait, b.op.leaves)))
		}
	}
	if s.now >= b.op.leaves {
		b.op.cancel()
	}
	left := b.deadline - s.now
	if ctx.Err() != nil || left <= 0 || left < 15 && b.op.attempts > 0 {
		b.op.spent = true
		return false
	}
	b.op.attempts++
	b.op.attemptEnds = s.now + max(5, left/3)
	if s.now < s.slowUntil {
		b.op.attemptEnds = b.deadline
	}
	return true
}
