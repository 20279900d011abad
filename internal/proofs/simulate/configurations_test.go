package simulate_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/proofs/findings"
	"github.com/cric-talk/guards/internal/proofs/oracle"
	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/testkit"
)

// configurations are runs whose whole page of limits is drawn. A page has one or two
// activities, perhaps in a group. Each has one to three limits of any kinds, with or
// without costs, calendars, tiers, subjects, Hold and prepaid limits.
var configurations = subject{name: "random configurations", draw: draw}

// zones are places whose clocks change at night, at midnight, by half an hour, never, or
// have once been set back over midnight or skipped a day.
var zones = []string{
	"UTC", "Europe/Berlin", "America/Santiago", "America/Havana", "Asia/Beirut", "Africa/Cairo", "Australia/Lord_Howe",
	"Asia/Kathmandu", "Atlantic/Azores", "Antarctica/Casey", "Pacific/Apia", "America/New_York",
}

// others are the names of subjects, from the narrowest to the widest.
var others = []string{"room", "tenant"}

// invalid counts pages that were drawn and are not valid.
const invalid = "pages that were drawn and are not valid"

// draw draws a page of limits until one is valid.
func draw(s *sim) []limits.Activity {
	s.stats["of these, with a page of limits that was drawn"] = 1
	for {
		linked, err := link(s.page())
		if err == nil {
			return linked
		}
		s.stats[invalid]++
	}
}

// page draws a page of limits, which can be invalid.
func (s *sim) page() []limits.Activity {
	a := limits.Activity{Name: "act", Hold: s.chance(4)}
	two := !s.chance(3)
	grouped := two && !s.chance(5)
	if grouped {
		a.Group = "both"
	}
	a.Limit, a.Tiers = s.part(a, limits.Subject{}, 1)
	if !a.Limit.Queues() {
		for i := range s.random.IntN(3) {
			sub := limits.Subject{Name: others[i], Optional: s.chance(3)}
			sub.Limit, sub.Tiers = s.part(a, limits.Subject{}, 2)
			a.Subjects = append(a.Subjects, sub)
		}
	}
	if !two {
		return []limits.Activity{a}
	}
	b := limits.Activity{Name: "other", Group: a.Group, Hold: a.Hold != s.chance(4)}
	b.Limit, b.Tiers = s.part(b, a.Part(""), 1)
	for _, sub := range a.Subjects {
		if !b.Limit.Queues() && !s.chance(3) {
			sub.Limit, sub.Tiers = s.part(b, sub, 2)
			sub.Optional = s.chance(3)
			b.Subjects = append(b.Subjects, sub)
		}
	}
	return []limits.Activity{a, b}
}

// part draws the limits of a user or of another subject, and a tier's limits. In a group,
// it takes over some limits of another activity, with another number and another cost. A lockout
// stays as it is.
func (s *sim) part(a limits.Activity, other limits.Subject, times int64) (policy.Policy, limits.Tiers) {
	var list []string
	prepaid, names := !a.Hold && s.chance(3), strings.Split("abc", "")
	if other.Limit.Named() && a.Group != "" {
		names = strings.Split("def", "")
		for _, r := range other.Limit.Rates() {
			if s.chance(2) && (!prepaid || r.Prepaid) {
				if r.Kind == "lockout" {
					list = append(list, r.String())
					continue
				}
				r.Limit, r.Cost, r.Prepaid = r.Limit+s.upTo(r.Limit), []int64{0, r.Cost, 2, 3}[s.random.IntN(4)], prepaid
				if r.Max > 0 {
					r.Max = max(r.Limit, r.Max) + s.upTo(r.Limit)
				}
				list = append(list, r.String())
			}
		}
	}
	for range 1 + s.random.IntN(3) {
		if len(list) < 3 && (len(list) == 0 || s.chance(2)) {
			list = append(list, names[len(list)]+": "+s.rate(a.Hold, prepaid, times))
		}
	}
	if len(list) == 1 && a.Group == "" {
		list[0] = list[0][strings.Index(list[0], ": ")+2:]
	}
	p, err := policy.Parse(strings.Join(list, ", "))
	if err != nil {
		return policy.Policy{}, nil // which is invalid
	}
	tiers := limits.Tiers{}
	if choices := variations(p); s.chance(2) && len(choices) > 0 {
		tiers[premium] = choices[s.random.IntN(len(choices))]
	}
	if other.Limit.Named() && a.Group != "" {
		alike(p, tiers, other)
	}
	return p, tiers
}

