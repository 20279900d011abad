package ratelimit

import (
	"github.com/cric-talk/guards/internal/policy"
)

// A step is the next thing to do about a question: a request to send, or the decision. The
// functions that choose it are pure, so the store's loop, an outage and a replay share them.
// The first row that applies decides. Before anything is sent (first):
//
//	reset                                delete the item
//	rely                                 mark the id; if only the memory has it: as check
//	acquire                              take a lease by a write without an id
//	check                                send the plan for what is known, or for an empty item
//	renew, and the item was read         as below
//	release, and what is known suffices  as below
//	otherwise                            read the item
//
// After that (next):
//
//	reset                                decided
//	status                               decided: what a check would get
//	release and renew                    give back or move the actions; if they are gone or moved: decided
//	acquire                              performed, or q does not fit: decided
//	                                     refused: take a lease once more; then as check
//	rely                                 performed: decided, as the check was
//	                                     refused: as check; if that finds the id elsewhere, mark it there
//	check, and the item has the id       decided: counted, by this attempt or an earlier one
//	                                     but its place is over: move the id to a new place
//	check, and q fits                    send the plan
//	check, and the item's pace is fast   record the pace, once
//	check                                decided: limited
//
// For example, 10 of 10/1m are counted and this process knows nothing. The plan for an empty
// item has the guard activityCount <= 9. The store refuses it and returns the count of 10.
// Then q does not fit: limited, after one request.
type step struct {
	request  request // to send; its verb is none: q is decided
	counts   int64   // check: how many actions the write counts
	takes    int64   // acquire: how many the write takes
	visit    int     // acquire: this is the first or the second plan
	unseen   bool    // the plan need not hold in the item as it was shown
	records  bool    // the write records a pace
	decision Decision
	claim    claim        // check: where the decision is counted
	origin   origin       // release: of the check, as far as it is known now
	lease    *lease       // acquire: what was taken; nil: nothing
	from     policy.State // check: the state that the write was planned in
}

// sends reports whether s is a request.
func (s *step) sends() bool { return s.request.verb != none }

// taken is a step with what came of it. Before the first step, only the item is set.
type taken struct {
	step

	item Item // as the store last showed it, or as it is known
	done bool // the store has performed the write
	lost bool // acquire: the outcome is unknown
}

// first returns the first step of q. Known is what is known of the item.
//
// A release or a renewal needs the item itself, because the id can have been given back and
// counted again at a later time, or renewed, and only its notes tell that. What this decision has
// read is enough, and the item as it has counted there: nobody else has that receipt. For a fixed
// window alone, so is what the memory knows, unless that can be from before the check.
func (q *question) first(known Item) step {
	switch {
	case q.op == Reset:
		return step{request: request{deletes, Write{Key: q.write.Key}}}
	case q.op == Check && q.relies && !q.claim.fallback: // else the store may not have the id
		return q.mark(step{claim: q.claim})
	case q.op == Check && q.take > 0 && !q.relies:
		return q.visit(known, q.take, 1)
	case q.op == Check:
		return q.blind(known)
	case q.read, q.mine:
		return q.change(known)
	case (q.op == Release || q.op == Renew && !q.look) && q.write.Key.Window != 0:
		if s := q.change(known); len(s.request.write.Update.Acts) > 0 {
			return s
		}
	}
	return step{request: request{reads, Write{Key: q.write.Key}}}
}

// next returns the step after got.
func (q *question) next(got taken) step {
	switch {
	case q.op == Reset:
		return step{decision: q.in(nil).decision(q.Count, 0)}
	case q.op == Status:
		return q.status(got)
	case q.op != Check && (got.done || q.look):
		return step{decision: q.changed(got.item), origin: got.origin}
	case q.op != Check:
		return q.change(got.item)
	case got.visit > 0:
		return q.visited(got)
	case got.request.write.RelyOn.Set != "" && got.done:
		return step{decision: got.decision, claim: got.claim}
	case got.request.write.RelyOn.Set != "":
		return q.blind(got.item)
	}
	s := q.check(got)
	if q.relies && !s.sends() && s.claim.isFound() {
		return q.mark(s)
	}
	return s
}

// check returns the step of a check after got.
func (q *question) check(got taken) step {
	kept, found := got.item.Find(q.write)
	if found && !q.late(kept) {
		own := got.done && got.counts > 0
		return step{decision: q.in(got.item.State).found(kept, own), claim: claim{own: own, kept: kept}}
	}
	return q.checkNew(got, kept)
}

// checkNew is check for an item that does not have the id, or has it in drop with a place that
// is over.
func (q *question) checkNew(got taken, drop Location) step {
	v := q.in(got.item.State)
	if n, u := v.fits(); n > 0 {
		return v.count(n, u, drop)
	}
	return v.refuse(got)
}

