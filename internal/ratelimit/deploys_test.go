package ratelimit_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
)

// versions are limits that a deploy can replace by each other: all kinds, windows, names
// and groups. A text with a * counts in a group.
var versions = []string{
	"10/1m", "20/1m", "10/10s", "10/1h", "200/1m", "10/1m cost 2", "10/1d", "10/day", "10/day in Asia/Tokyo", "10/week",
	"bucket 10/1m", "bucket 10/1h", "bucket 5/10s burst 8", "bucket 1/5s", "bucket 12/1m cost 2",
	"log 10/1m", "log 20/1m", "log 10/10s", "log 10/1h", "log 10/1m cost 2", "log 100/1h",
	"sliding 10/1m", "sliding 20/1m", "sliding 10/10s", "sliding 10/5m", "sliding 10/1h", "sliding 200/1m",
	"reservoir 10/10s ahead 1m", "reservoir 10/1m ahead 5m", "reservoir 20/10s",
	"a: 10/1m, b: 30/1h", "a: 10/5m, b: 30/1h", "a: sliding 10/1m, b: log 10/5m", "a: sliding 10/1h, b: log 10/1m",
	"b: 10/1m, c: 20/1m", "a: bucket 10/1m, b: 20/10s",
	"*a: 10/1m", "*a: 10/1h", "*a: sliding 10/1m", "*a: sliding 10/1h, b: 5/10s",
}

// Two versions of one limit, the old and the new one, count at the same time, with
// releases and renewals of each other's checks. The test counts what they admit.
func TestTwoVersionsSideBySide(t *testing.T) {
	for i, before := range versions {
		for j, after := range versions {
			if (i+j)%testkit.Bound(10, 1) != 0 {
				continue
			}
			t.Run(before+" becomes "+after, func(t *testing.T) {
				newDeploy(t, before, after, uint64(i*len(versions)+j)).run()
			})
		}
	}
}

// A deploy is a run of two versions on the item of one user.
type deploy struct {
	t        *testing.T
	random   *rand.Rand
	clock    *clock
	versions [2]version
	admitted []*letThrough
	released int64 // releases so far
	last     int   // of the ids
}

type version struct {
	text     string
	group    string
	policy   policy.Policy
	limiters [2]*Limiter // one that remembers, and one that knows nothing
}

// A letThrough is an action that a version has admitted.
type letThrough struct {
	id   string
	by   int   // the version
	at   int64 // its receipt: when it came, or was renewed, in Unix milliseconds
	came int64
	runs int64 // when it runs: at once, or at its place
}

func newDeploy(t *testing.T, before, after string, seed uint64) *deploy {
	d := &deploy{t: t, random: rand.New(rand.NewPCG(seed, 1)), clock: newClock()}
	store := new(memstore.Store)
	for i, text := range []string{before, after} {
		v := version{text: text}
		bare, grouped := strings.CutPrefix(text, "*")
		if v.policy = policy.Must(bare); grouped {
			v.group = "content"
		}
		v.limiters[0] = &Limiter{Store: store, Memory: NewMemory(mib), Now: d.clock.now, NewBudget: noPauses(9)}
		v.limiters[1] = &Limiter{Store: store, Now: d.clock.now, NewBudget: noPauses(9)}
		d.versions[i] = v
	}
	return d
}

// run lets the old version decide, then both, then the new one.
func (d *deploy) run() {
	const steps = 120
	pauses := []time.Duration{0, 0, 0, 100 * time.Millisecond, time.Second, 4 * time.Second, 9 * time.Second, 40 * time.Second}
	for step := range steps {
		v := d.random.IntN(2)
		switch {
		case step < steps/5:
			v = 0
		case step >= steps*4/5:
			v = 1
		}
		switch what := d.random.IntN(20); {
		case what == 0 && len(d.admitted) > 0:
			d.release(v)
		case what < 4 && len(d.admitted) > 0:
			d.renew(v)
		default:
			d.check(v)
		}
		d.clock.add(pauses[d.random.IntN(len(pauses))])
	}
}

func (d *deploy) decide(v int, op Op, id string, at int64) Decision {
	r := request(d.versions[v].policy, id, 1)
	r.Group, r.At, r.Fallback = d.versions[v].group, at, false
	answer, err := d.versions[v].limiters[d.random.IntN(2)].Decide(d.t.Context(), op, r)
	if err != nil {
		d.t.Fatalf("%s: %s by %q: %v", d, op, d.versions[v].text, err)
	}
	return answer
}

func (d *deploy) String() string {
	return fmt.Sprintf("%q becomes %q, %v after the start", d.versions[0].text, d.versions[1].text, d.clock.now().Sub(start))
}