// rate draws the text of a limit, times as high as usual. Windows are short, so that a run
// fills many of them, but longer with Hold.
func (s *sim) rate(hold, prepaid bool, times int64) string {
	kinds := policy.Kinds()
	kind := kinds[s.random.IntN(len(kinds))].Name
	for kind == "reservoir" && times > 1 || prepaid && !valid(kind+" 600/6s prepaid") {
		kind = kinds[s.random.IntN(len(kinds))].Name
	}
	n := times * (1 + s.upTo(11))
	switch {
	case prepaid:
		n = 101 + s.upTo(150)
	case s.chance(8):
		n = 99 + s.upTo(3)
	}
	windows := []string{"5s", "10s", "20s", "30s", "1m", "10m"}
	if hold {
		windows = []string{"20m", "30m", "1h", "2h"}
	}
	if kind == "reservoir" {
		windows = [][]string{windows, windows[len(windows)/2:], {"2s", "3s"}}[s.random.IntN(3)] // far ahead, or over soon
	}
	text := fmt.Sprintf("%s %d/%s", kind, n, windows[s.random.IntN(len(windows))])
	if kind == kinds[0].Name && s.chance(2) {
		text = fmt.Sprintf("%s %d/%s in %s", kind, n, []string{"day", "day", "week", "month"}[s.random.IntN(4)], zones[s.random.IntN(len(zones))])
	}
	if kind == "bucket" { // whose window is a multiple of its limit
		every := []int64{40, 100, 500, 1000, 6000}[s.random.IntN(5)]
		if hold {
			every *= 100
		}
		text = fmt.Sprintf("%s %d/%dms", kind, n, n*max(every, 1000/n))
	}
	for _, option := range []string{fmt.Sprint(" burst ", n/2+1+s.upTo(n)), []string{" ahead 1m", " ahead 15m"}[s.random.IntN(2)], " keep 1h", fmt.Sprint(" cost ", 2+s.upTo(n/3))} {
		if s.chance(3) && valid(text+option) {
			text += option
		}
	}
	switch most := fmt.Sprint(" max ", n+s.upTo(3*n)); {
	case prepaid:
		text += " prepaid"
	case kind == "lockout":
		text += s.drawLocks(hold)
	case valid(text+most) && s.chance(2):
		text += most
	}
	return text
}

// beginning draws when a run begins: near the border of a window, near a change of the
// clocks, or at any time.
func (s *sim) beginning() int64 {
	at, r := begin+s.random.Int64N(12*365*86_400_000), s.anyRate()
	for _, a := range s.activities {
		for _, part := range a.Parts() {
			for _, zoned := range part.Limit.Rates() {
				if zoned.Zone != "" && s.chance(2) {
					r = zoned
				}
			}
		}
	}
	zone, err := time.LoadLocation(r.Zone)
	if err != nil {
		panic(err)
	}
	if _, change := time.UnixMilli(at).In(zone).ZoneBounds(); !change.IsZero() && !s.chance(3) {
		s.had("", "clocks change")
		at = change.UnixMilli() - s.upTo(86_400_000)
	}
	if w := oracle.WindowsOf(r); s.chance(2) {
		s.had("", "border")
		at = w.Begins(w.Key(at)+1) - s.upTo(10_000)
	}
	return at
}

// Features are what an activity had in a run.
type features map[string]bool

// featuresOf returns what an activity has, and what happened to it or to the whole run.
func (s *sim) featuresOf(a limits.Activity) features {
	has := features{"group": a.Group != "", "Hold": a.Hold, "two subjects": len(a.Subjects) > 1}
	for happened := range s.happened {
		if happened.activity == "" || happened.activity == a.Name {
			has[happened.what] = true
		}
	}
	for i, part := range a.Parts() {
		has["subject"] = has["subject"] || i > 0
		has["optional subject"] = has["optional subject"] || part.Optional
		has["several limits"] = has["several limits"] || len(part.Limit.Rates()) > 1
		has["tiers"] = has["tiers"] || len(part.Tiers) > 0
		has["tiers of a subject"] = has["tiers of a subject"] || i > 0 && len(part.Tiers) > 0
		has["prepaid subject in a group"] = has["prepaid subject in a group"] || i > 0 && a.Group != "" && part.Limit.Prepaid()
		for _, r := range part.Limit.Rates() {
			kind := r.Kind
			if r.Unit != "" {
				kind = "calendar"
			}
			has[kind] = true
			has["cost"] = has["cost"] || r.Cost > 0
			has["prepaid"] = has["prepaid"] || r.Prepaid
			has["max"] = has["max"] || r.Max > 0
			has["calendar with cost and tiers"] = has["calendar with cost and tiers"] || r.Unit != "" && r.Cost > 0 && len(part.Tiers) > 0
		}
	}
	return has
}

