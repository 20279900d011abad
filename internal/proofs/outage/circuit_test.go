package outage_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"
)

// The contract's numbers (section 5).
const (
	timeout    = time.Second // DECISION_TIMEOUT
	probeEvery = 5 * time.Second
	maxProbe   = 250 * time.Millisecond
)

// A record is one decision, as its caller saw it.
type record struct {
	user       string
	start, end time.Time
	requests   int
	outage     bool // the table did not decide
}

func (r record) wait() time.Duration { return r.end.Sub(r.start) }

// A circuit follows the decisions of one circuit breaker, in virtual time, and
// holds them to the contract. It knows only what callers see.
type circuit struct {
	report func(format string, args ...any)
	back   time.Time // when the table came back; zero: not known

	open     bool
	opened   time.Time // when the first decision failed
	closes   time.Time // when a probe was answered
	probed   time.Time // when the last probe began
	earliest time.Time // no probe may begin before
	latest   time.Time // a decision that begins at this time or later has to be a probe

	openers, probes int
	waited          time.Duration // in probes
}

// follow takes the decisions of one circuit breaker, sorted by when they began.
// Of two that began at once, the one that asked the table comes first.
func (c *circuit) follow(records []record) {
	records = slices.Clone(records)
	slices.SortStableFunc(records, func(a, b record) int {
		return cmp.Or(a.start.Compare(b.start), cmp.Compare(b.requests, a.requests))
	})
	for _, r := range records {
		c.next(r)
	}
}

func (c *circuit) next(r record) {
	if c.open && !c.closes.IsZero() && !r.start.Before(c.closes) {
		c.open, c.closes = false, time.Time{}
	}
	late := !c.back.IsZero() && !r.start.Before(c.back) && c.back.Sub(c.probed) < timeout
	if c.open && r.requests > 0 && late && r.start.Before(c.earliest) { // this one is no probe
		c.open = false // a probe goes on after its decision, so the last one was answered late
	}
	switch {
	case r.requests == 0 && !r.outage: // the memory refused before it looked at the circuit
	case !c.open && r.requests == 0:
		c.report("at %s: not asked, although the circuit is closed", clock(r.start))
	case !c.open && r.outage:
		c.open, c.opened = true, r.end
		c.fails(r)
	case c.open && r.start.Before(c.opened): // it began before the circuit opened
		if r.outage {
			c.fails(r)
		}
	case c.open && r.requests > 0 && !c.closes.IsZero(): // the probe is answered, and its decision has not ended
	case c.open && r.requests > 0:
		c.probe(r)
	case c.open:
		if r.wait() > 0 {
			c.report("at %s: a decision from memory took %v", clock(r.start), r.wait())
		}
		if !r.start.Before(c.latest) {
			c.report("at %s: no probe, although the last one ended at %s", clock(r.start), clock(c.latest.Add(-probeEvery)))
		}
	}
}

// fails notes a decision that opened the circuit.
func (c *circuit) fails(r record) {
	if r.end.Before(c.opened) {
		c.opened = r.end
	}
	c.openers++
	c.earliest = c.opened.Add(probeEvery)
	if latest := r.end.Add(probeEvery); latest.After(c.latest) { // the last one to fail need not be the last one to begin
		c.latest = latest
	}
	if r.wait() > timeout {
		c.report("at %s: a decision took %v, want at most %v", clock(r.start), r.wait(), timeout)
	}
}

// probe notes a decision that asked the table while the circuit was open.
func (c *circuit) probe(r record) {
	c.probes++
	c.waited += r.wait()
	if r.start.Before(c.earliest) {
		c.report("at %s: a probe, want none before %s", clock(r.start), clock(c.earliest))
	}
	if r.wait() > maxProbe {
		c.report("at %s: a probe took %v, want at most %v", clock(r.start), r.wait(), maxProbe)
	}
	c.probed, c.earliest, c.latest = r.start, r.start.Add(probeEvery), r.end.Add(probeEvery)
	if !r.outage {
		c.closes = r.end
	}
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// reportTo returns a report that fails the test, with a name. It shows the first
// ten problems.
func reportTo(t testing.TB, name string) func(string, ...any) {
	t.Helper()
	n := 0
	return func(format string, args ...any) {
		if n++; n <= 10 {
			t.Errorf("%s: %s", name, fmt.Sprintf(format, args...))
		}
	}
}
