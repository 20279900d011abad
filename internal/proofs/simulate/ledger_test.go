package simulate_test

import (
	"cmp"
	"fmt"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/proofs/oracle"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// A ledger holds what the store has performed, user by user, and judges it by the
// models: each write when it lands, each answer when it is given.
type ledger struct {
	sim        *sim
	users      map[owner]*user
	admissions []admission
}

// An owner is a user or another subject, and what its items count: an activity or a group.
type owner struct{ user, item string }

// An itemKey names an item.
type itemKey struct {
	owner

	window int64
}

func ownerOf(k ratelimit.Key) owner { return owner{k.UserID, k.Activity} }

func (o *op) owner() owner {
	return owner{o.request.UserID, cmp.Or(o.request.Group, o.request.Activity)}
}

type user struct {
	*oracle.Account
	owner

	spent   map[string]*spending // if the run has prepaid limits, by the names of all limits
	void    bool                 // an item was deleted, and instances still have leases of it
	records map[counter]*record  // the last time that each request was counted
	given   map[string]*release  // what was given back, by the receipts that did it
	paced   map[*terms]int64     // when each limit last counted
	freer   *op                  // the release or reset that did, and whose instance knows; nil: something else made room
	freed   int64                // when something was last given back or reset
	changed int64                // when the item last changed
	wrote   int64                // the latest time of a write with an id, by the clock of its decision
	deleted int64                // when an item was last deleted by a reset

	deployed bool // no write has changed it since a deploy
}

// A counter names a request in an item. A window has an item of its own, so a
// request can count once in each.
type counter struct {
	id     string
	window int64
}

// A record is a request that was counted.
type record struct {
	by     *op
	now    int64 // when the item last kept its id, by the clock of that decision
	at     int64 // when it came or was last renewed: the newest receipt
	check  int64 // when it came, which is the first receipt; 0: the item does not know it
	counts int64 // when it counts in limits other than a log
	n      int64
	place  int64 // reservoir: when it may run
	whole  bool  // the item remembers its id as long as the window
	over   bool  // it was given back or reset
	taken  bool  // it was given back by the check that has counted it, because that was refused
	relied bool  // another check was admitted because of it, and has marked it
	stale  bool  // it can have the mark of an earlier count
	again  bool  // an earlier count of the request was given back, or forgotten
	lapsed bool  // nothing of it counted at some time since, while its check was under way
	gone   bool  // its item was deleted when nothing counted any more, and knows no ids
	order  int   // the number of the write that counted it
	kept   int   // the number of the last write that kept its id in the item

	renewed bool    // its slots were moved to at
	mover   *op     // the renewal that did so last
	older   []int64 // their receipts before
	lives   int     // how often the request was counted before
}

// A release is what the store has given back by one receipt.
type release struct {
	now   int64 // when, by the clock of the decision that gave it back
	check int64 // when the check came, as the item knows it
	gone  bool  // the item was deleted since then
}

func (l *ledger) user(id owner) *user {
	u, ok := l.users[id]
	if !ok {
		u = &user{Account: newAccount(l.sim.itemOf(id)), owner: id, spent: map[string]*spending{}, records: map[counter]*record{}, given: map[string]*release{}, paced: map[*terms]int64{}, freed: -1 << 60, changed: -1 << 60, wrote: -1 << 60}
		l.users[id] = u
	}
	return u
}

// promised returns how long the receipt and the id of a request serve at least, on one
// clock. A log alone without subjects keeps its slots as long as they count, and its ids
// without Hold.
func (o *op) promised() int64 {
	if o.holds() {
		return 900_000
	}
	return 20_000
}

// holds reports whether the item keeps ids for longer because of Hold.
func (o *op) holds() bool {
	return o.request.Hold && (o.terms.Named() || o.terms.numbers.Rates[0].Kind != "log" || o.request.Shared)
}

// remembered is how long an item certainly knows an id: as long as is promised, less
// the 2 s that clocks differ.
func (o *op) remembered() int64 { return o.promised() - 2000 }

// remembers reports whether an item certainly knows the record for a decision at
// now.
func (r *record) remembers(now int64) bool {
	age, most := now-r.now, r.by.remembered()
	return r.whole || !r.gone && -most <= age && age <= most
}

// remembers reports whether an item certainly knows the record for a decision at now. A write
// forgets the ids that are old at its own time, and a freeze can end long after now.
func (u *user) remembers(r *record, now int64) bool { return r.remembers(max(now, u.wrote)) }

// update judges an update that has reached the store.
func (l *ledger) update(a *landing, w ratelimit.Write, before ratelimit.Item) {
	u := l.user(ownerOf(w.Key))
	l.forget(u, w.Key, before, a.op.request.Clear)
	if a.done {
		l.sim.stats[writes]++
		if a.op.request.Group != "" {
			l.sim.stats["of these, to the item of a group"]++
		}
		l.sim.mix(w.Now, int64(len(a.op.id)))
		switch {
		case w.RelyOn.Set != "":
			l.marked(u, a, w, before)
		case a.op.kind == ratelimit.Release:
			if a.op.gives != nil {
				l.sim.stats["counts that they gave back, because a later item refused"]++
				l.sim.had(a.op.request.Activity, "given back after a refusal")
			} else {
				l.sim.had(a.op.request.Activity, "release")
			}
			if a.op.request.Clear {
				l.cleared(u, a, w, before)
			} else {
				l.gaveBack(u, a, w, before)
			}
		case a.op.kind == ratelimit.Renew:
			l.sim.had(a.op.request.Activity, "renewal")
			l.renewed(u, a, w, before)
		default:
			l.counted(u, a, w, before)
		}
		u.changed, u.deployed = l.sim.now, false
		u.lapse(w.Now)
		if w.ID != (ratelimit.ID{}) && !w.KeepOld {
			u.wrote = max(u.wrote, w.Now)
		}
		l.lasts(u, a.op, w)
		if !u.Same(a.item.State) {
			l.sim.wrong("%s: the item holds %v, and the models hold %v", a.op.name, a.item.State, u)
		}
	}
	l.expect(u, a, w.Key, w.Now)
}

// lasts requires that an item without a window is kept for as long as something counts in it. The
// text of w says when the locks of a lockout are forgotten, and the item is kept until then. A
// bucket with a max is the exception that ended describes.
func (l *ledger) lasts(u *user, o *op, w ratelimit.Write) {
	for _, t := range append(l.sim.itemOf(u.owner), o.terms) {
		for m, r := range u.Own(t.numbers) {
			over := m.Used(w.Expires*1000, r, true) == 0
			if t == o.terms {
				over = oracle.Over(m, w.Expires*1000, r)
			}
			if w.Key.Window == 0 && w.Expires != 0 && !over && (r.Kind != "bucket" || r.Max == 0) {
				l.sim.wrong("%s: the item can be deleted at %d, and then %s still counts: %v", o.name, w.Expires*1000, r, m)
			}
		}
	}
}

// finds reports whether a repeat of r that reaches the store now must find r there. How long is
// "20 seconds, less the difference between clocks and the time until the repeat reaches the table"
// (docs/events.md), and with Hold 15 minutes. A window with a limit of up to 100 always has r.
func (l *ledger) finds(r *record) bool {
	last := cmp.Or(r.mover, r.by) // whose write has kept the id last
	came := r.now - (last.now - last.began)
	return r.whole || !r.gone && l.sim.now-came <= r.by.promised()-l.sim.apart
}

// counted judges a check that the store has counted.
func (l *ledger) counted(u *user, a *landing, w ratelimit.Write, before ratelimit.Item) {
	s, o := l.sim, a.op
	if w.ID == (ratelimit.ID{}) && l.repaced(u, a, w) {
		return
	}
	if w.ID == (ratelimit.ID{}) {
		s.had(o.request.Activity, "lease")
		l.visited(u, a, w, before)
		return
	}
	name := counter{o.id, w.Key.Window}
	earlier := u.records[name]
	if r := earlier; r != nil && !r.over && l.finds(r) && !o.moves(w, r) {
		s.wrong("%s is counted twice, at %d and at %d", o.name, r.now, w.Now)
	}
	n, when, err := u.Counts(o.terms.numbers, w.Now, before.State, a.item.State)
	when = l.begunBefore(u, o.terms, when, n, a.item.State)
	l.skips(u, a, when)
	switch {
	case err != nil:
		s.wrong("%s: %v: %+v changes %v", o.name, err, w.Update, before.State)
	case n < 1 || n > o.request.Count || n < o.request.Count && !o.request.Partial:
		s.wrong("%s asks for %d, and the store counts %d: %+v changes %v to %v", o.name, o.request.Count, n, w.Update, before.State, a.item.State)
	case !u.FitsAt(o.terms.numbers, when, n, false):
		s.wrong("%s: the store counts %d, which do not fit: %v", o.name, n, u)
	}
	r := &record{
		by: o, now: w.Now, at: w.Now, check: w.Now, counts: when.Counts, n: n,
		order: s.stats[writes], kept: s.stats[writes], again: earlier != nil, whole: u.whole(o, w.Key.Window),
	}
	if earlier != nil {
		r.lives = earlier.lives + 1
		r.stale = (earlier.relied || earlier.stale) && r.sameSet(earlier)
	}
	r.place = u.Place(o.terms.numbers, when.Counts)
	repaces, turns := u.Repaces(o.terms.numbers), u.Begins(o.terms.numbers, when)
	if err := u.CountAt(o.terms.numbers, when, n); err != nil {
		s.wrong("%s: %v", o.name, err)
	}
	turns = turns || u.Locked(o.terms.numbers, when)              // the lock can end before the window
	if repaces || turns || u.At(o.terms.numbers, s.now) > s.now { // a clock ahead has begun a window that counts less
		u.freed, u.freer = s.now, nil
	}
	u.paced[o.terms] = s.now
	u.records[name] = r
	l.keeps(o, before, a.item, o.holds())
	if when.Counts > w.Now {
		s.stats[later]++
		s.had(o.request.Activity, "counted at the time of a clock ahead")
	}
	if n < o.request.Count {
		s.had(o.request.Activity, "partial grant")
	}
	if o.refused {
		s.stats["attempts counted after their request was refused, because they arrived late"]++
	}
	u.pacedBy(o.terms)
	s.line("the store counts %d of %s at %d", n, o.name, w.Now)
	if n < o.request.Count && u.Fits(o.terms.numbers, w.Now, 1, true) && u.freed < o.began {
		s.wrong("%s asks for %d, gets %d, and more would fit", o.name, o.request.Count, n)
	}
}

// repaced reports whether a write without an id has recorded the slower pace of a limit that
// refused its check.
func (l *ledger) repaced(u *user, a *landing, w ratelimit.Write) bool {
	after, early, ok := u.Repaced(a.op.terms.numbers, w.Now, a.item.State, u.changed >= a.op.began)
	if !ok {
		return false
	}
	known := u.Clone()
	known.Skip(a.op.terms.numbers, w.Now, a.given)                                                         // places that its instance gave from memory
	if !early && known.Fits(a.op.terms.numbers, w.Now, a.op.request.Count, true) && u.freed < a.op.began { // a late record can arrive after a release
		l.sim.wrong("%s fits, and the store records its pace instead: %v", a.op.name, u)
	}
	u.Account = after
	u.freed, u.freer = l.sim.now, nil // a faster limit counts from another moment
	l.sim.stats["refusals that recorded a slower pace of a bucket"]++
	return true
}

// sameSet reports whether the item can keep the ids of two counts of a request in the same
// set. A mark stays there after a release, so the later one is perhaps not given back.
func (r *record) sameSet(earlier *record) bool {
	return r.whole && earlier.whole || within(r.now, earlier.now, 2*r.by.generation())
}

// freedFor returns when something last made room for requests of t. A bucket also
// drains at the pace of the last action, which can be another tier's pace. A tier with more
// attempts can begin a lock of t, which can end before the window.
func (u *user) freedFor(t *terms) int64 {
	freed := u.freed
	for _, mine := range t.numbers.Rates {
		for other, at := range u.paced {
			r, ok := other.numbers.Rate(mine.Name)
			switch {
			case ok && mine.Kind == "bucket" && oracle.Interval(r) != oracle.Interval(mine),
				ok && mine.Kind == "lockout" && r.Limit > mine.Limit:
				freed = max(freed, at)
			}
		}
	}
	return freed
}

// whole reports whether an item keeps the id of a request as long as it lives.
func (u *user) whole(o *op, window int64) bool {
	return !u.Named() && window != 0 && o.terms.numbers.Highest <= 100
}

// forget notes that an item does not exist. A promise of 15 minutes ends when nothing
// counts any more, and then the item can be deleted with its ids. In a group, the next
// write leaves out the limits of the other activity. After a deploy that makes a window
// longer, an item that nobody has written since goes at its earlier time. A release with clear
// writes no limit at all. A lockout forgets its locks by the text of the last attempt, and another
// tier's text can remember them for longer.
func (l *ledger) forget(u *user, k ratelimit.Key, item ratelimit.Item, clears bool) {
	s := l.sim
	if len(item.State)+len(item.IDs) > 0 {
		return
	}
	for c, r := range u.records {
		r.gone = r.gone || c.window == k.Window && r.by.request.Hold
	}
	u.forgetReleases()
	all := s.itemOf(u.owner)
	others := len(all) > 1 || u.deployed || clears
	empty := newAccount(all)
	for _, t := range all {
		for i, m := range u.Models {
			r, ok := t.numbers.Rate(u.Names[i])
			slowed := (len(all) > 1 || t.HasLog()) && u.ended(r, s.now)
			if ok && (others || slowed || r.Kind == "lockout") && (u.deployed || slowed || m.Used(s.now, r, true) == 0) {
				u.Models[i] = empty.Models[i]
			}
		}
	}
}

// ended reports whether an item can be deleted, although a bucket with a max has not filled up.
// A refusal by a low number has slowed that down, and keeps the item for as long. A later write
// that counts nothing in the bucket does not know this: of another activity of the group, or of
// a renewal. It keeps the item until the bucket would be full by the number that has counted.
// Clocks are up to 2 s apart.
func (u *user) ended(r policy.Rate, now int64) bool {
	return r.Kind == "bucket" && r.Max > 0 && now-u.changed+2000 >= oracle.Interval(r)*r.Burst
}

// forgetReleases notes that an item was deleted, with the ids of releases. The ids of
// other windows serve no more either, because their checks are over.
func (u *user) forgetReleases() {
	for _, back := range u.given {
		back.gone = true
	}
}

func receipt(id string, at int64) string { return fmt.Sprint(id, " ", at) }

// lapse notes the checks under way that no longer count anywhere. A bucket can count an action
// again afterwards, because what others take from it moves the time when it is full.
func (u *user) lapse(now int64) {
	for _, r := range u.records {
		if !r.over && !r.by.ended && r.by.whole != nil && !r.lapsed {
			r.lapsed = !u.Holds(r.by.terms.numbers, max(now, r.at), r.moment(r.at), r.n, false)
		}
	}
}

// reset notes that an item was deleted by a decision; nil: by an operator.
func (l *ledger) reset(o *op, k ratelimit.Key) {
	u := l.user(ownerOf(k))
	u.void, u.deleted = true, l.sim.now
	l.sim.line("the store deletes the item of %s", k.UserID)
	for c, r := range u.records {
		if c.window == k.Window {
			r.over, r.relied, r.stale = true, false, false
		}
	}
	u.forgetReleases()
	if k.Window != 0 {
		u.Clear(k.Window)
	} else {
		u.Account = newAccount(l.sim.itemOf(u.owner))
	}
	u.makeRoom(l.sim.now, o)
	u.changed = l.sim.now
}

// makeRoom notes that a release or reset made room. If it arrives after its
// decision has ended, its instance does not know.
func (u *user) makeRoom(now int64, o *op) {
	u.freed, u.freer = now, o
	if o == nil || o.ended {
		u.freer = nil
	}
}
