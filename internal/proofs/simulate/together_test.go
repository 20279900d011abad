package simulate_test

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// subjects reports whether the run has other subjects than users.
func (s *sim) subjects() bool {
	return slices.ContainsFunc(s.activities, func(a limits.Activity) bool { return len(a.Subjects) > 0 })
}

// itemOf returns the limits of an item, one for each activity that counts in it.
func (s *sim) itemOf(id owner) (list []*terms) {
	name, _, ok := limits.SubjectOf(id.user)
	if !ok {
		name = "" // the user
	}
	for _, a := range s.activities {
		if cmp.Or(a.Group, a.Name) == id.item && a.Has(name) {
			list = append(list, s.of(a.Part(name).Limit))
		}
	}
	return list
}

// part returns the decision about one item that a request to the store is part of: o
// itself, or one of its parts. What a check or a renewal gives back is a release.
func (o *op) part(k ratelimit.Key, givesBack bool) *op {
	for _, p := range o.parts {
		if p.request.UserID != k.UserID {
			continue
		}
		if !givesBack {
			return p
		}
		back := *p
		back.kind, back.name, back.gives, back.now = ratelimit.Release, p.name+" gives back", p, o.in.millis()
		if back.request.At = p.now; o.kind == ratelimit.Renew && p.last != nil {
			back.request.At = p.last.at
		}
		return &back
	}
	return o
}

// givesBack reports whether a check or a renewal gives back by w what it has done.
func (o *op) givesBack(w ratelimit.Write) bool {
	return o.kind == ratelimit.Check && w.GivesBack || o.kind == ratelimit.Renew && w.Drop.Set != "" && w.Note == 0
}

// returns reports whether the part of an item was asked before the part whose turn it is.
func (o *op) returns(k ratelimit.Key) bool {
	return o.turn != nil && slices.Index(o.parts, o.part(k, false)) < slices.Index(o.parts, o.turn)
}

// readsToGiveBack reports whether a check reads an item to give back what it has counted there.
// That can be the part whose turn it was last, if those after it were decided from memory. In
// shadow mode, a check reads the parts after that.
func (o *op) readsToGiveBack(k ratelimit.Key) bool {
	return o.kind == ratelimit.Check && (o.returns(k) || o.anew && o.turn != nil && o.turn == o.part(k, false))
}

// begins notes that o asks the store about an item, or has marked what it found there. The
// parts before have ended. Once the last one has admitted, o turns to those again that
// another attempt has counted, even if the parts after them were decided from memory, without a
// request. After a refusal, a check in shadow mode only reads.
func (o *op) begins(k ratelimit.Key, givesBack, reads bool) {
	p := o.part(k, false)
	again := p == o.turn && o.anew && o.kind == ratelimit.Check && !reads // a give-back can read first
	o.anew = false
	if p == o || p == o.turn && !givesBack && !again { // a later part can have refused from memory
		return
	}
	switch {
	case givesBack:
		o.ends(p, false)
		o.doubts()
		o.busy(1)
		o.giveBackAlone(p)
	case !o.returns(k) && reads: // it was perhaps refused
		o.ends(p, false)
		o.doubts()
		o.busy(1)
	case !o.returns(k) && !again:
		o.ends(p, true)
	default:
		o.ends(nil, true)
		p.decided = false
	}
	o.turn = p
}

// ends notes that the parts before the next one have ended; nil: all. If they were admitted,
// those without an answer were so from memory, unless they came from a lease. If nothing was sent
// about a prepaid one, it can be either: perhaps a circuit is open, or the caller has left.
func (o *op) ends(next *op, admitted bool) {
	for _, p := range o.parts {
		switch {
		case p == next || !admitted || o.kind != ratelimit.Check:
			return
		case !p.decided && (p.lost || !p.terms.Prepaid() && (p.last == nil || !p.last.done && p.last.rec == nil)):
			o.in.sim.ledger.admittedAlone(p, ratelimit.Decision{Granted: p.request.Count})
		case !p.decided && p.last == nil:
			window, _ := p.terms.Item(p.now)
			p.in.aloneOf(p.owner()).perhaps[counter{p.id, window}] = true
		}
		p.decided = true
	}
}