// refuse returns the step of a check or a visit that does not fit: it records the pace, once.
func (v view) refuse(got taken) step {
	if s, slower := v.repace(); slower && !got.records {
		s.visit, s.takes = got.visit, got.takes
		return s
	}
	return step{decision: v.decision(0, 0)}
}

// blind returns the step that counts q in an item that may have changed. If q does not fit in
// it, the step is for an empty item.
func (q *question) blind(known Item) step {
	n, v := min(q.Count, q.Policy.Max()), q.in(known.State)
	u, ok := v.take(n)
	if !ok {
		v = q.in(nil)
		u, ok = v.take(n)
	}
	if !ok {
		u = nothing // all places are given from memory: only look for the id
	}
	s := v.count(n, u, Location{})
	s.unseen = true
	return s
}

// count returns the step that counts n actions by the update u. The id in drop makes way for
// the new one.
func (v view) count(n int64, u policy.Update, drop Location) step {
	w := v.write
	w.Update, w.First, w.Last = u, u.CountedAt, u.CountedAt
	w.Note, w.Drop = u.ReadyAt, drop
	return step{request: request{updates, w}, counts: n, from: v.state}
}

// repace returns the step that records the pace of a check that its item refuses. It returns
// false if the item counts at that pace, or at a slower one. If the item has changed
// meanwhile, or the request fails, the next refusal records the pace.
//
// For example, a user has used 10 of bucket 10/1m, and a live limit makes it bucket 10/1d.
// The next check is refused. Without a record, the item would be full after a minute.
func (v view) repace() (step, bool) {
	u, expires, slower := v.Policy.Repace(v.write.Now, v.state)
	w := Write{Key: v.write.Key, Update: u, Now: v.write.Now, Expires: expires}
	return step{request: request{updates, w}, records: true}, slower
}

// mark returns the step that marks the id of a check that s has found.
func (q *question) mark(s step) step {
	s.request = request{updates, Write{Key: q.write.Key, RelyOn: s.claim.kept, Now: q.write.Now}}
	return s
}

// status returns what a check would get.
func (q *question) status(got taken) step {
	s := q.check(got)
	if s.sends() {
		s.decision = q.in(got.item.State).wouldBe(s.counts, s.request.write.Update)
	}
	return step{decision: s.decision}
}

// visit returns the step that takes what q needs beside what it holds, and at most take in
// all, by a write without an id. It is sent once: if its outcome is unknown, the lease may be
// lost, and q is counted by a write of its own, with its id.
func (q *question) visit(known Item, take int64, visit int) step {
	take = max(q.Count-q.held, min(take, q.Policy.Read(q.write.Now, 0, known.State).Remaining))
	u, ok := q.in(known.State).take(take)
	if !ok || visit > 2 {
		return q.blind(known)
	}
	w := q.write
	w.ID, w.Update = ID{}, u
	return step{request: request{updates, w}, takes: take, visit: visit, unseen: true}
}

// visited returns the step after a visit.
func (q *question) visited(got taken) step {
	v, need := q.in(got.item.State), q.Count-q.held
	switch {
	case got.lost:
		return q.blind(got.item)
	case got.done && !got.records:
		until, _ := q.Policy.Lease(q.write.Now)
		d := v.decision(q.Count, 0)
		d.Reading = q.Policy.Cross(q.write.Now, got.takes, got.item.State, d.Reading)
		d.At, d.Acquired = 0, true
		return step{decision: d, lease: &lease{got: got.takes + q.held, left: got.takes - need, until: until, seen: got.item}}
	case got.item.counts(q.write):
		return q.blind(got.item)
	}
	if _, ok := v.take(need); !ok && !q.Partial {
		return v.refuse(got)
	}
	return q.visit(got.item, got.takes, got.visit+1)
}

// change returns the step of a release or a renewal in this item. The actions and the id
// change in one write.
func (q *question) change(item Item) step {
	plan := q.undo
	if q.op == Renew {
		plan = q.renew
	}
	s := plan(item)
	if !s.sends() {
		s.decision = q.changed(item)
	}
	return s
}

// changed returns the decision of a release or a renewal, by the item after it.
func (q *question) changed(item Item) Decision {
	d := q.in(item.State).decision(q.Count, 0)
	if q.op == Release {
		return d
	}
	r := q.receipt(item)
	_, counts := q.Policy.Renew(r.now, r.at, q.Count, item.State)
	known := counts && r.known() && !r.wrong && (q.look || q.renewed(r.kept))
	if s := q.renew(item); known || q.look && s.sends() {
		if known {
			d.At = r.at
		}
		return d
	}
	d.Allowed, d.Granted, d.Reason = false, 0, Expired
	return d
}
