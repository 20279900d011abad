package explore

import (
	"fmt"
	"slices"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// probeEvery is how often one decision asks a table that was away, in
// milliseconds.
const probeEvery = 5000

// decidedAlone judges a decision from memory. The table must have given it no
// answer that decides. Either all attempts are used up, or this instance's last
// decision that asked got no such answer, less than 5 s ago. What it admits
// counts against the limit of the instance alone.
func (x *explorer) decidedAlone(e *ending) error {
	d, by, l := e.result, e.proc.by, e.ledger
	switch {
	case d.Reason != ratelimit.Unavailable:
		return fmt.Errorf("an outage has the reason unavailable")
	case e.ask.attempts == 0 && x.unansweredBeside(e): // it has opened the circuit, and is not over yet
	case e.ask.attempts == 0 && !l.away[by]:
		return fmt.Errorf("from memory, although the table answered last")
	case e.ask.attempts == 0 && x.time(e.world.now, int(by))-l.askedAt[by] >= probeEvery:
		return fmt.Errorf("from memory, although it is time to ask the table")
	case e.ask.endsEarly(x.tries(e.slot)):
		return fmt.Errorf("from memory after %d attempts of %d", e.ask.attempts, x.tries(e.slot))
	}
	if !d.Allowed && d.ReadyAt == 0 {
		return nil
	}
	if x.remembered(e) {
		return nil // a repeat of what this instance knows to be counted
	}
	c := entry{id: e.id, writer: uint8(e.slot), item: e.item, n: max(1, d.Granted), at: e.now, counted: e.now, now: e.now, place: d.ReadyAt, limit: e.proc.limit}
	if c.n > e.call.Count {
		return fmt.Errorf("it asked for %d", e.call.Count)
	}
	c.left = unitsOf(x.policyOf(int(e.item), e.slot, e.proc.limit), c.n)
	if e.call.Policy.Queues() && c.place == 0 {
		c.place = e.now
	}
	l.alone[by] = append(l.alone[by], c)
	if err := x.promised(l.alone[by], c); err != nil {
		return fmt.Errorf("alone, %w", err)
	}
	return nil
}

// unansweredBeside reports whether another decision of the instance has used up its
// attempts and waits for its turn.
func (x *explorer) unansweredBeside(e *ending) bool {
	for s, p := range e.world.procs {
		if s != e.slot && p.by == e.proc.by && p.phase == asking && int(x.asks[p.told].attempts) >= x.tries(s) {
			return true
		}
	}
	return false
}

// remembered reports whether the instance knew, before the decision ended, that
// the request is counted.
func (x *explorer) remembered(e *ending) bool {
	if slices.ContainsFunc(e.ledger.alone[e.proc.by], func(c entry) bool { return c.id == e.id && c.item == e.item && e.toldPlace(c) }) {
		return true
	}
	in := x.instances.at(e.before)
	if in.knowns == nil {
		return false
	}
	id := e.call.ID
	if e.call.ReadyAt != 0 {
		id = fmt.Sprintf("place %d %s", e.call.ReadyAt, id)
	}
	if e.call.Group != "" {
		id = e.call.Activity + " " + id
	}
	kept, found := in.knowns[e.item].Seen.Find(ratelimit.Write{
		Key: x.keys[e.item], ID: ratelimit.NewID(id), Now: e.now, Renewed: e.call.Policy.HasLog() || e.call.Policy.Queues(),
	})
	return found && !past(e.call.Policy, kept.Note, e.now)
}

// noteAway notes whether the table answered the decision.
func (x *explorer) noteAway(e *ending) {
	if e.ask.attempts == 0 {
		return
	}
	by := e.proc.by
	if v := x.requests[e.slot].verb; v != release && v != unlock && v != reset && slices.Contains(x.outcomes(e), answered) {
		e.ledger.unlooked[by] = false
	}
	away := e.result.outage || e.result.failed
	e.ledger.away[by], e.ledger.askedAt[by] = away, 0
	if away {
		e.ledger.askedAt[by] = x.time(e.world.now, int(by))
	}
}

// outcomes returns what became of each attempt of the decision.
func (x *explorer) outcomes(e *ending) (all []outcome) {
	for n := e.proc.told; !x.tolds.at(n).first; n = x.tolds.at(n).after {
		all = append(all, x.tolds.at(n).answer.failure)
	}
	return all
}
