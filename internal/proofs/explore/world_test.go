package explore

import (
	"slices"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// A world is one state of a system. Its numbers stand for values in the tables of
// the explorer. Two worlds are equal if and only if they can do the same things.
type world struct {
	now    uint8
	faults uint8 // so far, if their number has a bound
	store  uint32
	ledger uint32
	inst   [2]uint32
	limit  [2]uint8 // the number of the policy that each instance follows
	procs  [slots]proc
	late   [maxLate]uint32 // numbers of messages, in order; zero: none
}

// A packed is a world in less memory: the decisions and the messages have numbers, too.
type packed struct {
	now, faults uint8
	limit       [2]uint8
	store       uint32
	ledger      uint32
	inst        [2]uint32
	procs       [slots]uint32
	late        uint32
}

func (x *explorer) pack(w *world) packed {
	p := packed{w.now, w.faults, w.limit, w.store, w.ledger, w.inst, [slots]uint32{}, x.lates.number(w.late)}
	for s, proc := range w.procs {
		p.procs[s] = x.procs.number(proc)
	}
	return p
}

func (x *explorer) unpack(p packed) world {
	w := world{now: p.now, faults: p.faults, limit: p.limit, store: p.store, ledger: p.ledger, inst: p.inst, late: x.lates.at(p.late)}
	for s, n := range p.procs {
		w.procs[s] = x.procs.at(n)
	}
	return w
}

// maxLate is the most requests to the store that can be on their way at once.
const maxLate = 3 * slots

// A proc is the decision in one slot.
type proc struct {
	phase phase
	by    uint8  // the instance
	limit uint8  // the policy it follows
	began uint8  // the instant
	room  bool   // when the store last refused, there was room
	known bool   // when the store last answered, the id was counted
	call  uint32 // the request
	told  uint32 // what the decision was told
	reply uint32 // replied: the answer that is on its way
	kept  uint32 // over: what the caller keeps of the answer
}

// A kept is what a caller keeps of an answer, for a release or to present a
// place.
type kept struct {
	granted, at, readyAt int64
}

type phase uint8

const (
	idle    phase = iota
	asking        // a request to the store is on its way, or the decision waits for its turn
	replied       // the answer is on its way
	over
)

func (p phase) inFlight() bool { return p == asking || p == replied }

// A message is a request to the store that its decision no longer waits for.
type message struct {
	slot   uint8
	what   asked
	number uint32 // update: the write; remove: the number of the item
}

// send adds a message. Messages are in order, and all that is zero comes last.
func (w *world) send(number uint32) {
	i := slices.Index(w.late[:], 0)
	w.late[i] = number
	slices.Sort(w.late[:i+1])
}

// take removes message i.
func (w *world) take(i int) {
	copy(w.late[i:], w.late[i+1:])
	w.late[maxLate-1] = 0
}

// forget drops what no longer matters of decisions that are over.
func (x *explorer) forget(w *world) {
	var sending uint8
	for _, m := range w.late {
		if m != 0 {
			sending |= 1 << x.messages.at(m).slot
		}
	}
	for s := range w.procs {
		if p := &w.procs[s]; p.phase == over && sending>>s&1 == 0 {
			*p = proc{phase: over, kept: p.kept}
		}
	}
}

// inFlight returns the slots whose decisions are not over.
func (w *world) inFlight() uint8 {
	return w.slots(func(p proc) bool { return p.phase.inFlight() })
}

// replied returns the slots whose answer is on its way.
func (w *world) replied() uint8 { return w.slots(func(p proc) bool { return p.phase == replied }) }

// busy reports whether instance i has a decision in flight.
func (w *world) busy(i int) bool {
	return w.slots(func(p proc) bool { return p.phase.inFlight() && int(p.by) == i }) != 0
}

func (w *world) slots(which func(proc) bool) (mask uint8) {
	for s, p := range w.procs {
		if which(p) {
			mask |= 1 << s
		}
	}
	return mask
}

// A shelf is what the store holds: its items by their number.
type shelf struct {
	items   []uint32
	expires []int64 // Unix seconds
}

// A call is a request of a limiter.
type call struct {
	verb    verb
	tries   int // the most attempts
	request ratelimit.Request
	parts   []ratelimit.Part // if a room counts it, too
}

// of returns the part of c that counts in the item with the key k.
func (c call) of(k ratelimit.Key) ratelimit.Request {
	for _, part := range c.parts {
		if part.UserID == k.UserID {
			return part.Request
		}
	}
	return c.request
}
