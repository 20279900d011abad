package explore

import (
	"fmt"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// step makes a move in w. It returns what is wrong with the move.
func (x *explorer) step(w *world, m move) error {
	if x.faults > 0 && (m.what == vanishes || m.what == throttles || m.what == crashes) {
		w.faults++
	}
	switch m.what {
	case starts:
		return x.start(w, int(m.slot), int(m.by))
	case answers, performs:
		return x.reach(w, int(m.slot), m.what == answers)
	case delivers:
		a := x.replies.at(w.procs[m.slot].reply)
		return x.resume(w, int(m.slot), a)
	case loses, vanishes:
		if m.what == vanishes {
			x.onItsWay(w, int(m.slot))
		}
		return x.resume(w, int(m.slot), answer{failure: unknown})
	case crashes:
		x.onItsWay(w, int(m.slot))
		x.die(w, int(m.slot))
		return nil
	case throttles:
		return x.resume(w, int(m.slot), answer{failure: throttled})
	case proceeds:
		return x.resume(w, int(m.slot), answer{})
	case arrives:
		late := x.messages.at(w.late[m.slot])
		w.take(int(m.slot))
		if late.what == remove {
			return x.delete(w, int(late.slot), int(late.number))
		}
		_, err := x.update(w, int(late.slot), late.number)
		return err
	case ticks:
		w.now++
		x.forgetLate(w)
		return nil
	case cleans:
		w.store = x.remove(w.store, int(m.slot))
		l := x.ledgers.open(w.ledger)
		l.emptied(int64(m.slot), false, w.inFlight())
		w.ledger = x.ledgers.number(l)
		return nil
	case follows:
		w.limit[m.by]++
		return nil
	}
	panic("no such move")
}

// forgetLate drops the requests that are too late to reach the store, and those
// that can change nothing any more.
func (x *explorer) forgetLate(w *world) {
	for i := maxLate - 1; i >= 0; i-- {
		m := x.messages.at(w.late[i])
		if w.late[i] != 0 && x.instants[w.now]-x.instants[w.procs[m.slot].began] > latest {
			w.take(i)
		}
	}
}

// callOf returns the number of the call for the request in slot s. The policy that the numbers
// of a caller make is another one each time, so each call is made once.
func (x *explorer) callOf(s int, limit uint8, of uint32) uint32 {
	key := started{uint8(s), limit, of}
	n, ok := x.started[key]
	if !ok {
		r := x.requests[s]
		c := call{r.verb, x.tries(s), x.call(s, limit, x.keeps.at(of)), nil}
		if len(x.room) > 0 {
			c.parts = x.partsOf(s, limit, c.request)
		}
		n = x.calls.number(c)
		x.started[key] = n
	}
	return n
}

// start sends the request in a slot to an instance.
func (x *explorer) start(w *world, s, by int) error {
	p := &w.procs[s]
	*p = proc{phase: asking, by: uint8(by), limit: w.limit[by], began: w.now, call: x.callOf(s, w.limit[by], w.procs[x.requests[s].of].kept)}
	p.told = x.tell(told{after: p.call, first: true, now: x.time(w.now, by), instance: w.inst[by]})
	return x.settle(w, s)
}

// resume tells the decision in a slot an answer.
func (x *explorer) resume(w *world, s int, a answer) error {
	p := &w.procs[s]
	if a.failure != answered {
		p.room, p.known = false, false
	}
	p.told = x.tell(told{after: p.told, now: x.time(w.now, int(p.by)), instance: w.inst[p.by], answer: a})
	p.phase, p.reply = asking, 0
	return x.settle(w, s)
}

// settle takes over what a decision did since it was told something. If it is
// over, settle judges its answer.
func (x *explorer) settle(w *world, s int) error {
	p := &w.procs[s]
	k := x.asks[p.told]
	before := w.inst[p.by]
	w.inst[p.by] = k.instance
	if k.what != ended {
		return nil
	}
	d := x.results.at(k.decision)
	if x.watch != nil {
		x.watch.ended(s, d)
	}
	l := x.ledgers.open(w.ledger)
	err := x.judge(w, l, s, before)
	l.ended(s)
	w.ledger = x.ledgers.number(l)
	*p = proc{phase: over, by: p.by, limit: p.limit, began: p.began, call: p.call}
	if x.referred(s) && !d.failed {
		p.kept = x.keeps.number(kept{d.Granted, d.At, d.ReadyAt})
	}
	return err
}

// reach has the store perform the request of a slot.
func (x *explorer) reach(w *world, s int, atOnce bool) error {
	p := &w.procs[s]
	k := x.asks[p.told]
	var done performed
	var err error
	switch k.what {
	case update:
		l := x.ledgers.at(w.ledger)
		write := x.writes.at(k.write)
		p.known = l.live(x.idOf(s), int64(x.number(write.Key)), x.instants[w.now], func(c entry) bool {
			return !past(x.calls.at(p.call).request.Policy, c.place, write.Now)
		})
		done, err = x.update(w, s, k.write)
		p.room = done.room
	case read:
		done.answer.item = x.item(w.store, k.item)
	case remove:
		err = x.delete(w, s, k.item)
	case ended, look:
		panic("this decision asks for nothing")
	}
	if err != nil {
		return err
	}
	if !atOnce {
		p.phase, p.reply = replied, x.replies.number(done.answer)
		return nil
	}
	return x.resume(w, s, done.answer)
}

// hasRoom reports whether the request, or one action of a partial request, fits
// in the item that the store answered.
func (x *explorer) hasRoom(r ratelimit.Request, now int64, a answer) bool {
	n := r.Count
	if r.Partial {
		n = 1
	}
	_, ok := r.Policy.Take(now, n, 0, x.items.at(a.item).State)
	return ok
}

// onItsWay leaves the request of a slot on its way, if it changes anything.
func (x *explorer) onItsWay(w *world, s int) {
	switch k := x.asks[w.procs[s].told]; k.what {
	case update:
		w.send(x.messages.number(message{uint8(s), update, k.write}))
	case remove:
		w.send(x.messages.number(message{uint8(s), remove, uint32(k.item)}))
	case ended, read, look:
	}
}

// die ends the decision in a slot without an answer, and replaces its instance by a new
// one.
func (x *explorer) die(w *world, s int) {
	p := &w.procs[s]
	l := x.ledgers.open(w.ledger)
	l.ended(s)
	l.away[p.by], l.askedAt[p.by], l.unlooked[p.by], l.alone[p.by] = false, 0, false, nil
	l.taken[p.by], l.handed[p.by], l.visited[p.by] = [limits]int64{}, [limits]int64{}, [limits]int64{} // what it held is lost
	w.ledger = x.ledgers.number(l)
	w.inst[p.by] = 0
	*p = proc{phase: over, by: p.by, limit: p.limit, began: p.began, call: p.call}
}

// update performs an update of a slot, and enters it in the ledger.
func (x *explorer) update(w *world, s int, number uint32) (performed, error) {
	write := x.writes.at(number)
	item := x.number(write.Key)
	before := x.item(w.store, item)
	p := &w.procs[s]
	done := x.perform(effect{w.store, number, p.call})
	w.store = done.store
	a, err := done.answer, done.wrong
	if x.watch != nil {
		x.watch.performed(s, write, x.items.at(before), a)
	}
	l := x.ledgers.open(w.ledger)
	request := x.calls.at(p.call).of(write.Key)
	if request.Policy.Prepaid() {
		l.crowds(x.items.at(a.item))
	}
	if done.full {
		l.full = x.instants[w.now] + since
	}
	if err != nil || !a.done {
		if len(x.room) > 0 || request.Policy.Prepaid() {
			w.ledger = x.ledgers.number(l)
		}
		return done, err
	}
	entered := written{
		slot: s, item: int64(item), limit: p.limit, by: p.by, call: request, write: write,
		before: x.items.at(before).State, after: x.items.at(a.item).State, ms: x.instants[w.now], inFlight: w.inFlight(), replied: w.replied(),
	}
	switch verb, id := x.requests[s].verb, x.idOf(s); {
	case verb == release, verb == unlock, verb == renew && frees(write):
		if verb == renew { // a slot of another part was gone
			entered.call.At = l.latest(id, entered.item)
		}
		if request.Clear {
			err = x.cleared(l, &entered)
		} else {
			err = x.gaveBack(l, &entered)
		}
		l.unsay(id, entered.call.At, entered.item)
		l.dismiss(func(a admission) bool { return a == admission{id, entered.item} })
	case verb == renew:
		err = x.renewed(l, &entered)
	case marks(write):
	case write.Drop.Set != "" && request.Policy.Queues():
		err = x.moved(l, &entered)
	case write.Drop.Set != "": // another part of the check has refused
		err = x.tookBack(l, &entered)
	default:
		err = x.counted(l, &entered)
	}
	if err == nil {
		err = x.agrees(l, &entered)
	}
	w.ledger = x.ledgers.number(l)
	return done, err
}

// delete performs a reset of a slot. A reset takes effect at most once.
func (x *explorer) delete(w *world, s, item int) error {
	if x.watch != nil {
		x.watch.deleted(s)
	}
	w.store = x.remove(w.store, item)
	l := x.ledgers.open(w.ledger)
	l.emptied(int64(item), true, w.inFlight())
	l.makeRoom(s, w.procs[s].by, x.instants[w.now], w.replied())
	l.removed[s]++
	w.ledger = x.ledgers.number(l)
	if l.removed[s] > 1 {
		return fmt.Errorf("%s is performed twice, and the second time deletes what was counted since", name(s))
	}
	return nil
}