// unmarked notes which of these parts, which were admitted, have found a count and could not mark
// it. Those were decided from memory, too.
func (o *op) unmarked(parts []*op) {
	for _, p := range parts {
		if a := p.last; o.kind == ratelimit.Check && a != nil && a.took == 0 && !a.done && a.rec != nil && p.marked == nil && !p.alone {
			o.in.sim.ledger.admittedAlone(p, ratelimit.Decision{Granted: p.request.Count})
		}
	}
}

// failed notes that a request of a part got no answer. Then the outcome of an update is
// unknown, unless it was throttled, and perhaps the part is not given back.
func (o *op) failed(k ratelimit.Key, givesBack bool, err error) {
	if len(o.parts) == 0 {
		return
	}
	p := o.part(k, givesBack)
	_, known := errors.AsType[*ratelimit.StoreError](err)
	if p.unsure, p.lost = p.unsure || o.writing && !known, true; p.gives != nil {
		p.gives.unsure = true
	}
}

// answered notes what the store has answered to o, or to a part of it.
func (o *op) answered(a *landing) {
	o.last, o.lost, o.marked, o.refusal, o.given = a, false, nil, nil, 0
	if o.gives != nil {
		o.gives.last, o.gives.lost = a, false
	}
}

// marks notes that the store has answered to a mark of o. Once it is made, the answer to o is
// the one of before. The instance knows what both have shown.
func (o *op) marks(a *landing) {
	o.lost = false
	if !a.done { // o is decided again, and what got lost before stays unknown
		o.in.sim.stats[lateMarks]++
		o.refusal = a
		return
	}
	o.marked = a.rec
	o.in.learn(o, o.last)
	o.in.learn(o, a)
}

// judgeAll judges the answer to a decision of several parts.
func (l *ledger) judgeAll(o *op, d ratelimit.Decision, err error) {
	s := l.sim
	s.stats["decisions that count in several items, such as that of a room"]++
	if o.hasOddCount() {
		l.judgeOddCount(o, d, err)
		return
	}
	refuser, next := -1, (*op)(nil)
	if err == nil && !d.Allowed {
		refuser = o.refuser(d)
		if refuser < 0 {
			s.fail("%s is told %s by %s, and no limit refuses it: %+v", o.name, d.Reason, d.LimitedBy, d.Each)
			return
		}
		next = o.parts[refuser] // if it was known to refuse, those before it were not asked
	}
	cmp.Or(o.turn, o).learns()
	for _, p := range o.parts {
		p.earlier = o.giving // it was refused, and has given back since
	}
	if o.kind == ratelimit.Check && refuser >= 0 && !o.shadow && o.turn != nil && slices.Index(o.parts, o.turn) > refuser {
		o.unmarked(o.parts[refuser+1:]) // marks begin with the widest part, and a narrower one has refused from memory
	}
	o.ends(next, err == nil && (d.Allowed || len(o.share(d, o.parts[0]).Each) > 0))
	if err != nil || !d.Allowed {
		o.giveBackAlone(nil)
	} else {
		o.unmarked(o.parts)
		o.relyAlone()
	}
	for i, p := range o.parts {
		mine := o.share(d, p)
		if o.kind == ratelimit.Check && err == nil && p.terms.Prepaid() {
			mine.Leased, mine.Acquired = d.Allowed && d.Outage == nil && p.last == nil, d.Allowed && d.Outage == nil && p.last != nil && p.last.took > 0
			l.balanced(p, mine)
		}
		if err == nil && p.terms.Prepaid() {
			l.told(p, mine)
		} else if err == nil {
			ordinary := mine
			ordinary.Leased, ordinary.Acquired = false, false
			l.told(p, ordinary)
		}
		if refuser >= 0 || err != nil {
			l.judgeGivenBack(p, d, err)
		}
		switch {
		case err != nil, d.Outage != nil:
		case len(mine.Each) == 0:
			if d.Allowed && (o.kind == ratelimit.Check || o.kind == ratelimit.Status || o.kind == ratelimit.Release) {
				s.wrong("%s is told %s, and its item was left out: %+v", p.name, d.Reason, d.Each)
			}
		case refuser >= 0 && i != refuser && o.kind != ratelimit.Status: // given back, renewed in vain or read for the metrics
		case p.last == nil && i == refuser:
			l.judgeRepeat(p, mine)
		case p.last == nil && !mine.Leased:
			s.wrong("%s is told %s, and the store was not asked: %+v", p.name, d.Reason, mine)
		case p.last != nil:
			l.judgePart(p, mine, i == refuser)
		}
	}
	o.busy(-1)
	for _, p := range o.parts {
		l.sameAlone(p)
		l.sameSeen(p)
	}
	switch {
	case err != nil:
		if o.request.Fallback && !byReceipt(o.kind) {
			s.fail("%s: %v, want a decision from memory", o.name, err)
		}
		return
	case d.Outage != nil:
		s.stats["decided from memory in an outage"]++
		if d.Reason != ratelimit.Unavailable {
			s.fail("%s: %s from memory, want unavailable", o.name, d.Reason)
		}
	}
	s.reason(o, d)
	l.judgeWhole(o, d)
}

