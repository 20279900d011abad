package explore

// A move is something that can happen next.
type move struct {
	what doing
	slot uint8 // or the number of a late message, or of an item
	by   uint8 // the instance
}

type doing uint8

const (
	starts    doing = iota // a caller sends a request to an instance
	answers                // the store performs the request and its answer comes at once
	performs               // the store performs the request; its answer is on its way
	delivers               // that answer arrives
	loses                  // that answer is lost
	vanishes               // no answer comes; the request is on its way, and may arrive late or never
	throttles              // the store refuses the request for lack of capacity
	proceeds               // the decision looks at the clock
	arrives                // a late request reaches the store
	ticks                  // the clock goes on to the next instant
	cleans                 // cleanup deletes an item that has expired
	follows                // an instance follows the next live limit
	crashes                // the instance dies; the request is on its way, and may arrive late or never
)

// latest is how long after the start of its decision a request can reach the
// store, in milliseconds. A decision itself takes at most as long.
const latest = 5000

// moves appends everything that can happen next.
func (x *explorer) moves(moves []move, w *world) []move {
	for s := range x.requests {
		slot := uint8(s)
		switch p := w.procs[s]; p.phase {
		case idle:
			for i := range 2 {
				if x.enabled(w, s) && (x.shared || !w.busy(i)) && (i == 0 || !x.mirrored(w)) {
					moves = append(moves, move{starts, slot, uint8(i)})
				}
			}
		case asking:
			if moves = x.fates(moves, w, slot, x.asks[p.told].what); x.fails {
				moves = x.alone(moves, x.asks[p.told], slot)
			}
		case replied:
			moves = append(moves, move{delivers, slot, 0}, move{loses, slot, 0})
		case over:
		}
	}
	for i, m := range w.late {
		if m != 0 && (i == 0 || m != w.late[i-1]) { // two alike do the same
			moves = append(moves, move{arrives, uint8(i), 0})
		}
	}
	if x.canTick(w) {
		moves = append(moves, move{what: ticks})
	}
	if x.cleanup {
		for i := range x.keys {
			shelf := x.shelves.at(w.store)
			if shelf.items != nil && shelf.items[i] != 0 && shelf.expires[i] < x.time(w.now, 0)/1000 {
				moves = append(moves, move{cleans, uint8(i), 0})
			}
		}
	}
	for i := range 2 {
		if int(w.limit[i])+1 < len(x.policies) {
			moves = append(moves, move{follows, 0, uint8(i)})
		}
	}
	return moves
}

// fates appends what can happen to a request to the store.
func (x *explorer) fates(moves []move, w *world, slot uint8, what asked) []move {
	switch {
	case what == look:
		return append(moves, move{proceeds, slot, 0})
	case x.slow:
		moves = append(moves, move{performs, slot, 0})
	default:
		moves = append(moves, move{answers, slot, 0})
	}
	if x.faults > 0 && int(w.faults) >= x.faults {
		return moves
	}
	if x.crash {
		moves = append(moves, move{crashes, slot, 0})
	}
	return append(moves, move{vanishes, slot, 0}, move{throttles, slot, 0})
}

// enabled reports whether a caller can send the request in slot s: what it refers
// to has begun, or has brought what it needs.
func (x *explorer) enabled(w *world, s int) bool {
	r := x.requests[s]
	switch r.verb {
	case repeat:
		return w.procs[r.of].phase != idle
	case release, unlock, renew:
		return w.procs[r.of].phase == over && x.keeps.at(w.procs[r.of].kept).at != 0
	case present:
		return w.procs[r.of].phase == over && x.keeps.at(w.procs[r.of].kept).readyAt != 0
	case check, partial:
		// Requests that are alike can change places, so the first one starts first.
		return s == 0 || x.requests[s-1] != r || x.referred(s) || x.referred(s-1) || w.procs[s-1].phase != idle
	case reset, status:
	}
	return true
}

// mirrored reports whether the two instances are alike, so that it does not matter which one is
// asked first.
func (x *explorer) mirrored(w *world) bool {
	return x.skew == 0 && w.limit[0] == w.limit[1] && w.slots(func(p proc) bool { return p.phase != idle }) == 0
}

// referred reports whether another request refers to slot s.
func (x *explorer) referred(s int) bool {
	for _, r := range x.requests {
		if r.of == s && r.refers() {
			return true
		}
	}
	return false
}

// canTick reports whether the clock can go on: there is a next instant, and no
// decision takes too long.
func (x *explorer) canTick(w *world) bool {
	if int(w.now)+1 >= len(x.instants) {
		return false
	}
	for _, p := range w.procs {
		if p.phase.inFlight() && x.instants[w.now+1]-x.instants[p.began] > latest {
			return false
		}
	}
	return true
}
