package policy

import "fmt"

// A prepaid limit lets a busy process take many actions with one update and hand them
// out later: a lease. So its actions may run later than they are counted, until the
// end of the window or the period that counts them.

// minPrepaid is the lowest limit that can be prepaid. The ids of the actions of a lower
// one always fit in one write unit, so leases would save nothing.
const minPrepaid = 101

// maxLease is how long a process hands out what it took from a bucket, and how much
// it takes at most from any limit: what it uses in this time. In milliseconds.
const maxLease = 1000

// A lender is a kind whose actions may run later than they are counted.
type lender interface {
	until(now int64) int64 // until when actions counted at now may run
}

// Prepaid reports whether p can be leased, see [Policy.Lease].
func (p Policy) Prepaid() bool { return len(p.limits) > 0 && p.limits[0].rate.Prepaid }

// Lease returns until when actions that are counted at now may run, and for how long a
// lease should last, in milliseconds: at most a second. P must be prepaid.
func (p Policy) Lease(now int64) (until, lasts int64) {
	until = p.limits[0].kind.(lender).until(now)
	for _, l := range p.limits[1:] {
		until = min(until, l.kind.(lender).until(now))
	}
	return until, min(maxLease, (until-now)/2)
}

// Same reports whether p and q are copies of one policy.
func (p Policy) Same(q Policy) bool {
	return len(p.limits) > 0 && len(q.limits) > 0 && &p.limits[0] == &q.limits[0]
}

func (p fixed) until(now int64) int64 { return p.at(now).End }

func (p sliding) until(now int64) int64 { return (p.key(now) + 1) * p.window }

// A lentBucket is a prepaid bucket. Its leases have no window that ends them, and an action
// that runs a second late finds a bucket that has refilled for a second, too. So the first
// action that a full bucket counts makes tat later by as long as a lease lasts. Then tat is
// never too early, whenever the actions run. This time is kept back for everybody: an
// ordinary limit that counts in the same item finds it used.
//
// Lent is a stamp of since and of the time that is kept back. If an ordinary limit has
// started the bucket again, since is another one, and nothing is kept back any more.
//
// For example, with bucket 1000/1s burst 2000 prepaid, a lease lasts 500 ms, and 1,500 can
// be taken at once. In milliseconds:
//
//	time   event                             tat    since  lent          left here, and of bucket 1000/1s burst 2000
//	10000  a lease of 100                    10600  10000  10000 and 500  1400, 1400
//	10400  it is handed out                  10600  10000  10000 and 500  1500, 1800
//	10600  an ordinary check of 2000 fits    12600  10600  10000 and 500  0, 0
type lentBucket struct {
	bucket       // without the actions that come back while a lease lasts
	lasts  int64 // how long a lease lasts, in milliseconds
}

const lent = "lent"

// keepBack returns b as a prepaid bucket.
func keepBack(b bucket) lentBucket {
	p := lentBucket{bucket: b}
	p.lasts = min(maxLease, p.burst*p.interval/4)
	p.burst -= (p.lasts + p.interval - 1) / p.interval
	p.longest += p.lasts
	return p
}

// keptBack returns for how many milliseconds of tat nothing was counted.
func keptBack(s State) int64 {
	begun, kept := unstamp(s.Get(lent))
	if begun != s.Get(since) {
		return 0
	}
	return min(max(0, kept), maxLease)
}

func (p lentBucket) until(now int64) int64 { return now + p.lasts }

// take is the bucket's take without what is kept back, which it then adds again.
func (p lentBucket) take(now, n int64, seed uint64, s State) (Update, bool) {
	now = p.counted(now, s)
	left, held := p.without(now, s)
	u, ok := p.bucket.take(now, n, seed, left)
	if !ok {
		return u, false
	}
	for i, t := range u.If[0] {
		if t.Attr == tat {
			u.If[0][i].From, u.If[0][i].To = t.From+held, t.To+held
		}
	}
	if s.Get(tat) > now { // a full bucket is full, whatever was kept back
		u.If[0] = append(u.If[0], Exactly(since, s.Get(since)), asIs(lent, s))
	}
	begun, kept := s.Get(since), max(p.lasts, keptBack(s))
	for i, a := range u.Acts {
		switch {
		case a.Attr == since:
			begun, kept = a.Value, p.lasts
		case a.Attr == tat && a.Verb == Set:
			u.Acts[i].Value += p.lasts
		case a.Attr == tat:
			u.Acts[i].Value += p.lasts - held
		}
	}
	u.Acts = append(u.Acts, Act{Set, lent, stamp(begun, kept)})
	return u, true
}

// asIs returns a term that holds as long as an attribute is as in s.
func asIs(attr string, s State) Term {
	if v, ok := s.Find(attr); ok {
		return Exactly(attr, v)
	}
	return Missing(attr)
}

func (p lentBucket) read(now, n int64, s State) Reading {
	left, _ := p.without(now, s)
	return p.bucket.read(now, n, left)
}

// without returns what s has left if nothing is kept back for the leases of p. Held is how much
// is kept back for them.
func (p lentBucket) without(now int64, s State) (left State, held int64) {
	held = min(p.lasts, keptBack(s))
	if held == 0 || s.Get(tat) <= now {
		return s, 0
	}
	return Update{Acts: []Act{{Add, tat, -held}, {Add, lent, -held}}}.Apply(s), held
}

// checkRoom returns an error if k, which is made of r, has no room for one action, or if
// leases would save nothing, because too few actions are left in one window.
func (r Rate) checkRoom(k kind) error {
	most := k.read(0, 0, nil).Limit
	left := most / r.cost()
	switch {
	case r.cost() > most:
		return fmt.Errorf("cost is %d, want at most the %d that one action can take", r.Cost, most)
	case !r.Prepaid || left >= minPrepaid:
		return nil
	case r.Burst != 0:
		return fmt.Errorf("burst is prepaid, and %d are left of it without what comes back while a lease lasts, want at least %d; fewer need no leases", left, minPrepaid)
	}
	return fmt.Errorf("limit is %d and prepaid, want at least %d; a lower one needs no leases", left, minPrepaid)
}
