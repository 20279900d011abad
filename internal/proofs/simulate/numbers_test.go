package simulate_test

import (
	"slices"
	"strings"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/proofs/oracle"
	"github.com/cric-talk/guards/internal/ratelimit"
)

const (
	numbered = "decisions by a number of the caller"
	tooLow   = "requests refused without an attempt, because their number is too low"
	byGrant  = "decisions by a granted tier, which wins over the caller's tier and number"
)

// limitName returns the name of a limit in the answers of an activity.
func limitName(a limits.Activity, subject, limit string) string {
	switch {
	case subject == "" && limit == "":
		return a.Name
	case subject == "":
		return limit
	}
	return strings.TrimSuffix(subject+"."+limit, ".")
}

// drawNumbers draws the numbers of a caller for some of the limits that take one, even for
// those of a subject that the caller leaves out.
func (s *sim) drawNumbers(a limits.Activity) map[string]int64 {
	numbers := map[string]int64{}
	for _, part := range a.Parts() {
		rates := part.Limit.Rates()
		for _, r := range rates {
			if r.Max == 0 || s.chance(3) {
				continue
			}
			n := s.drawNumber(r)
			if part.Name == "" && len(rates) == 1 && s.chance(2) {
				return map[string]int64{"": n}
			}
			numbers[limitName(a, part.Name, r.Name)] = n
		}
	}
	return numbers
}

// drawNumber draws a number: mostly near the limit, sometimes up to max or above it, and
// sometimes one that is too low.
func (s *sim) drawNumber(r policy.Rate) int64 {
	switch s.random.IntN(12) {
	case 0:
		return s.upTo(oracle.Cost(r))
	case 1:
		return r.Max + s.upTo(1)*s.upTo(1_000_000-r.Max)
	case 2, 3, 4:
		return s.upTo(r.Max + 2)
	}
	return min(oracle.Cost(r)+s.upTo(2*r.Limit), 1_000_000)
}

// withOtherNumbers returns c, in one of three cases with other numbers or without any.
func (s *sim) withOtherNumbers(c call) call {
	if a := s.named(c.Activity); takesNumbers(a) && s.chance(3) {
		c.numbers = s.drawNumbers(a)
	}
	return c
}

// takesNumbers reports whether a limit of an activity has a max.
func takesNumbers(a limits.Activity) bool {
	return slices.ContainsFunc(a.Parts(), func(part limits.Subject) bool {
		return slices.ContainsFunc(part.Limit.Rates(), func(r policy.Rate) bool { return r.Max > 0 })
	})
}

// mostOf returns how many actions c can ask for by its numbers for the user's limits.
func (s *sim) mostOf(c call, a limits.Activity) int64 {
	_, most := c.numbered(a, "", a.Limit.String())
	return most
}

// number returns the number of c for a limit.
func (c call) number(a limits.Activity, subject string, r policy.Rate) (int64, bool) {
	if n, ok := c.numbers[""]; ok && subject == "" {
		return n, r.Max > 0
	}
	n, ok := c.numbers[limitName(a, subject, r.Name)]
	return n, ok && r.Max > 0
}

// numbered returns the text of the limits of the user or of a subject with the numbers of c,
// and the most actions at once that these numbers admit. Limits of earlier code can be no text.
func (c call) numbered(a limits.Activity, subject, text string) (with string, most int64) {
	p, err := policy.Parse(text)
	if err != nil {
		return text, 0
	}
	rates := p.Rates()
	for i, r := range rates {
		n, ok := c.number(a, subject, r)
		if !ok {
			continue
		}
		numbered, units := oracle.Numbered(r, n)
		if rates[i] = numbered; most == 0 || units/oracle.Cost(r) < most {
			most = units / oracle.Cost(r)
		}
	}
	return strings.Join(texts(rates), ", "), most
}

// refusing returns the limit whose number has no room for c, with the name that it has in
// its part.
func (c call) refusing(a limits.Activity, subject, text string, n int64) (limit string, refuses bool) {
	for _, r := range policy.Must(text).Rates() {
		if number, ok := c.number(a, subject, r); ok {
			if _, units := oracle.Numbered(r, number); units < n*oracle.Cost(r) {
				return r.Name, true
			}
		}
	}
	return "", false
}

// refused reports whether a number of c is too low, as a guard finds it. Then a check or a
// status ends here, and the client perhaps tries another number.
func (in *instance) refused(v ratelimit.Op, c call, t live.Terms, now []inForce) bool {
	s, n := in.sim, c.Count
	if c.Partial || byReceipt(v) {
		n = 1
	}
	low := false
	for i, part := range slices.Collect(t.Parts) {
		limit, refuses := part.Limit.TooLow(n)
		want, wanted := "", false
		if !now[i].granted {
			want, wanted = c.refusing(s.named(c.Activity), part.Name, now[i].text, n)
		}
		if limit != want || refuses != wanted {
			s.fail("%s %s of %d with the numbers %v: the limit %q of %s has no room: %v, want %q, %v", v, c.ID, c.Count, c.numbers, limit, part.Limit, refuses, want, wanted)
		}
		low = low || refuses
	}
	s.decidesBy(c, now)
	if !low || v != ratelimit.Check && v != ratelimit.Status {
		return false
	}
	s.stats[tooLow]++
	s.had(c.Activity, "number too low")
	s.line("%s %s of %d is refused by the numbers %v", v, c.ID, c.Count, c.numbers)
	if c.numbers = s.drawNumbers(s.named(c.Activity)); s.chance(2) {
		s.at(s.now+s.upTo(3000), func() { s.ask(s.any(), c) })
	}
	return true
}

// withoutPlaces requires that limits without places in later windows are the same otherwise, with
// the numbers of the caller.
func (s *sim) withoutPlaces(p policy.Policy) {
	want := p.Rates()
	for i := range want {
		want[i].Ahead = 0
	}
	if got := p.AtOnce().Rates(); !slices.Equal(got, want) {
		s.fail("%s without places is %s", p, p.AtOnce())
	}
}

// decidesBy notes what a decision goes by: a number of c, or a granted tier.
func (s *sim) decidesBy(c call, now []inForce) {
	for _, mine := range now {
		if mine.granted {
			s.stats[byGrant]++
			s.had(c.Activity, "granted tier")
		}
	}
	if len(c.numbers) > 0 {
		s.stats[numbered]++
		s.had(c.Activity, "number")
	}
}