// refuser returns the number of the first part that refuses. In shadow mode, a check names
// the tightest limit instead, perhaps of a part that was only read.
func (o *op) refuser(d ratelimit.Decision) int {
	return slices.IndexFunc(o.parts, func(p *op) bool {
		if o.kind != ratelimit.Check || !o.shadow {
			return p == o.partNamed(d.LimitedBy)
		}
		return slices.ContainsFunc(d.Each, func(r policy.Reading) bool { return o.partNamed(r.Name) == p && r.Wait > 0 })
	})
}

// partNamed returns the part of o that a limit belongs to, such as room.minute or act.
func (o *op) partNamed(limit string) *op {
	subject, _, _ := strings.Cut(limit, ".")
	for _, p := range o.parts[1:] {
		if p.subject == subject {
			return p
		}
	}
	return o.parts[0]
}

// share returns what a decision of several parts tells about p. Limits have the names
// that they have in p. Its Each is empty if p was not asked.
func (o *op) share(d ratelimit.Decision, p *op) ratelimit.Decision {
	mine, each := d, []policy.Reading(nil)
	for _, r := range d.Each {
		full := r.Name
		if o.partNamed(full) != p {
			continue
		}
		if _, limit, ok := strings.Cut(full, "."); ok || p.subject != "" || !p.terms.Named() {
			r.Name = limit
		}
		if each = append(each, r); len(each) == 1 || full == d.LimitedBy {
			mine.Reading, mine.LimitedBy = r, r.Name
		}
	}
	mine.Each, mine.At = each, d.At
	return mine
}

// judgePart judges what an answer says about an item that the store has shown.
func (l *ledger) judgePart(p *op, d ratelimit.Decision, refuses bool) {
	s, a := l.sim, p.last
	switch {
	case p.kind == ratelimit.Release:
		if a.must && !a.done {
			s.wrong("%s comes in time, and nothing was given back", p.name)
		}
		l.judgeFigures(p, d, a.figures, [2]int64{})
	case p.kind == ratelimit.Renew:
		l.judgeRenew(p, d)
	case p.kind == ratelimit.Status:
		if d.Allowed && !a.perhaps && a.rec == nil || refuses && a.surely {
			s.wrong("%s: allowed %v by %s; it fits: %v", p.name, d.Allowed, d.LimitedBy, a.surely)
		}
		l.judgeFigures(p, d, a.figures, [2]int64{-1})
	case a.took > 0:
		l.judgeFigures(p, d, a.figures, [2]int64{})
	default:
		if p.terms.Prepaid() {
			a.wait = [2]int64{-1}
		}
		if d.Allowed && p.duplicate() {
			d.Reason = ratelimit.Duplicate
		} else if d.At == 0 && a.rec != nil && a.rec.by == p { // there is one only if all parts have it
			d.At = p.now
		}
		l.judgeCheck(p, d)
	}
}

