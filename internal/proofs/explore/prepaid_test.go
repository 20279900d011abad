package explore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// A prepaid limit is above 100, and so is the crowd that makes its key hot. Here a crowd
// is two, and all but three actions are counted before, by one write. So the first
// request makes the key hot, the second one can take a lease, and the third one can get
// it.
const crowd = 2

// held returns how many actions the leases of an instance have left at now.
func (x *explorer) held(instance uint32, now int64) (left int64) {
	for _, k := range x.instances.at(instance).knowns {
		n, _ := k.Held(now)
		left += n
	}
	return left
}

// copied returns k with leases of its own, because a limiter hands them out in place.
func copied(k ratelimit.Known) ratelimit.Known {
	m := ratelimit.NewMemory(1)
	m.Change(ratelimit.Key{}, func(ratelimit.Known) ratelimit.Known { return k })
	return m.Recall(ratelimit.Key{})
}

// prepaid is what a ledger has of prepaid limits. Each number belongs to an instance and
// to the limit that the instance followed.
type prepaid struct {
	taken, handed [2][limits]int64 // by visits that were answered, and to callers
	visited       [2][limits]int64 // when the last of them was counted, by the instance's clock
	crowded       bool             // the item of a user has had a crowd of ids
}

// limits is the most policies that take leases: three that follow one another, also in
// another tier or activity.
const limits = 6

// crowds notes that an item has a crowd of ids.
func (p *prepaid) crowds(item ratelimit.Item) {
	n := 0
	for _, set := range item.IDs {
		if set.Name != "ids" {
			n += len(set.Elements)
		}
	}
	p.crowded = p.crowded || n >= crowd
}

// unsay forgets what a caller was told, because it was given back in an item.
func (l *ledger) unsay(id uint8, at, item int64) {
	if i := slices.IndexFunc(l.told, func(t entry) bool { return t.id == id && t.at == at && t.item == item }); i >= 0 {
		l.told = slices.Delete(l.told, i, i+1)
	}
}

// visited notes a write without an id. It may count more than the request asks for, but
// only if the key has been hot.
func (x *explorer) visited(l *ledger, w *written, n int64) error {
	if !w.call.Policy.Prepaid() || !l.crowded {
		return fmt.Errorf("%s is counted without its id, and its key is not hot", name(w.slot))
	}
	if n < 1 { // fewer than it asks for, if the instance holds the rest
		return fmt.Errorf("%s of %d counts %d", name(w.slot), w.call.Count, n)
	}
	return nil
}

// admits notes what a caller may do: never more than the limit, or the highest of those that
// followed one another, by all instances together. With a room, it is about the part of the
// decision that is prepaid.
func (x *explorer) admits(e *ending, after uint32) error {
	d, l := e.result, e.ledger
	parts := x.calls.at(e.proc.call).parts
	for i := range parts {
		if r := &parts[i].Request; r.Policy.Prepaid() {
			e.call, e.item = r, x.itemOf(r, e.now)
		}
	}
	if !e.call.Policy.Prepaid() || d.outage || slices.Contains([]verb{release, unlock}, x.requests[e.slot].verb) {
		return nil
	}
	c := entry{id: e.id, writer: uint8(e.slot), item: e.item, n: d.Granted, at: max(d.At, e.now), counted: max(d.At, e.now), now: e.now, limit: e.proc.limit}
	if !d.Allowed && (d.Visit || d.Leased) { // only the prepaid part was granted
		c.n = e.call.Count
	}
	c.left = unitsOf(x.policyOf(int(e.item), e.slot, e.proc.limit), c.n)
	known := slices.ContainsFunc(l.told, func(t entry) bool { return t.id == c.id && t.item == c.item })
	if d.Visit || d.Leased {
		if err := x.handsOut(e, c.n); err != nil {
			return err
		}
	} else if known && d.At == 0 { // a repeat
		return nil
	}
	by := e.proc.by
	if left := x.held(after, e.now); len(x.instants) == 1 && left+sumOf(l.handed[by]) != sumOf(l.taken[by]) {
		return fmt.Errorf("the instance has %d actions left, and handed out %v of %v", left, l.handed[by], l.taken[by])
	}
	if d.failed || !d.Allowed {
		return nil
	}
	l.told = append(l.told, c)
	// Callers are told in another order than the store counts, and what a lease hands out is counted
	// before. So the highest limit that any of them followed holds, and for sliding the latest time.
	for _, t := range l.told {
		if x.most(e, t.limit) > x.most(e, c.limit) {
			c.limit = t.limit
		}
		if e.call.Policy.Rates()[0].Kind == "sliding" {
			c.counted = max(c.counted, t.counted)
		}
	}
	return x.promised(l.told, c)
}

