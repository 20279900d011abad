package ratelimit

import (
	"cmp"
	"slices"
	"time"

	"github.com/cric-talk/guards/internal/policy"
)

// A lease is what a process took of a prepaid limit with one write. The item counts all
// of it at once, and the process hands it out action by action. So never more than the
// limit gets through, even if the process dies. What it does not hand out is lost.
//
// A key begins without leases: each request is counted by a write of its own, which keeps
// its id. At some point, the item has so many ids that more of them would make each write
// dearer ([Memory.Crowd]). From then on, a process visits the item about once a second,
// and takes what it will probably use until the next visit. These writes keep no id, so
// they cost one unit, whatever the pace. Leases end when a process would take only what
// the request asks for.
//
// For example, 60000/1m prepaid at 100 requests a second in one process:
//
//	second  decisions
//	0       100 requests are counted by 100 writes, and then the item is crowded
//	1       1 is taken, then 2, 4, 8, and so on, as twice the last lease is used up
//	2       one write takes 100 actions, and 99 requests need no write
type lease struct {
	policy policy.Policy // only requests of the limit that took the lease get its actions
	got    int64         // what the process had after the last visit
	left   int64         // of these, not handed out yet
	held   int64         // of these, what visits under way will hand out
	until  int64         // when the lease ends, in Unix milliseconds; 0: the last visit took none
	before int64         // when the lease before it ended, if the last visit handed out its rest; 0: there was no rest
	at     int64         // when the last visit was counted
	begun  int64         // when the last visit began: after at, if it is under way or was refused
	seen   Item          // the item after the last visit, if it took a lease
	full   bool          // the item was crowded
}

// crowded reports whether the sets that w looks in have as many ids as a crowd.
func (i Item) crowded(w Write, crowd int) bool {
	n := 0
	for k := range w.LookIn {
		if k.Set != wholeSet { // another tier's ids, which stay
			n += len(i.IDs.In(k.Set))
		}
	}
	return n >= crowd
}

// A leaseState is how the requests of a limit are counted. The first row that applies decides
// what a check does:
//
//	state     is                                  check
//	any       with enough left                    takes it from the lease
//	any       whose item had the check's id       is counted by a write with its id
//	cold      until the item is crowded, and      is counted by a write with its id
//	          after 10 s without a check
//	crowded   without a lease that lasts          visits, and begins to renew
//	leased    with a lease that lasts             visits for what is missing, and begins to renew
//	renewing  with a visit under way              visits for what is missing, and takes no more
//
// The answer to a visit makes it leased, or crowded if the visit took only what its check
// needs. An item without a crowd makes it cold again.
type leaseState uint8

const (
	cold leaseState = iota
	crowded
	leased
	renewing
)

// state returns the state of l at now, if a lease that is taken now lasts this long.
func (l *lease) state(now, lasts int64) leaseState {
	switch {
	case l == nil, now-max(l.at, l.begun) > forgotten, !l.full && l.until == 0:
		return cold
	case l.begun > l.at && now-l.begun <= lasts:
		return renewing
	case l.rest(now) > 0:
		return leased
	}
	return crowded
}

// hot reports whether the requests of l may be counted without ids.
func (l *lease) hot(now int64) bool { return l.state(now, 0) != cold }

// pause returns for how long a refusal at now is repeated from memory if its key is hot. At
// most one visit is made in this time, even if actions come back meanwhile.
func (q *question) pause(now int64) time.Duration {
	until, _ := q.Policy.Lease(now)
	return min(trusted, time.Duration(until-now)*time.Millisecond)
}

// leaseOf returns the lease of the limit p among leases; nil: there is none.
func leaseOf(leases []lease, p policy.Policy) *lease {
	for i := range leases {
		if leases[i].policy.Same(p) {
			return &leases[i]
		}
	}
	return nil
}

// consume decides the check q from the lease of its limit. If that does not suffice, it
// sets how many actions q's visit should take.
func (m *Memory) consume(q *question) (d Decision, ok bool) {
	m.visit(q, func(l *lease) {
		carried := false
		if l == nil && q.write.Key.Window != 0 { // a new window begins with the pace of the last one
			before := q.write.Key
			before.Window--
			l, carried = m.lease(before, q.Policy), true
		}
		if ok = l.suffices(q); ok {
			l.left -= q.Count
			d = q.in(l.seen.State).decision(q.Count, 0)
			d.At, d.Leased = 0, true // the item does not have its id, so there is no receipt
			return
		}
		l.plan(q, m.NoLeases, carried)
	})
	return d, ok
}

