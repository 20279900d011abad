package simulate_test

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/proofs/oracle"
	"github.com/cric-talk/guards/internal/ratelimit"
)

const (
	locks      = "attempts that locked"
	clears     = "releases with clear, which ended the series of a lockout"
	bareClears = "of these, that had nothing to give back"
	splits     = "live limits refused, because the group has another lockout"
	forbidden  = "limits refused, because a lockout can't have a cost, take in advance, or stand beside a reservoir"
)

// lockouts returns the lockouts among the limits of p.
func lockouts(p policy.Policy) []policy.Rate {
	return slices.DeleteFunc(p.Rates(), func(r policy.Rate) bool { return r.Kind != "lockout" })
}

// drawLocks draws for how long a lockout locks, as its text says it.
func (s *sim) drawLocks(hold bool) string {
	locks := []string{"1s", "2s", "5s", "20s", "1m", "4m"}
	if hold {
		locks = []string{"10s", "5m", "20m", "1h"}
	}
	i := s.random.IntN(len(locks))
	text := " for " + locks[i]
	if s.chance(2) {
		text += " to " + locks[i+s.random.IntN(len(locks)-i)]
	}
	return text
}

// alike gives the limits of a group's second activity the lockouts that the first one has
// under the same names, tier by tier.
func alike(p policy.Policy, tiers limits.Tiers, other limits.Subject) {
	for _, r := range lockouts(p) {
		want := other.For(premium).Part(r.Name)
		mine, ok := tiers[premium]
		if want == "" || !ok && want == p.Part(r.Name) {
			continue
		}
		if !ok {
			mine = p
		}
		tiers[premium] = policy.Must(mine.Replace(r.Name, want))
	}
}

// ofTheGroup returns the limits of to with the lockouts that the group of a has now, or as
// they are.
func (s *sim) ofTheGroup(a limits.Activity, part limits.Subject, tier string, to policy.Policy, set map[string]string) (own policy.Policy, same bool) {
	own = to
	for _, r := range lockouts(to) {
		if a.Group == "" {
			break
		}
		own = policy.Must(own.Replace(r.Name, groupLockout(a, part, tier, r.Name, set)))
	}
	return own, own.Equal(to)
}

// groupLockout returns the text of a lockout that the activities of a group share, without
// its name.
func groupLockout(a limits.Activity, part limits.Subject, tier, name string, set map[string]string) string {
	if _, ok := part.Tiers[tier]; !ok {
		tier = ""
	}
	live := strings.TrimPrefix(set[of(ofGroup(a, part.Name, name), "", tier)], name+": ")
	return cmp.Or(live, part.For(tier).Part(name))
}

// refusesSplit requires that an edit is refused, because a group would have two lockouts of one name.
func (s *sim) refusesSplit(text string, edit func(liveedit.Draft) (liveedit.Draft, error)) {
	err := liveedit.Edit(context.Background(), &s.settings, []limits.Guard{s.guard()}, liveedit.Change{}, edit)
	if !errors.Is(err, live.ErrGroupLockout) {
		s.fail("%s is set for one activity of a group that has another lockout: %v", text, err)
	}
	s.stats[splits]++
}

// tryForbidden lets an operator try what a lockout can't have, or stand beside. All of it is refused.
func (s *sim) tryForbidden(a limits.Activity) {
	for _, r := range lockouts(a.Limit) {
		beside := "z: reservoir 5/10s, " + r.String()
		if r.Name == "" {
			beside = "z: reservoir 5/10s, a: " + r.String()
		}
		for _, text := range []string{r.String() + " cost 2", r.String() + " prepaid", beside} {
			err := liveedit.Edit(context.Background(), &s.settings, []limits.Guard{s.guard()}, liveedit.Change{}, func(l liveedit.Draft) (liveedit.Draft, error) {
				return l.Set(a.Name, "", text, ""), nil
			})
			if _, parsed := policy.Parse(text); err == nil || parsed == nil {
				s.fail("%s is accepted", text)
			}
			s.stats[forbidden]++
		}
	}
}

// sendClear lets a client end the series of its user's lockouts, without a check of before. Sometimes
// it sends a copy, too.
func (s *sim) sendClear(in *instance, c call) {
	c.Count, c.Partial, c.Clear = 1, false, true
	c.At = in.millis() - s.upTo(10_000)
	in.send(ratelimit.Release, c, math.MaxInt64, nil)
	if s.chance(2) {
		s.at(s.now+s.upTo(25_000), func() { s.any().send(ratelimit.Release, c, math.MaxInt64, nil) })
	}
}

// cleared judges a release with clear that the store has performed. It ends the series of
// each lockout, and gives back what it can. Otherwise it only keeps its id.
func (l *ledger) cleared(u *user, a *landing, w ratelimit.Write, before ratelimit.Item) {
	s, o := l.sim, a.op
	x, _ := o.presents()
	name := receipt(o.id, o.request.At)
	log, rate := u.Slots(o.terms.numbers)
	if w.Drop.Set != "" || log != nil && log.Counted(x, rate, before.State, a.item.State) < 0 {
		l.gaveBack(u, a, w, before)
	} else {
		ahead := o.request.At > o.in.millis()+s.apart // no check has such a receipt, and its id can be forgotten early
		if back := u.given[name]; back != nil && !back.gone && !ahead && within(w.Now, back.now, 18_000) {
			s.wrong("%s clears twice", o.name)
		}
		r := u.records[counter{o.id, w.Key.Window}]
		if u.mustGiveBack(r, o, w.Now) && u.changed < o.began {
			s.wrong("%s clears, and gives nothing back: the store has %s", o.name, r)
		}
		a.check, a.bare = u.checkOf(r, o.id, x, w.Now), true
		u.given[receipt(o.id, x)] = &release{now: w.Now, check: cmp.Or(a.check, x)}
		l.keeps(o, before, a.item, false)
		u.makeRoom(s.now, o)
		s.stats[bareClears]++
	}
	u.given[name] = u.given[receipt(o.id, x)]
	if !u.Unlock(o.terms.numbers) {
		s.wrong("%s clears, and has no lockout", o.name)
	}
	s.stats[clears]++
	s.had(o.request.Activity, "clear")
	s.line("%s ends the series of its lockouts", o.name)
}

// judgeLocks requires that the attempt that locks is told so, and no other one. Each figure in
// want is of the item right after that attempt was counted.
func (l *ledger) judgeLocks(o *op, d ratelimit.Decision, want []oracle.Figure) {
	each := d.Each
	if !o.terms.Named() {
		each = []policy.Reading{d.Reading}
	}
	for i, r := range each {
		if i >= len(want) || o.terms.numbers.Rates[i].Kind != "lockout" {
			continue
		}
		if (r.Crossed != 0) != want[i].Locked || r.Crossed != 0 && r.Crossed != 100 {
			l.sim.wrong("%s: it has crossed %d of %s, and locks: %v", o.name, r.Crossed, o.terms.text, want[i].Locked)
		}
		if want[i].Locked {
			l.sim.stats[locks]++
			l.sim.had(o.request.Activity, "lock")
		}
	}
}