// most returns the first limit of the ending's request, for an instance that follows a limit.
func (x *explorer) most(e *ending, limit uint8) int64 {
	return x.policyOf(int(e.item), e.slot, limit).Rates()[0].Limit
}

// handsOut notes that a visit takes a lease, or that n actions come from one. What an instance
// has left and has handed out is what its visits took for this limit. An action goes back to
// its lease if the room has refused it or gave no answer to it.
func (x *explorer) handsOut(e *ending, n int64) error {
	d, l, by, lender := e.result, e.ledger, e.proc.by, int(e.proc.limit)
	if x.isOther(e.slot) && len(x.dear) > 0 {
		lender += limits / 2
	}
	taken, handed, visited := &l.taken[by][lender], &l.handed[by][lender], &l.visited[by][lender]
	switch {
	case len(x.room) == 0 && (d.At != 0 || d.Reason != ratelimit.OK || d.Granted != e.call.Count || d.Leased && e.ask.attempts > 0):
		return fmt.Errorf("this is no answer from a lease")
	case d.Visit:
		i := slices.IndexFunc(l.entries, func(v entry) bool { return v.id == visit && int(v.writer) == e.slot })
		if i < 0 {
			return fmt.Errorf("the store has counted no visit: %s", inWords(l.entries))
		}
		*taken += l.entries[i].n
		*visited = l.entries[i].now
	case leaseEnded(e.call.Policy, *visited, e.now):
		return fmt.Errorf("the lease of %s has ended", moment(*visited))
	default:
		x.leased++
	}
	if d.Allowed && !d.failed {
		*handed += n
	}
	if *handed > *taken {
		return fmt.Errorf("%d of %d actions were handed out under limit %d", *handed, *taken, lender)
	}
	return nil
}

// leaseEnded reports whether a lease that was taken at a time has ended at now. It ends with
// its window or period, or after a second if it is a bucket's lease.
func leaseEnded(p policy.Policy, taken, now int64) bool {
	return slices.ContainsFunc(p.Rates(), func(r policy.Rate) bool {
		if r.Kind == "bucket" {
			return now-taken >= 1000
		}
		return windowOf(r, now) != windowOf(r, taken)
	})
}

func sumOf(n [limits]int64) (sum int64) {
	for _, n := range n {
		sum += n
	}
	return sum
}

// visit is the id of what a visit counts.
const visit = 254

// lends reports whether users or the room have a prepaid limit.
func (y *system) lends() bool {
	return y.policies[0].Prepaid() || len(y.room) > 0 && y.room[0].Prepaid()
}

// prepaids returns the kinds that can be prepaid, and several of them in one item.
func prepaids() (subjects []subject) {
	add := func(kinds, text, lowered, raised string) {
		all := func(s string) string { return strings.ReplaceAll(s, ",", " prepaid,") + " prepaid" }
		if p, err := policy.Parse(all(text)); err == nil {
			subjects = append(subjects, subject{kinds: kinds + ", prepaid", text: []string{all(text), all(lowered), all(raised)}, prefill: p.Max() - 3})
		}
	}
	for _, k := range policy.Kinds() {
		lowered := text(k, 110, 10)
		if _, err := policy.Parse(lowered); err != nil { // a bucket's window is a multiple of its limit
			lowered = text(k, 125, 20)
		}
		add(k.Name, text(k, 125, 10), lowered, text(k, 250, 10))
	}
	add("fixed and bucket", "a: 125/10s, b: bucket 125/20s", "a: 110/10s, b: bucket 125/20s", "a: 150/10s, b: bucket 250/20s")
	return subjects
}