// A pairing counts in how many runs an activity had each pair of features. The pair of a
// feature with itself counts the feature.
type pairing map[[2]string]int

func (p pairing) add(s *sim) {
	run := map[[2]string]bool{}
	for _, a := range s.activities {
		has := s.featuresOf(a)
		for x := range has {
			for y := range has {
				if x <= y && has[x] && has[y] {
					run[[2]string{x, y}] = true
				}
			}
		}
	}
	for pair := range run {
		p[pair]++
	}
}

// names returns all features that occurred.
func (p pairing) names() (list []string) {
	for pair := range p {
		if pair[0] == pair[1] {
			list = append(list, pair[0])
		}
	}
	slices.Sort(list)
	return list
}

// excluded are the pairs that the contract or the page of limits excludes, with the reason.
var excluded = []struct {
	feature string
	others  []string
	because string
}{
	{"reservoir", []string{"subject", "optional subject", "two subjects", "tiers of a subject", "live limit of a subject", "given back after a refusal", "mark"}, "a reservoir gives places to users alone"},
	{"reservoir", []string{"release", "reset", "partial grant", "renewal", "all given back after a renewal"}, "these are a ValidationError"},
	{"reservoir", []string{"prepaid", "lease", "prepaid subject in a group"}, "each place is in the item"},
	{"reservoir", []string{"lockout", "lock", "clear"}, "a place that was given is not given back"},
	{"Hold", []string{"prepaid", "lease", "prepaid subject in a group"}, "a lease keeps no ids"},
	{"prepaid subject in a group", []string{"calendar with cost and tiers"}, "each of the two has three features already"},
}

func permitted(x, y string) bool {
	for _, e := range excluded {
		if e.feature == x && slices.Contains(e.others, y) || e.feature == y && slices.Contains(e.others, x) {
			return false
		}
	}
	return true
}

// table shows the rarest pair of each feature, and logs all pairs. It fails the test if one
// is missing that the contract permits.
func (p pairing) table(t *testing.T) findings.Table {
	t.Helper()
	names := p.names()
	table := findings.Table{
		Title: "Pages of limits that were drawn: what an activity had, or happened to it, and what it had most rarely beside it",
		Head:  []string{"feature", "runs", "most rarely with", "runs with both"},
	}
	for _, x := range names {
		rarest, fewest, row := "", math.MaxInt, []string{x}
		for _, y := range names {
			n := p[[2]string{min(x, y), max(x, y)}]
			if row = append(row, strconv.Itoa(n)); n < fewest && permitted(x, y) {
				rarest, fewest = y, n
			}
		}
		if t.Log(strings.Join(row, "\t")); fewest == 0 {
			t.Errorf("no run has an activity with %s and %s", x, rarest)
		}
		table.Rows = append(table.Rows, []string{x, strconv.Itoa(p[[2]string{x, x}]), rarest, strconv.Itoa(fewest)})
	}
	return table
}

// drawn is what TestRandomConfigurations adds to the figures of TestSimulation, which runs
// after it.
var drawn *struct {
	stats
	pairs findings.Table
}

// Whatever a page of limits combines, and whatever goes wrong, no write and no answer
// breaks a promise.
func TestRandomConfigurations(t *testing.T) {
	prove.Explain(t, "simulate")
	first, last := *firstSeed, prove.Bound(testkit.Bound[uint64](45, 900), 5_000)
	switch {
	case *oneSeed > 0:
		first, last = *oneSeed, *oneSeed
	case *seedsFlag > 0:
		last = first + *seedsFlag - 1
	}
	total, pairs := stats{}, pairing{}
	for seed := first; seed <= last; seed++ {
		s := play(t, configurations, seed, false)
		if s.violation != "" {
			report(t, configurations, seed)
		}
		total.add(s.stats)
		if pairs.add(s); seed%1000 == 0 {
			prove.Progress("simulate: no violation in %d pages of limits that were drawn", seed)
		}
	}
	if *oneSeed == 0 && !prove.Quick() { // in a sample, not every feature is beside every other
		t.Logf("%d pages of limits; %d more were drawn and are not valid", total["runs"], total[invalid])
		drawn = &struct {
			stats
			pairs findings.Table
		}{total, pairs.table(t)}
	}
}
