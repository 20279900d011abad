package simulate_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// sides are limits that a deploy can replace by one another.
var sides = []string{
	"10/1m", "20/1m", "10/10s", "5/1h", "10/day", "10/1m cost 2",
	"bucket 10/1m", "bucket 10/1h", "bucket 5/10s burst 8", "bucket 12/1m cost 2",
	"log 10/1m", "log 20/1m", "log 10/10s", "log 10/1h", "log 10/1m cost 2",
	"sliding 10/1m", "sliding 20/1m", "sliding 10/10s", "sliding 10/5m", "sliding 10/1h",
	"lockout 5/20s for 10s", "lockout 10/1m for 5s to 40s", "lockout 3/10s for 2s to 20s",
	"reservoir 5/10s ahead 1m", "reservoir 10/1m ahead 5m", "reservoir 10/10s ahead 1m",
	"a: 10/1m, b: 30/1h", "a: 10/5m, b: 20/1h", "a: sliding 10/1m, b: log 10/5m", "a: sliding 10/1h, b: log 10/1m", "a: bucket 10/1m, b: 10/10s",
}

// wide are limits that a run does not use up, and that get nothing back meanwhile.
var wide = []string{"300/1d", "300/1d", "lockout 300/1d for 1d", "bucket 200/2d burst 300", "log 100/1d", "sliding 300/1d", "a: 300/1d, b: log 100/1d"}

// aSideOf draws a limit that replaces another one: often one of the same kind.
func aSideOf(before string, random *rand.Rand) string {
	kind := policy.Must(before).Rates()[0].Kind
	alike := slices.DeleteFunc(slices.Clone(sides), func(text string) bool { return policy.Must(text).Rates()[0].Kind != kind })
	if random.IntN(2) == 0 {
		return alike[random.IntN(len(alike))]
	}
	return sides[random.IntN(len(sides))]
}

// An action is what a client does: a check, perhaps again if the answer is not known, and
// perhaps a release.
type action struct {
	id             string
	at             time.Duration
	user, room     string // room: empty: none
	version        int
	process, other int
	alone          bool
	repeats        time.Duration // 0: never
	releases       time.Duration
}

// A letThrough is an action that the table has admitted.
type letThrough struct {
	user    string
	version int
	runs    int64 // when, in Unix milliseconds: at once, or at its place
}

// A tally is what a user or a room has to count in the end: at least certain, and at most
// unknown more. Callers were told that certain counts, and don't know whether unknown does.
type tally struct{ certain, unknown, released int64 }

// drawAction draws what a client does. First the old version is at work, then both, then the
// new one.
func (h *half) drawAction(i int) action {
	r := h.random
	a := action{id: fmt.Sprint("r", i), at: time.Duration(r.Int64N(int64(longest))), user: fmt.Sprint("u", r.IntN(h.users)), alone: r.IntN(2) == 0}
	if r.IntN(3) == 0 { // together with others
		a.at = a.at.Truncate(20*time.Second) + time.Duration(r.Int64N(int64(2*time.Second)))
	}
	switch a.version = r.IntN(2); {
	case a.at < longest/4:
		a.version = 0
	case a.at > 3*longest/4:
		a.version = 1
	}
	a.process, a.other = 2*a.version+r.IntN(2), 2*a.version+r.IntN(2)
	if h.rooms {
		a.room = roomOf(r.IntN(3))
	}
	if r.IntN(2) == 0 {
		a.repeats = time.Duration(1 + r.Int64N(int64(3*time.Second)))
	}
	if h.releases && r.IntN(3) == 0 && !h.versions[0].Queues() && !h.versions[1].Queues() {
		a.releases = time.Duration(1 + r.Int64N(int64([]time.Duration{100 * time.Millisecond, 4 * time.Second}[r.IntN(2)])))
	}
	return a
}

// decide asks a process.
func (h *half) decide(process int, op ratelimit.Op, a action, at int64) (ratelimit.Decision, error) {
	p := h.processes[process]
	p.thaw()
	r := ratelimit.Request{UserID: a.user, Activity: "act", Policy: h.versions[a.version], Count: 1, ID: a.id, At: at, Fallback: a.alone}
	parts := []ratelimit.Part{{Request: r}}
	if a.room != "" {
		r.UserID, r.For = a.room, a.user
		parts = append(parts, ratelimit.Part{Request: r, Subject: "room"})
	}
	began := time.Now()
	var d ratelimit.Decision
	var err error
	if len(parts) == 1 {
		d, err = p.limiter.Decide(context.Background(), op, parts[0].Request)
	} else {
		d, err = p.limiter.DecideAll(context.Background(), op, parts, false)
	}
	h.line("%s %s of %s%s by process %d, %q: %s, receipt %d, place %d, %d requests in %v, outage %v, error %v",
		op, a.id, a.user, a.room, process, h.texts[a.version], d.Reason, d.At, d.ReadyAt, d.Requests, time.Since(began), d.Outage, err)
	if op == ratelimit.Check { // a release can need two requests
		h.judgeAnswer(p, a, d, err)
	}
	return d, err
}

