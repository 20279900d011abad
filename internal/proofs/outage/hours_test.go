package outage_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards/internal/proofs/prove"
)

// A failure is one way for the table to fail.
type failure struct {
	name    string
	way     way
	callers int
	eachKey bool // each key has a circuit breaker of its own
	lands   bool // the table performs what it is sent, and nobody learns it
}

var failures = []failure{
	{"refused connections", refused, 1, false, false},
	{"black hole", blackHole, 1, false, false},
	{"black hole, 8 callers at once", blackHole, 8, false, false},
	{"slow: an answer takes 3 s", slow, 1, false, true},
	{"access denied", denied, 1, false, false},
	{"throttled", throttled, 1, true, false},
	{"throttled, 8 callers at once", throttled, 8, true, false},
}

// An outage begins after five minutes of ordinary traffic and lasts three hours.
// No decision waits but the ones that open the circuit breaker and a probe every
// 5 s. Each instance stays within every limit. Within 5 s of its return, the
// table decides again.
func hours(t *testing.T, figures *figures) {
	alone := map[string]map[string]peakOf{} // by the failure
	for _, f := range failures {
		prove.Progress("outage: three hours: %s", f.name)
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, f.name, prove.Bound(1, 3), f.callers, texts()...)
			if prove.Long() && f.callers > 1 {
				w.instances = w.instances[:1] // has as many callers as all instances elsewhere
			}
			w.run(prove.Bound(30*time.Second, 5*time.Minute), w.users[:len(w.users)/2]) // the other half come only in the outage
			w.use(f.way)
			began := time.Now()
			w.run(prove.Bound(time.Minute, 3*time.Hour), w.users)
			w.keepInAll()
			w.use(healthy)
			ended := time.Now()
			w.run(prove.Bound(30*time.Second, time.Minute), w.users)
			time.Sleep(time.Minute) // slow requests arrive
			w.keepPromise()
			figures.hours = append(figures.hours, w.summary(f, began, ended).cells(f.name))
			alone[f.name] = w.eachAlone()
		})
	}
	for _, limit := range slices.Sorted(maps.Keys(alone[failures[0].name])) {
		row := []string{limit}
		for _, f := range failures {
			row = append(row, alone[f.name][limit].String())
		}
		figures.alone = append(figures.alone, row)
	}
}

// A summary is what an outage cost those who waited for decisions.
type summary struct {
	decisions, requests  int
	byTable              int           // decisions that the table made
	waited, worst, later time.Duration // later: the worst wait, without the decisions that opened a circuit
	back                 time.Duration // from the table's return to its first decision, the worst case
	openers, probes      int
	probing              float64 // the largest part of the outage that one circuit spent on probes
}

// summary holds every circuit breaker to the contract and adds up what the
// decisions of the outage cost.
func (w *world) summary(f failure, began, ended time.Time) (s summary) {
	for i, in := range w.instances {
		for key, records := range f.split(in.records) {
			name := fmt.Sprintf("%s: instance %d %s", w.name, i, key)
			c := circuit{report: reportTo(w.t, name), back: ended}
			c.follow(records)
			part := c.waited.Seconds() / ended.Sub(began).Seconds()
			if c.openers > f.callers || c.openers == 0 || c.probes == 0 || part > 0.05 {
				w.t.Errorf("%s: %d decisions opened the circuit and %d probes took %.1f %% of the time, want 1 to %d and at most 5 %%",
					name, c.openers, c.probes, 100*part, f.callers)
			}
			s.openers, s.probes, s.probing = s.openers+c.openers, s.probes+c.probes, max(s.probing, part)
			s.back = max(s.back, w.back(records, ended))
		}
		for _, r := range in.records {
			if r.start.Before(began) || !r.start.Before(ended) {
				continue
			}
			s.add(r)
			if r.requests > 0 && r.wait() <= maxProbe {
				s.later = max(s.later, r.wait())
			}
		}
	}
	return s
}

// split returns the decisions of each circuit breaker: of the whole instance, or
// of each user.
func (f failure) split(records []record) map[string][]record {
	circuits := map[string][]record{}
	for _, r := range records {
		key := ""
		if f.eachKey {
			key = r.user
		}
		circuits[key] = append(circuits[key], r)
	}
	return circuits
}

// back returns how long after its return the table decided, of the decisions of
// one circuit. From then on it has to decide all.
func (w *world) back(records []record, ended time.Time) time.Duration {
	var first time.Time
	slices.SortStableFunc(records, func(a, b record) int { return cmp.Compare(a.start.UnixNano(), b.start.UnixNano()) })
	for _, r := range records {
		switch {
		case r.start.Before(ended):
		case first.IsZero() && r.requests > 0 && !r.outage:
			first = r.end
		case !first.IsZero() && r.start.After(first) && r.outage:
			w.t.Errorf("%s: a decision at %s is from memory, although the table decided at %s", w.name, clock(r.start), clock(first))
		}
	}
	if first.IsZero() {
		w.t.Errorf("%s: the table never decides again", w.name)
		return 0
	}
	return first.Sub(ended)
}

var hoursHead = []string{
	"the table", "decisions in the outage", "mean wait", "the first decision waits", "a probe waits at most",
	"requests per decision", "time spent on probes", "table decides again after",
}

func (s summary) cells(name string) []string {
	return []string{
		name, fmt.Sprint(s.decisions), duration(s.waited / time.Duration(max(1, s.decisions))), duration(s.worst), duration(s.later),
		fmt.Sprintf("%.3f", float64(s.requests)/float64(max(1, s.decisions))), fmt.Sprintf("%.1f %%", 100*s.probing), duration(s.back),
	}
}

// duration returns d with three digits.
func duration(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d >= 10*time.Millisecond:
		return fmt.Sprintf("%.0f ms", d.Seconds()*1000)
	}
	return fmt.Sprintf("%.2f ms", d.Seconds()*1000)
}
