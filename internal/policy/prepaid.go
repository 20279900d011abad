package policy

import "fmt"

// A prepaid limit lets a busy process take many actions with one update and hand them
// out later: a lease. So its actions may run later than they are counted, until the
// window or the period ends in which they count.
//
// A bucket has no such end: an action that runs a second late finds a bucket that has
// refilled for a second, too. So a prepaid bucket keeps back what refills while a lease
// lasts, and never lets more through than its burst and its pace allow.

// leastPrepaid is the lowest limit that can be prepaid. The ids of the actions of a lower
// one always fit in one write unit, so leases would save nothing.
const leastPrepaid = 101

// longestLease is how long a process hands out what it took from a bucket, and how much
// it takes at most from any limit: what it uses in this time. In milliseconds.
const longestLease = 1000

// A lender is a kind whose actions may run later than they are counted.
type lender interface {
	kind
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
	return until, min(longestLease, (until-now)/2)
}

// Is reports whether p and q are copies of one policy.
func (p Policy) Is(q Policy) bool {
	return len(p.limits) > 0 && len(q.limits) > 0 && &p.limits[0] == &q.limits[0]
}

func (p fixed) until(now int64) int64 { return p.at(now).End }

func (p sliding) until(now int64) int64 { return (p.key(now) + 1) * p.window }

func (p bucket) until(now int64) int64 { return now + p.lasts }

// keepBack returns how long a lease of p lasts, and p without the actions that come back
// in this time.
func (p bucket) keepBack() bucket {
	p.lasts = min(longestLease, p.burst*p.interval/4)
	p.burst -= (p.lasts + p.interval - 1) / p.interval
	return p
}

// checkPrepaid returns an error if leases of a limit, of which actions are left in one
// window, would save nothing.
func (r Rate) checkPrepaid(k kind) error {
	left := k.read(0, 0, nil).Limit / r.cost()
	switch {
	case !r.Prepaid || left >= leastPrepaid:
		return nil
	case r.Burst != 0:
		return fmt.Errorf("burst is prepaid, and %d are left of it without what comes back while a lease lasts, want at least %d; fewer need no leases", left, leastPrepaid)
	}
	return fmt.Errorf("limit is %d and prepaid, want at least %d; a lower one needs no leases", left, leastPrepaid)
}
