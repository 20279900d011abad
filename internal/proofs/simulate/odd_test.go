package simulate_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/proofs/oracle"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// One run in eight is odd. There, callers and operators do what they should not
// do: they release more than anybody is granted, spoil items, and try limits that
// can't share a count. Half of the odd runs begin before 2020.
const oddRuns = 8

// old is two days before 2020. The times that a log stores count from 2020, so
// there they are below zero.
const old = 1_577_664_000_000

// oddCounts are counts that no release may have.
var oddCounts = []int64{math.MinInt64, -1, 0, 1_000_001, 2_766_994_107_651_000, math.MaxInt64}

// hasOddCount reports whether a request is a release of such a count.
func (o *op) hasOddCount() bool {
	return o.kind == ratelimit.Release && slices.Contains(oddCounts, o.request.Count)
}

// judgeOddCount judges the answer to such a release. It is an error, and the store
// was not asked.
func (l *ledger) judgeOddCount(o *op, d ratelimit.Decision, err error) {
	if err == nil || o.attempts > 0 {
		l.sim.fail("%s of %d: %s after %d attempts, error %v, want an error without an attempt", o.name, o.request.Count, d.Reason, o.attempts, err)
	}
	l.sim.stats["releases refused, because of their count"]++
}

// spoiled is a user whose items somebody else writes to. As soon as an update
// names an attribute of such an item, an attribute of the update has a wrong type.
const spoiled = "u3"

// spoil lets an update of a spoiled item reach the store, which can't perform it.
func (s *sim) spoil(a *landing, w ratelimit.Write) {
	attrs := slices.Sorted(w.Update.Attributes)
	if len(attrs) == 0 {
		s.fail("%s: an update counts nothing", a.op.name)
		return
	}
	if !slices.Contains(attrs, s.unread[w.Key]) {
		s.unread[w.Key] = attrs[s.random.IntN(len(attrs))]
	}
	s.showSpoiled(a, w.Key)
}

// showSpoiled shows a spoiled item to an attempt.
func (s *sim) showSpoiled(a *landing, k ratelimit.Key) {
	if attr := s.unread[k]; attr != "" {
		a.item.Unread = []string{attr}
	}
}

// judgeSpoiled judges a decision about a spoiled item. It asks the store for at
// most two answers. A check that got one ends with the reason, or is decided from
// memory because of it.
func (l *ledger) judgeSpoiled(o *op, d ratelimit.Decision, err error) {
	if o.answers > 2 {
		l.sim.fail("%s: the item is unreadable, and the store answers %d times, want at most 2", o.name, o.answers)
	}
	if o.kind != ratelimit.Check || o.last == nil {
		return
	}
	if err == nil && d.Outage != nil {
		err = d.Outage
	}
	if e, ok := errors.AsType[*ratelimit.StoreError](err); !ok || e.Failure != ratelimit.Unreadable {
		l.sim.fail("%s: %s, error %v, want an error that says that the item is unreadable", o.name, d.Reason, err)
	}
	l.sim.stats["decisions about an item that can't be read"]++
}

// misfits returns limits that can't share the items of p. Each has one limit more
// or fewer, or one of its limits has another name, another kind, another window or
// another cost.
func misfits(p policy.Policy) (list []string) {
	rates := p.Rates()
	parts := texts(rates)
	with := func(i int, r policy.Rate) {
		changed := slices.Clone(parts)
		changed[i] = r.String()
		list = append(list, strings.Join(changed, ", "))
	}
	for i, r := range rates {
		for _, k := range policy.Kinds() {
			other := policy.Rate{Name: r.Name, Kind: k.Name, Limit: r.Limit, Window: r.Window}
			if k.Name == "lockout" {
				other.Lock, other.MaxLock = r.Window, 2*r.Window
			}
			if k.Name != r.Kind {
				with(i, other)
			}
		}
		if longer := r; r.Kind != "bucket" { // whose pace may change
			longer.Window, longer.Unit = 2*longer.Window, ""
			with(i, longer)
		}
		maxed := r
		if maxed.Max = r.Limit; r.Max == 0 {
			with(i, maxed)
		}
		dearer := r
		dearer.Cost = oracle.Cost(r) + 1
		with(i, dearer)
	}
	if !p.Named() {
		return append(list, "a: "+parts[0]+", b: 1000/7s")
	}
	renamed := rates[0]
	renamed.Name = "other"
	with(0, renamed)
	for _, fewerOrMore := range [][]string{parts[1:], parts[:len(parts)-1], append(slices.Clip(parts), "other: 1000/7s")} {
		list = append(list, strings.Join(fewerOrMore, ", "))
	}
	return append(list, strings.TrimPrefix(parts[0], rates[0].Name+": "))
}

// tryMisfits lets an operator try each misfit as a live limit, and as the limit of
// a tier in the code. Both refuse it, and say why.
func (s *sim) tryMisfits() {
	tier := []string{"", premium}[s.random.IntN(2)]
	a := s.anActivity()
	s.tryForbidden(a)
	for _, text := range misfits(a.Limit) {
		if _, err := policy.Parse(text); err != nil {
			continue // nobody can write such a limit
		}
		err := liveedit.Edit(context.Background(), &s.settings, []limits.Guard{s.guard()}, liveedit.Change{}, func(l liveedit.Draft) (liveedit.Draft, error) {
			return l.Set(a.Name, tier, text, ""), nil
		})
		s.refused("live limit", text, a, err)
		with := onPage(a)
		with.Tiers = guards.Tiers{premium: guards.Limit(text)}
		s.refused("tier", text, a, guards.Validate([]guards.Guard{{Name: "g", Message: "m", Activities: []guards.Activity{with}}}))
		s.stats["limits refused, because they can't share a count"]++
	}
}

// refused requires that a misfit is refused because it can't share a count.
func (s *sim) refused(as, text string, a limits.Activity, err error) {
	if err == nil || !strings.Contains(err.Error(), "share") {
		s.fail("the %s %s beside %s: %v, want an error that says that they share a count", as, text, a.Limit, err)
	}
}
