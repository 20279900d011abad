package simulate_test

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/cric-talk/guards/internal/proofs/findings"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// stats count what happened in runs.
type stats struct {
	seeds      int
	decisions  map[verb]int
	reasons    map[ratelimit.Reason]int // of answers, without refusals repeated from memory
	attempts   int
	faults     [faults]int
	writes     int
	renewed    int // of these, renewals
	grouped    int // of these, to an item in which two activities count
	held       int // releases that gave something back after more than 28 s, because of Hold
	errors     int // decisions that ended with an error, because they were not to be decided from memory
	alone      int
	repeated   int // refusals from memory
	waits      int // waits that a copy of the state was asked about
	left       int // callers that gave up
	edits      int // changes of the live limits
	steps      int // clocks that stepped
	deploys    int // that change windows
	swept      int64
	misfits    int // limits that can't share a count, and were refused
	oddCounts  int // releases of a count that no release may have
	unreadable int // decisions about an item that can't be read
	old        int // runs that begin before 2020
	far        int // runs with clocks that differ by more than 2 s

	beyond       int   // what was wrong in such runs
	oldReceipts  int   // releases by an older receipt of a repeated id
	together     int   // decisions that count in several items
	givenBack    int   // counts that such a decision gave back, because a later item refused
	killed       int   // instances
	visits       int   // writes that took leases
	shared       int   // actions that a subject's lease gave
	leased       int   // checks decided from a lease
	lost         int64 // actions of leases that nobody got
	frozen       int   // instances
	lives        int   // releases by the receipt of an earlier count of a renewed id
	afterRefusal int   // attempts that arrived, and were counted, after their request was refused
}

func newStats() stats {
	return stats{decisions: map[verb]int{}, reasons: map[ratelimit.Reason]int{}}
}

func (s *stats) add(o stats) {
	for v, n := range o.decisions {
		s.decisions[v] += n
	}
	for r, n := range o.reasons {
		s.reasons[r] += n
	}
	for f, n := range o.faults {
		s.faults[f] += n
	}
	s.seeds += o.seeds
	s.attempts += o.attempts
	s.writes += o.writes
	s.renewed += o.renewed
	s.grouped += o.grouped
	s.held += o.held
	s.errors += o.errors
	s.alone += o.alone
	s.repeated += o.repeated
	s.waits += o.waits
	s.left += o.left
	s.edits += o.edits
	s.deploys += o.deploys
	s.steps += o.steps
	s.swept += o.swept
	s.misfits += o.misfits
	s.oddCounts += o.oddCounts
	s.unreadable += o.unreadable
	s.far += o.far
	s.old += o.old
	s.beyond += o.beyond
	s.oldReceipts += o.oldReceipts
	s.lives += o.lives
	s.visits += o.visits
	s.leased += o.leased
	s.shared += o.shared
	s.lost += o.lost
	s.frozen += o.frozen
	s.together += o.together
	s.givenBack += o.givenBack
	s.killed += o.killed
	s.afterRefusal += o.afterRefusal
}

// complete fails the test if something that runs are about never happened.
func (s *stats) complete(t *testing.T) {
	t.Helper()
	seen := map[string]int{
		"run with clocks far apart": s.far, "performed write": s.writes, "performed renewal": s.renewed, "write to the item of a group": s.grouped, "release after minutes": s.held, "decision in several items": s.together, "count given back by a refusal": s.givenBack, "killed instance": s.killed, "visit for a lease": s.visits, "check decided from a lease": s.leased, "action from the lease of a room": s.shared, "lost part of a lease": int(s.lost), "frozen instance": s.frozen, "decision from memory": s.alone,
		"refusal from memory": s.repeated, "wait that a copy of the state was asked about": s.waits, "caller who gives up": s.left,
		"change of live limits": s.edits, "deploy": s.deploys, "clock that steps": s.steps, "item that cleanup deletes": int(s.swept),
		"run before 2020": s.old, "limit that is refused": s.misfits, "release that is refused": s.oddCounts, "decision about an unreadable item": s.unreadable,
	}
	for _, v := range []verb{check, status, release, renew, reset} {
		seen[string(v)] = s.decisions[v]
	}
	for _, r := range []ratelimit.Reason{ratelimit.OK, ratelimit.Limited, ratelimit.Delayed, ratelimit.Duplicate, ratelimit.Expired, ratelimit.Unavailable} {
		seen["answer "+string(r)] = s.reasons[r]
	}
	for f, name := range faultNames {
		seen["fault "+name] = s.faults[f]
	}
	for what, n := range seen {
		if n == 0 {
			t.Errorf("no run has a %s", what)
		}
	}
}

// figures returns what the runs are proof of.
func (s *stats) figures(subjects int) (list []findings.Figure) {
	add := func(what string, n int) { list = append(list, findings.Figure{What: what, Value: strconv.Itoa(n)}) }
	add("policies (each kind, each pair of kinds, all kinds together, groups of two activities, Hold, several items, prepaid limits)", subjects)
	add("runs", s.seeds)
	decisions := s.repeated + s.alone + s.errors
	for _, n := range s.decisions {
		decisions += n
	}
	add("decisions", decisions-s.repeated-s.alone-s.errors)
	for _, v := range slices.Sorted(maps.Keys(s.decisions)) {
		add("of these, "+string(v)+" requests", s.decisions[v])
	}
	add("decided from memory in an outage", s.alone)
	add("refusals repeated from memory", s.repeated)
	add("callers who gave up", s.left)
	add("attempts", s.attempts)
	for f, name := range faultNames {
		if fault(f) != none {
			add("of these, "+name, s.faults[f])
		}
	}
	add("writes that the store performed", s.writes)
	add("of these, renewals", s.renewed)
	add("of these, to the item of a group", s.grouped)
	add("decisions that count in several items, such as that of a room", s.together)
	add("counts that they gave back, because a later item refused", s.givenBack)
	add("instances killed", s.killed)
	add("instances frozen", s.frozen)
	add("writes that took a lease of a prepaid limit", s.visits)
	add("checks decided from a lease", s.leased)
	add("actions that a room's lease gave", s.shared)
	add("actions of leases that nobody got", int(s.lost))
	add("releases that gave something back after more than 28 s, because of Hold", s.held)
	for _, r := range slices.Sorted(maps.Keys(s.reasons)) {
		add("answers "+string(r), s.reasons[r])
	}
	add("waits that a copy of the state was asked about, at the time and a millisecond earlier", s.waits)
	add("changes of the live limits", s.edits)
	add("deploys that change windows", s.deploys)
	add("limits refused, because they can't share a count", s.misfits)
	add("releases refused, because of their count", s.oddCounts)
	add("decisions about an item that can't be read", s.unreadable)
	add("clocks that stepped", s.steps)
	add("runs that begin before 2020", s.old)
	add("expired items deleted", int(s.swept))
	add("attempts counted after their request was refused, because they arrived late", s.afterRefusal)
	add("releases by an older receipt of a repeated id", s.oldReceipts)
	add("of these, by that of an earlier count of a renewed id", s.lives)
	add("violations", 0)
	add("runs with clocks up to 90 s apart, for which nothing is promised", s.far)
	add("broken promises in those runs", s.beyond)
	return list
}