// duplicate reports whether the store showed that an earlier decision has counted o,
// a part.
func (o *op) duplicate() bool {
	return o.last != nil && o.last.took == 0 && o.last.rec != nil && o.last.rec.by != o && !o.unsure
}

// judgeGivenBack requires that a part of a check that was refused, or failed, counts no more,
// and that its item has forgotten the id: "Refusals are not remembered. The same id may pass
// later". Otherwise a repeat would be admitted for a count that is over. It can still count in
// four cases. Another attempt relies on it, or a request for it got no answer. There was no time
// left. Or the window of the item has ended, so no repeat asks it. If a renewal was in vain, no
// slot stays at its new time.
func (l *ledger) judgeGivenBack(p *op, d ratelimit.Decision, err error) {
	u := l.user(p.owner())
	window, _ := p.terms.Item(p.now)
	current, _ := p.terms.Item(p.in.millis())
	r := u.records[counter{p.id, window}]
	if r == nil || r.over || r.gone || p.unsure || p.lost || p.whole.spent || p.in.frozenUntil >= p.began {
		return
	}
	counts := p.kind == ratelimit.Check && window == current && r.by == p && !r.relied && !r.stale && u.given[receipt(p.id, r.at)] == nil
	moves := p.kind == ratelimit.Renew && r.mover == p && err == nil
	if counts || moves && u.Holds(p.terms.numbers, p.in.millis(), r.moment(r.at), r.n, false) {
		l.sim.wrong("%s is told %s, error %v, and its item still has %s", p.name, d.Reason, err, r)
	}
}

// judgeWhole judges what the parts of an answer have in common.
func (l *ledger) judgeWhole(o *op, d ratelimit.Decision) {
	s, found := l.sim, false
	all := o.kind == ratelimit.Status || o.shadow
	for _, r := range d.Each {
		found = found || r.Name == d.Name && r.Used == d.Used && r.Limit == d.Limit && r.Remaining == d.Remaining
		switch {
		case d.Allowed && r.Remaining < d.Remaining, d.Reason == ratelimit.Limited && (all || o.partNamed(r.Name) == o.partNamed(d.LimitedBy)) && r.Wait > d.Wait:
			s.wrong("%s: the figures are those of %s, and %s is tighter: %+v", o.name, d.Name, r.Name, d.Each)
		}
	}
	if !found || d.Reason == ratelimit.Limited && d.LimitedBy != d.Name {
		s.wrong("%s: the figures %+v are of no limit, or not of the one that refuses (%s)", o.name, d.Reading, d.LimitedBy)
	}
	if o.kind != ratelimit.Check || !d.Allowed || d.Outage != nil {
		return
	}
	if d.Granted != o.request.Count {
		s.wrong("%s is granted %d, want %d", o.name, d.Granted, o.request.Count)
	}
	alike, duplicates := true, 0
	for _, p := range o.parts {
		leased := p.terms.Prepaid() && (p.last == nil || p.last.took > 0)
		switch {
		case p.duplicate():
			duplicates++
			alike = false
		case leased:
		case p.unsure:
			alike = false
		}
	}
	if all := duplicates == len(o.parts); all != (d.Reason == ratelimit.Duplicate) {
		s.wrong("%s is told %s, and %d of %d parts were counted before", o.name, d.Reason, duplicates, len(o.parts))
	}
	leases := !slices.ContainsFunc(o.parts, func(p *op) bool { return !p.terms.Prepaid() || p.last != nil && p.last.took == 0 })
	if alike && !leases && d.At != o.now || d.At != 0 && d.At != o.now {
		s.wrong("%s comes at %d and has the receipt %d", o.name, o.now, d.At)
	}
}