// plan sets how the check q is counted, which l does not suffice for. The lease of the window
// before, carried, lends its pace and no actions.
func (l *lease) plan(q *question, noLeases, carried bool) {
	now, take := q.write.Now, q.Count
	_, lasts := q.Policy.Lease(now)
	state := l.state(now, lasts)
	if q.hot = state != cold; !q.hot || l.seen.counts(q.write) { // a repeat of a request from before
		return
	}
	if state != renewing && !noLeases {
		l.begun = now
		used := l.got - l.left
		take = max(take, min(2*used, used*lasts/max(1, now-l.at), q.Policy.Max()))
	}
	if take == q.Count && !l.full && !carried {
		return
	}
	if !carried { // the visit needs only what is missing
		q.held, q.until = l.rest(now), l.until
		l.left, l.held = l.left-q.held, l.held+q.held
	}
	q.take = take - q.held
}

// visit calls do with the lease of q's limit, nil if there is none, if q is a check that
// leases can decide. Nobody else uses the leases meanwhile.
func (m *Memory) visit(q *question, do func(*lease)) {
	if m == nil || q.op != Check || q.relies || !q.Policy.Prepaid() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	do(m.lease(q.write.Key, q.Policy))
}

// rest returns how many actions l can hand out at now.
func (l *lease) rest(now int64) int64 {
	if now >= l.until {
		return 0
	}
	return l.left
}

// suffices reports whether q can be decided from l.
func (l *lease) suffices(q *question) bool {
	return l != nil && l.left >= q.Count && q.write.Now < l.until && !l.seen.counts(q.write)
}

// leased reports whether consume can decide q.
func (m *Memory) leased(q *question) (ok bool) {
	m.visit(q, func(l *lease) { ok = l.suffices(q) })
	return ok
}

// counts reports whether the item has the id of w.
func (i Item) counts(w Write) bool {
	_, counted := i.Find(w)
	return counted
}

// lease returns the lease of p under k; nil: there is none. The caller must hold m.mu.
func (m *Memory) lease(k Key, p policy.Policy) *lease {
	if el, ok := m.byKey[k]; ok {
		return leaseOf(el.Value.(*entry).known.leases, p)
	}
	return nil
}

// Held returns how many actions of leases are left at now, and until when the last of them
// lasts, in Unix milliseconds. 0, 0: this process holds none.
func (k Known) Held(now int64) (left, until int64) {
	for _, l := range k.leases {
		if rest := l.left + l.held; rest > 0 && now < l.until {
			left, until = left+rest, max(until, l.until)
		}
	}
	return left, until
}

// refund returns what consume, or the visit of q, gave to q. A lease that was taken since
// then counts in another window, or lasts longer. What the lease before it gave to the visit
// ends as that would have.
func (m *Memory) refund(q *question) {
	m.visit(q, func(l *lease) {
		if l == nil || l.at > q.write.Now {
			return
		}
		if l.left = min(l.left+q.Count, l.got-l.held); l.before != 0 {
			l.until = min(l.until, l.before)
		}
	})
}

// release returns to the lease what the visit of q held of it, but did not hand out. A lease that
// was taken since then and lasts longer does not have it. One that ends as early has carried it
// over, as lend says.
func (m *Memory) release(q *question) {
	m.visit(q, func(l *lease) {
		if l == nil || l.until > q.until {
			return
		}
		held := min(q.held, l.held)
		l.held, l.left = l.held-held, l.left+held
	})
}

// lend returns k after the attempts of a check that the store has counted. What is left of
// the last lease stays, until the earlier end of the two leases. The visit's own request
// has handed out what it held of the last lease. So usually nothing is left of that, and
// the new lease lasts as long as it can.
func (k Known) lend(q *question, granted int64, crowd int) Known {
	now, old, took := q.write.Now, leaseOf(k.leases, q.Policy), lease{got: granted}
	if q.lease != nil {
		took = *q.lease
	}
	took.policy, took.at, took.begun, took.full = q.Policy, now, now, q.shown.crowded(q.write, crowd)
	if old != nil && now < old.until {
		if q.lease != nil && q.held > 0 {
			old.held, old.got, took.before = max(0, old.held-q.held), old.got-q.held, old.until
		}
		took.got, took.left, took.held, took.seen = took.got+old.left+old.held, took.left+old.left, old.held, q.shown
		if rest := old.left + old.held; rest > 0 || took.until == 0 {
			took.until = min(old.until, cmp.Or(took.until, old.until))
		}
	}
	k.leases = slices.DeleteFunc(k.leases, func(l lease) bool { return l.policy.Same(q.Policy) || now-l.at > forgotten })
	k.leases = append(k.leases, took)
	return k
}

// forgotten is after how long a limit that is not asked loses its pace, in milliseconds.
const forgotten = 10_000
