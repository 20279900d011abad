package ratelimit

import (
	"cmp"
	"slices"

	"github.com/cric-talk/guards/internal/policy"
)

// A tally adds up the decisions about the parts of an action. The first part that refuses is
// why all are refused. The parts after it only have figures.
type tally struct {
	Decision

	refused  int   // the limit in Each that refused first; -1: none has
	tightest int   // the limit in Each that restricts the caller most; -1: there is none yet
	at       int64 // the receipt of all parts so far; -1: none has one yet; 0: they have different ones
}

// add adds the decision about p. The zero Decision: p was not asked.
func (t *tally) add(p Part, d Decision) {
	t.Requests += d.Requests
	if d.Reason == "" {
		return
	}
	name := func(limit string) string { return policy.FullName(p.Activity, p.Subject, limit) }
	first := len(t.Each)
	for _, r := range d.Limits() {
		if t.tightest < 0 || r.Binds(t.Each[t.tightest]) {
			t.tightest = len(t.Each)
		}
		r.Name = name(r.Name)
		t.Each = append(t.Each, r)
	}
	switch {
	case !t.Allowed:
	case !d.Allowed:
		t.Allowed, t.Reason, t.LimitedBy, t.Granted = false, d.Reason, name(d.Name), d.Granted
		t.refused = first + slices.IndexFunc(d.Limits(), func(r policy.Reading) bool { return r.Name == d.Name })
	case first == 0:
		t.Reason, t.Granted = d.Reason, d.Granted
	case t.Reason == Duplicate: // only if all are
		t.Reason = d.Reason
	}
	switch {
	case d.Outage != nil && !p.Policy.HasLog(): // the receipt is about what the table has counted, and slots need one
	case d.Leased, d.Acquired: // the receipt is about the other parts
		t.Leased, t.Acquired = t.Leased || d.Leased, t.Acquired || d.Acquired
	case t.at < 0:
		t.at = d.At
	case t.at != d.At:
		t.at = 0
	}
	t.Outage = cmp.Or(d.Outage, t.Outage)
}

// total returns the decision about all parts. Its figures are those of the limit that refused,
// or with tightest, or if none refused, of the one that restricts the caller most.
func total(parts []Part, members []member, tightest bool) Decision {
	t := tally{Decision: Decision{Allowed: true}, refused: -1, tightest: -1, at: -1}
	for i, p := range parts {
		t.add(p, members[i].decision)
	}
	if t.Outage != nil {
		t.Reason = Unavailable
	}
	if t.At = max(0, t.at); !t.Allowed {
		t.At = 0
		for i := range t.Each { // what the parts before the refusal have crossed
			t.Each[i].Crossed = 0
		}
	}
	binding := t.refused
	if tightest || binding < 0 {
		binding = t.tightest
	}
	if binding >= 0 {
		t.ByLimit(binding)
	}
	return t.Decision
}