func (d *deploy) check(v int) {
	d.last++
	a := &letThrough{id: strconv.Itoa(d.last), by: v, came: d.clock.now().UnixMilli()}
	answer := d.decide(v, Check, a.id, 0)
	if !answer.Allowed && answer.Reason != Delayed {
		return
	}
	a.at, a.runs = answer.At, max(a.came, answer.ReadyAt)
	d.admitted = append(d.admitted, a)
	d.judge(a)
}

// release gives back an action, perhaps one that the other version has admitted.
func (d *deploy) release(v int) {
	i := d.random.IntN(len(d.admitted))
	a := d.admitted[i]
	if d.versions[v].policy.Queues() || d.versions[a.by].policy.Queues() {
		return // a place is never given back
	}
	d.decide(v, Release, a.id, a.at)
	d.admitted = append(d.admitted[:i:i], d.admitted[i+1:]...)
	d.released++
}

// renew renews a slot, perhaps of the other version. It must succeed if both versions
// count the slot in the same log.
func (d *deploy) renew(v int) {
	a := d.admitted[d.random.IntN(len(d.admitted))]
	one, other := slots(d.versions[v]), slots(d.versions[a.by])
	if one.Kind == "" || other.Kind == "" {
		return
	}
	answer := d.decide(v, Renew, a.id, a.at)
	open := d.clock.now().UnixMilli()-a.at < min(slots(d.versions[0]).Window, slots(d.versions[1]).Window).Milliseconds()
	same := one.Name == other.Name && slots(d.versions[0]).Cost == slots(d.versions[1]).Cost && d.versions[v].group == d.versions[a.by].group
	if open && same && !answer.Allowed {
		d.t.Fatalf("%s: %q renews a slot of %q: %s", d, d.versions[v].text, d.versions[a.by].text, answer.Reason)
	}
	if answer.Allowed {
		a.at = answer.At
	}
}

// slots returns the log of v; the zero Rate: it has none.
func slots(v version) policy.Rate {
	for _, r := range v.policy.Rates() {
		if r.Kind == "log" {
			return r
		}
	}
	return policy.Rate{}
}

// judge fails the test if a is one too many for a limit of either version. In no time that
// begins or ends with a, its version may admit more than the limit. If both versions count
// together in it, both may admit at most what the larger one of the two limits lets through.
func (d *deploy) judge(a *letThrough) {
	for v, own := range d.versions {
		for _, r := range own.policy.Rates() {
			q, together := d.counterpart(v, r)
			for _, other := range d.admitted {
				from, to := min(a.runs, other.runs), max(a.runs, other.runs)
				n, bound := int64(0), most(r, from, to)
				if r.Kind == "reservoir" && !together {
					bound += r.Limit - 1 // a longer window does not count the places of the first shorter ones in it
				}
				if together {
					r.Cost, q.Cost = min(r.Cost, q.Cost), min(r.Cost, q.Cost)
					bound = max(most(r, from, to), most(q, from, to))
				}
				for _, b := range d.admitted {
					if from <= b.runs && b.runs <= to && (b.by == v || together) {
						n++
					}
				}
				if n > bound+d.released {
					d.t.Fatalf("%s: %d run within %v, want at most the %d of %q, together: %v; %d were released",
						d, n, time.Duration(to-from)*time.Millisecond, bound, r.String(), together, d.released)
				}
			}
		}
	}
}

// counterpart returns the limit of the other version that counts together with r, which
// is one of version v, as docs/policies.md says.
func (d *deploy) counterpart(v int, r policy.Rate) (policy.Rate, bool) {
	own, other := d.versions[v], d.versions[1-v]
	for _, q := range other.policy.Rates() {
		apart := r.Window != q.Window && (r.Kind == "sliding" || r.Kind == "fixed" && r.Name == "" || r.Kind == "reservoir")
		if own.group == other.group && r.Name == q.Name && r.Kind == q.Kind && !apart {
			return q, true
		}
	}
	return policy.Rate{}, false
}

// most returns how many actions of r may run from one time to another, both included.
func most(r policy.Rate, from, to int64) int64 {
	window, passed := r.Window.Milliseconds(), to-from
	switch {
	case r.Unit != "": // its windows begin at other times
		return r.Actions() * (passed/window + 2)
	case r.Kind == "log":
		return r.Actions() * (passed/window + 1)
	case r.Kind == "sliding":
		return r.Actions() * 2 * (passed/window + 1)
	case r.Kind == "bucket":
		return (r.Burst + passed*r.Limit/window) / max(1, r.Cost)
	}
	return r.Actions() * (to/window - from/window + 1)
}
