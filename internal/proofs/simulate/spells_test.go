package simulate_test

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// A broken key fails alone, each time in the same way, until a time. All others work.
type broken struct {
	user  string // or another subject
	fault fault
	until int64
}

// breakKey lets the requests for one key fail for a while.
func (s *sim) breakKey() {
	of, ok := s.anOwner()
	if !ok {
		return
	}
	ways := []fault{throttled, hang, failedBefore, denied}
	s.broken = broken{of.user, ways[s.random.IntN(len(ways))], s.now + s.upTo(40_000)}
	s.had("", "key that fails alone")
	s.line("until %.3f, all requests for %s end with: %s", float64(s.broken.until-begin)/1000, of.user, s.broken.fault)
}

// breaks reports whether the key of a user fails alone now.
func (s *sim) breaks(user string) bool {
	_, _, other := limits.SubjectOf(user)
	return s.broken.user == user && s.now < s.broken.until && !other
}

// slowDown lets the table answer late for a while: sometimes later than a decision waits.
func (s *sim) slowDown() {
	s.slow, s.slowUntil = 20+s.upTo(880), s.now+s.upTo(20_000)
	if s.chance(4) {
		s.slow = 1100
	}
	s.had("", "slow table")
	s.line("until %.3f, the table answers %d ms later", float64(s.slowUntil-begin)/1000, s.slow)
}

// freeze stops an instance, and everything that it does. In a long freeze, the clock that
// measures a decision's time sometimes stands still, and the other clock goes on.
func (in *instance) freeze() {
	s := in.sim
	lasts := s.upTo(8000)
	if s.chance(2) {
		lasts = 12_000 + s.upTo(28_000)
		s.stats["of these, for 12 to 40 s"]++
		s.had("", "long freeze")
	}
	if s.now >= in.frozenUntil && s.chance(2) {
		in.stoodStill += lasts
	}
	in.frozenUntil = max(in.frozenUntil, s.now+lasts)
	s.stats["instances frozen"]++
	s.had("", "frozen instance")
	s.line("instance %d is frozen until %.3f", in.number, float64(in.frozenUntil-begin)/1000)
}

// anOwner returns one of those that have an item; false: there is none.
func (s *sim) anOwner() (owner, bool) {
	all := slices.SortedFunc(maps.Keys(s.ledger.users), func(a, b owner) int { return cmp.Compare(a.user+" "+a.item, b.user+" "+b.item) })
	if len(all) == 0 {
		return owner{}, false
	}
	return all[s.random.IntN(len(all))], true
}

// Circuits are when the circuit of the table, and of each item of a decision, was last
// probed or opened. The zero time stands for a closed one.
type circuits struct {
	table time.Time
	keys  []time.Time
}

// each returns o, or its parts.
func (o *op) each() []*op {
	if len(o.parts) > 0 {
		return o.parts
	}
	return []*op{o}
}

func (o *op) circuits() (c circuits) {
	for _, p := range o.each() {
		of := p.owner()
		table, key := o.in.limiter.CircuitProbed(ratelimit.Key{UserID: of.user, Activity: of.item})
		c.table, c.keys = table, append(c.keys, key)
	}
	return c
}

// bar reports whether a check has to end before it sends anything: a circuit is open and not
// due, and it may not be decided from memory.
func (o *op) bar() bool {
	if o.kind != ratelimit.Check || o.request.Fallback || o.shadow || o.in.sim.prepaid() {
		return false
	}
	c, now := o.circuits(), o.in.clock()
	return slices.ContainsFunc(append(c.keys, c.table), func(probed time.Time) bool {
		age := now.Sub(probed)
		return !probed.IsZero() && 0 <= age && age < 5*time.Second
	})
}

// judgeCircuits judges what o, which has run on, did to the circuits. If the table has
// answered a decision, its failure opens only the circuit of a key. And a circuit that was
// only looked at stays due.
func (l *ledger) judgeCircuits(o *op, before circuits) {
	after := o.circuits()
	switch {
	case before.table.IsZero() && !after.table.IsZero() && o.answers > 0:
		l.sim.fail("%s: the table has answered it, and a failure opens the table's circuit", o.name)
	case !after.table.IsZero() && !after.table.Equal(before.table) && len(o.asked) == 0:
		l.sim.fail("%s claims a probe of the table, and sends nothing", o.name)
	case o.barred && o.attempts > 0:
		l.sim.fail("%s: a circuit is open, and a request is sent", o.name)
	}
	for i, p := range o.each() {
		if at := after.keys[i]; !at.IsZero() && !at.Equal(before.keys[i]) && !o.asked[p.request.UserID] {
			l.sim.fail("%s claims the probe of %s, and sends it nothing", o.name, p.request.UserID)
		}
	}
}
