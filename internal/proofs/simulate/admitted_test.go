package simulate_test

import (
	"cmp"
	"slices"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/proofs/oracle"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// An admission is a check that was told that its action may go ahead, by a count of the
// store.
type admission struct {
	op  *op
	rec *record
}

// marked judges a mark that the store has made beside an id.
func (l *ledger) marked(u *user, a *landing, w ratelimit.Write, before ratelimit.Item) {
	s, o := l.sim, a.op
	r := u.records[counter{o.id, w.Key.Window}]
	switch {
	case o.kind != ratelimit.Check:
		s.wrong("%s marks an id", o.name)
	case r == nil || r.over:
		s.wrong("%s marks what does not count: the store has %s", o.name, r)
		return
	case !slices.Equal(before.State, a.item.State):
		s.wrong("%s marks an id, and turns %v into %v", o.name, before.State, a.item.State)
	}
	r.relied = true
	s.stats[marks]++
	s.had(o.request.Activity, "mark")
	s.line("%s relies on what the store has: %s", o.name, r)
}

// admit notes that o was told that its action may go ahead, and that the store counts it.
func (l *ledger) admit(o *op) {
	if r := cmp.Or(o.marked, o.last.rec); r != nil {
		l.admissions = append(l.admissions, admission{o, r})
	}
}

// settle judges what was admitted, once everything has arrived. What a check was admitted by
// still counts, unless it was given back by the app's own release, or reset, or is over. In
// particular, no other attempt of the same request has given it back.
func (l *ledger) settle() {
	for _, a := range l.admissions {
		u := l.user(a.op.owner())
		window, _ := a.op.terms.Item(a.op.now)
		if now := u.records[counter{a.op.id, window}]; a.rec.taken && (now == nil || now == a.rec || now.taken) {
			l.sim.wrong("%s was admitted, and in the end its item does not count it: the store has %s", a.op.name, a.rec)
		}
	}
	l.admissions = nil
}

// begunBefore returns when a write counts. It can be planned by what its instance saw before the
// item was deleted. If a clock ahead had begun the next window there, the write counts in it.
func (l *ledger) begunBefore(u *user, t *terms, when oracle.Moment, n int64, after policy.State) oracle.Moment {
	counted := func(at oracle.Moment) bool {
		c := u.Clone()
		return c.CountAt(t.numbers, at, n) == nil && c.Same(after)
	}
	if u.deleted == 0 || counted(when) {
		return when
	}
	for _, r := range t.numbers.Rates {
		w := oracle.WindowsOf(r)
		next := oracle.Moment{Came: when.Came, Counts: w.Begins(w.Key(when.Came) + 1)}
		if next.Counts-when.Came <= l.sim.apart && counted(next) {
			return next
		}
	}
	return when
}