// act does a.
func (h *half) act(a action) {
	process := a.process
	d, err := h.decide(process, ratelimit.Check, a, 0)
	if (err != nil || d.Outage != nil) && a.repeats > 0 {
		h.doubt(a, d, err)
		time.Sleep(a.repeats)
		process = a.other
		d, err = h.decide(process, ratelimit.Check, a, 0)
	}
	if err != nil || d.Outage != nil {
		h.doubt(a, d, err)
		return
	}
	if !d.Allowed && d.Reason != ratelimit.Delayed {
		return
	}
	l := &letThrough{a.user, a.version, max(d.At, d.ReadyAt)}
	if l.runs == 0 { // an earlier attempt has counted, at an unknown time
		l = nil
	}
	h.admit(l, a)
	if a.releases == 0 || d.At == 0 {
		return
	}
	time.Sleep(a.releases)
	_, err = h.decide(process, ratelimit.Release, a, d.At)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.tallies(a) {
		t.certain--
		if t.released++; err != nil || h.has(freeze) { // perhaps it came too late
			t.unknown++
		}
	}
}

// tallies returns the tallies of an action's items. The caller must hold the lock.
func (h *half) tallies(a action) (list []*tally) {
	for _, name := range []string{a.user, a.room} {
		if name != "" {
			list = append(list, h.tally(name))
		}
	}
	return list
}

// doubt notes that an action was not decided by the table. If nothing gets lost, one that was
// refused is not counted, or was given back.
func (h *half) doubt(a action, d ratelimit.Decision, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.tallies(a) {
		if err == nil && d.Allowed || !h.intact() {
			t.unknown++
		}
	}
}

// intact reports whether nothing gets lost in the run, nothing stands still, and each answer
// comes in time for giving back.
func (h *half) intact() bool {
	return h.rooms && !h.has(lossyTable, freeze) && !slices.ContainsFunc(h.spells, func(s spell) bool { return s.what == slowTable && s.most > 20 })
}

// A written is an id in an item. Its copies are the writes that were sent before their process
// could know that one of them was performed. One that lands only after a release counts, and
// nobody can prevent that.
type (
	written struct {
		item string
		id   ratelimit.ID
	}
	copies struct {
		underway  int
		performed time.Time // the first one; zero: none
	}
	probed struct{ landed, answered time.Time }
)

// leaves notes that p sends w, and reports whether w is one of those copies: none was performed
// before, or only after the probe landed whose answer makes p send w now. For example:
//
//	ms   the write
//	0    is sent
//	333  a probe is sent beside it
//	340  the probe lands: the item does not have the id
//	540  the write is performed
//	570  the probe is answered, so the write is sent once more
func (p *process) leaves(w ratelimit.Write) (first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.ID == (ratelimit.ID{}) || w.Drop.Set != "" {
		return false
	}
	of := written{w.Key.UserID, w.ID}
	if p.writes[of] == nil {
		p.writes[of] = &copies{}
	}
	c, probe := p.writes[of], p.probes[w.Key]
	first = c.performed.IsZero() || probe.answered.Equal(time.Now()) && probe.landed.Before(c.performed)
	if first {
		c.underway++
	}
	return first
}

// shown notes that a probe of the item under k is answered, and when it landed.
func (p *process) shown(k ratelimit.Key, landed time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.probes[k] = probed{landed, time.Now()}
}

// lands notes that w has landed.
func (h *half) lands(w ratelimit.Write, first, done bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.writes[written{w.Key.UserID, w.ID}]; first {
		c.underway--
		if done && c.performed.IsZero() {
			c.performed = time.Now()
		}
	}
	if !done || w.Drop.Set == "" {
		return
	}
	for of, c := range h.writes { // the item has its ids in another form, so this can be another one
		if of.item == w.Key.UserID && !c.performed.IsZero() && c.underway > 0 {
			h.tally(of.item).unknown++
		}
	}
}

// tally returns what a user or a room has to count. The caller must hold the lock.
func (h *half) tally(name string) *tally {
	if h.counts[name] == nil {
		h.counts[name] = &tally{}
	}
	return h.counts[name]
}

// judgeAnswer judges what can be known at once: what the table answers in time, it decides.
func (h *half) judgeAnswer(p *process, a action, d ratelimit.Decision, err error) {
	outage := err != nil || d.Outage != nil
	switch {
	case h.intact():
		_, failing := h.during(failingKey, 6*time.Second, func(s spell) bool { return s.key == a.room })
		if _, probed := p.limiter.CircuitProbed(ratelimit.Key{UserID: a.room, Activity: "act"}); time.Since(probed) < time.Second {
			failing = true // another decision probes it now
		}
		if outage && !failing || p.limiter.CircuitOpen() {
			h.fail("%s: only other rooms fail, and it is told %s, error %v, outage %v; the table's circuit is open: %v", a.id, d.Reason, err, d.Outage, p.limiter.CircuitOpen())
		}
	case h.texts[0] == wide[0] && h.texts[1] == wide[0] && !h.rooms && !h.releases && !h.has(lossyTable, freeze, failingKey):
		if outage || d.Requests > 5 || p.limiter.CircuitOpen() {
			h.fail("%s: the table answers in time, and it is told %s after %d requests, error %v, outage %v", a.id, d.Reason, d.Requests, err, d.Outage)
		}
	}
}

