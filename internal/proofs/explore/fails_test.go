package explore

import (
	"fmt"
	"slices"
)

// In some systems, the key of the room fails alone: each request for it gets no answer, or is
// throttled. The requests for the users are answered.

// alone replaces what can happen to the request of a slot, the last of moves.
func (x *explorer) alone(moves []move, k ask, slot uint8) []move {
	moves = slices.DeleteFunc(moves, func(m move) bool {
		return m.slot == slot && slices.Contains([]doing{answers, performs, crashes, vanishes, throttles}, m.what)
	})
	switch {
	case k.what == update && x.writes.at(k.write).Key.UserID == room, k.what == read && x.keys[k.item].UserID == room:
		return append(moves, move{loses, slot, 0}, move{throttles, slot, 0})
	case k.what == look:
		return moves
	}
	return append(moves, move{answers, slot, 0})
}

// failsAlone judges a decision while the room fails. It admits nothing, and leaves nothing in
// the item of its user. The circuit of the table stays closed, and while the room's circuit
// is open, nothing is sent.
func (x *explorer) failsAlone(e *ending) error {
	if e.result.Allowed && !e.result.failed {
		return fmt.Errorf("it is admitted, and the room fails")
	}
	if !x.instances.at(e.ask.instance).probed.IsZero() {
		return fmt.Errorf("the circuit of the table is open, and only the room fails")
	}
	n := e.proc.told
	for !x.tolds.at(n).first {
		n = x.tolds.at(n).after
	}
	first := x.tolds.at(n)
	if in := x.instances.at(first.instance); in.busy != nil && e.ask.attempts > 0 {
		at := in.busy[x.itemOf(&x.calls.at(e.proc.call).parts[1].Request, e.now)]
		if !at.IsZero() && first.now-at.UnixMilli() < probeEvery {
			return fmt.Errorf("the circuit of the room is open, and a request is sent")
		}
	}
	for _, c := range e.ledger.entries {
		again := slices.Contains(e.ledger.back, receipt{c.id, c.at, c.item, false}) // counted and given back in the same millisecond before
		if int(c.writer) == e.slot && !c.forgotten && !again && !x.gaveUp(e) {
			return fmt.Errorf("its user counts it: %s", inWords(e.ledger.entries))
		}
	}
	return nil
}
