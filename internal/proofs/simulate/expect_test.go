package simulate_test

import (
	"github.com/cric-talk/guards/internal/proofs/oracle"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// A landing is what happened when an attempt reached the store, and what an
// answer from it may say.
type landing struct {
	op    *op
	clock int64 // by the clock of the instance: when the attempt began
	item  ratelimit.Item
	done  bool
	took  int64 // by a visit for a lease
	at    int64 // when that counts; of a renewal: the receipt of its slots

	snapshot *oracle.Account // what the store holds
	order    int             // how many writes it has performed

	rec     *record // the request's own count, if there is one
	known   bool    // the item certainly remembers it
	surely  bool    // the request fits, whatever clock decides
	perhaps bool    // it fits for some clock
	figures []oracle.Figure
	wait    [2]int64 // the shortest and the longest wait that an answer may name
	given   int64    // reservoir: the ticket of the places that the instance had given from memory when it was sent
	again   bool     // it was sent before, without an answer
	next    int64    // reservoir: the place that it would get
	waiting int64    // reservoir: places up to its own
	skips   bool     // the instance has given later places from memory, so figures and waits can't be known
	must    bool     // a release has to give something back, and a renewal to find its slots
	check   int64    // release: when its check came, as an item with slots knows; 0: perhaps it does not know
	bare    bool     // a write without an id: for example, it records a slower pace; or a clear that gives nothing back
	learned bool     // the instance knows what it shows
}

// read notes what a read has shown.
func (l *ledger) read(a *landing, k ratelimit.Key) {
	u := l.user(ownerOf(k))
	now := a.op.now
	if byReceipt(a.op.kind) {
		now = a.op.releasedAt()
	}
	l.forget(u, k, a.item, false)
	l.expect(u, a, k, now)
}

// expect notes what an answer from this landing may say.
func (l *ledger) expect(u *user, a *landing, k ratelimit.Key, now int64) {
	o := a.op
	a.snapshot, a.order = u.Clone(), l.sim.stats[writes]
	a.figures = u.Figures(o.terms.numbers, now)
	if _, a.skips = o.skipped(u.Account, now); a.done { // a reset can have cleared the memory since it was sent
		a.skips = a.skips || u.Clone().Skip(o.terms.numbers, now, a.given)
	}
	switch r := u.records[counter{o.id, k.Window}]; o.kind {
	case ratelimit.Renew:
		if o.whole != nil { // its slots move to where a clock ahead has moved the slots of the part before
			for _, p := range o.whole.parts {
				if p.last != nil {
					now = max(now, p.last.at)
				}
			}
		}
		if a.must, a.rec = u.mustRenew(r, o, now), r; r != nil {
			a.at = r.at
		}
		return
	case ratelimit.Release:
		x, sure := o.presents()
		a.must = u.mustGiveBack(r, o, now) || o.request.Clear && sure && u.given[receipt(o.id, x)] == nil && u.given[receipt(o.id, o.request.At)] == nil
		if o.terms.HasLog() && (!a.done || !a.bare) {
			a.check = u.checkOf(r, o.id, o.request.At, now)
		}
		return
	default:
	}
	if r := u.records[counter{o.id, k.Window}]; r != nil && !r.over && !o.late(r) {
		a.rec, a.known = r, u.remembers(r, now)
	}
	need := o.request.Count
	if o.request.Partial {
		need = 1
	}
	a.surely, a.perhaps = u.Fits(o.terms.numbers, now, need, true), u.Fits(o.terms.numbers, now, need, false)
	if !a.surely {
		a.wait = [2]int64{u.Wait(o.terms.numbers, now, need, false), u.Wait(o.terms.numbers, now, need, true)}
	}
	a.next = u.Place(o.terms.numbers, u.At(o.terms.numbers, now))
	if a.rec != nil {
		a.waiting = u.Waiting(o.terms.numbers, now, a.rec.place)
	}
}

// releasedAt returns the time that an instance plans a release with: its own
// time, or the receipt's if a clock ahead gave the receipt.
func (o *op) releasedAt() int64 {
	x, _ := o.presents()
	if ahead := x - o.now; 0 < ahead && ahead <= 120_000 {
		return x
	}
	return o.now
}