// admit notes what the table has admitted; nil: when it runs is not known.
func (h *half) admit(l *letThrough, a action) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.tallies(a) {
		t.certain++
	}
	if l != nil {
		h.admitted = append(h.admitted, l)
	}
}

// judgeAdmitted judges what the versions have admitted of each user: in no time, a version may
// have admitted more than a limit of it. If both versions count together, both may have
// admitted at most what the larger limit lets through, or with other windows the sum.
func (h *half) judgeAdmitted() {
	slices.SortFunc(h.admitted, func(a, b *letThrough) int { return cmp.Compare(a.runs, b.runs) })
	for v, own := range h.versions {
		for _, r := range own.Rates() {
			q, together := h.counterpart(v, r)
			if together {
				r.Cost, q.Cost = min(r.Cost, q.Cost), min(r.Cost, q.Cost)
			}
			for user, t := range h.counts {
				var runs []int64
				for _, l := range h.admitted {
					if l.user == user && (l.version == v || together) {
						runs = append(runs, l.runs)
					}
				}
				h.judgeLimit(user, runs, t.released, r, q, together)
			}
		}
	}
}

// judgeLimit judges by the limit r when actions of a user run. Together with q, they may be as
// many as the larger of both lets through.
func (h *half) judgeLimit(user string, runs []int64, released int64, r, q policy.Rate, together bool) {
	for i, from := range runs {
		for j, to := range runs[i:] {
			most := lets(r, from, to)
			switch {
			case together && r.Kind == "lockout": // a series is over as soon as it is for either of them
				r.Limit, r.Window, r.Lock = max(r.Limit, q.Limit), min(r.Window, q.Window), min(r.Lock, q.Lock)
				most = lets(r, from, to)
			case together && r.Kind == "bucket": // the larger burst, and the faster pace
				r.Burst, r.Limit, r.Window = max(r.Burst, q.Burst), 1, min(r.Window/time.Duration(r.Limit), q.Window/time.Duration(q.Limit))
				most = lets(r, from, to)
			case together && r.Window != q.Window: // each looks at a time of its own
				most += lets(q, from, to)
			case together:
				most = max(most, lets(q, from, to))
			case r.Kind == "reservoir": // each window of the other one that begins in its windows hides its places
				window := r.Window.Milliseconds()
				windows := to/window - from/window + 1
				most += (r.Limit - 1) * windows * max(1, window/q.Window.Milliseconds())
			}
			back := released
			if r.Kind == "lockout" { // what is given back can end a lock, and the series with it
				back *= r.Limit
			}
			if n := int64(j + 1); n > most+back {
				h.fail("%d of %s run within %v, want at most the %d of %q, together: %v; %d were released",
					n, user, time.Duration(to-from)*time.Millisecond, most, r.String(), together, released)
				return
			}
		}
	}
}

// counterpart returns the limit of the other version with the name and the kind of r, which is
// one of version v, or r itself. It reports whether both count together, as docs/policies.md
// says.
func (h *half) counterpart(v int, r policy.Rate) (policy.Rate, bool) {
	for _, q := range h.versions[1-v].Rates() {
		if r.Name == q.Name && r.Kind == q.Kind {
			apart := r.Kind == "sliding" || r.Kind == "fixed" && r.Name == "" || r.Kind == "reservoir"
			return q, r.Window == q.Window || !apart
		}
	}
	return r, false
}

// judgeCounts requires that each user and each room counts what was admitted, if one text
// counts everything.
func (h *half) judgeCounts() {
	if h.texts[0] != h.texts[1] || !slices.Contains(wide, h.texts[0]) {
		return
	}
	for name, t := range h.counts {
		bare := &ratelimit.Limiter{Store: h.store}
		d, err := bare.Decide(context.Background(), ratelimit.Status, ratelimit.Request{UserID: name, Activity: "act", Policy: h.versions[1], Count: 1, ID: "status", Shared: h.rooms})
		if err != nil {
			h.fail("the status of %s: %v", name, err)
			continue
		}
		for _, r := range d.Limits() {
			if r.Used < t.certain || r.Used > t.certain+t.unknown {
				h.fail("%s counts %d in %q, want %d to %d", name, r.Used, r.Name, t.certain, t.certain+t.unknown)
			}
		}
	}
}

// stats counts what the run was about.
func (h *half) stats() stats {
	s := stats{halfRuns: 1}
	if h.texts[0] != h.texts[1] {
		s[sideBySide]++
	}
	for _, trouble := range h.spells {
		s["spells of a "+string(trouble.what)]++
	}
	return s
}
