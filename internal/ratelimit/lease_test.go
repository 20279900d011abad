package ratelimit_test

import (
	"cmp"
	"flag"
	"math/rand"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/ratelimit/storetest"
	"github.com/cric-talk/guards/internal/testkit"
)

var leaseSeeds = flag.Int64("lease-seeds", 1, "run TestALeaseNeverLetsTooMuchThrough with so many seeds of each limit; 8 are two million requests")

// Random phases of pace, instances that come and go or are frozen, lost answers, counts,
// partial checks, two tiers and limits that change while leases are out. A judge that knows
// no leases counts what was admitted: never more than the higher limit allows and, of the
// lower tier, never more than the lower one. The lower tier can be an ordinary limit.
func TestALeaseNeverLetsTooMuchThrough(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		high, low string
		ordinary  bool // the lower tier
	}{
		{"2000/1m", "1000/1m", false},
		{"300/1s", "150/1s", false},
		{"sliding 2000/10s", "sliding 1000/10s", false},
		{"bucket 250/1s burst 1000", "bucket 125/1s burst 500", false},
		{"bucket 250/1s burst 4000", "bucket 250/1s burst 600", false},
		{"bucket 250/1s burst 600", "bucket 250/1s burst 600", true},
		{"a: 300/1s, b: 2000/1m", "a: 200/1s, b: 1000/1m", false},
		{"a: 300/1s, b: bucket 125/1s burst 2000", "a: 150/1s, b: bucket 125/1s burst 1000", false},
		{"a: 300/1s, b: bucket 125/1s burst 800", "a: 300/1s, b: bucket 125/1s burst 800", true},
		{"6000/1m cost 5", "3000/1m cost 5", false},
	} {
		if i%testkit.Bound(3, 1) != 0 {
			continue
		}
		offered, admitted, handedOut, frozen := 0, 0, 0, 0
		for seed := range *leaseSeeds {
			f := newFleet(t, seed, c.high, c.low, c.ordinary)
			f.run()
			f.judge(c.high, c.low)
			offered, admitted, handedOut, frozen = offered+f.offered, admitted+len(f.told), handedOut+f.handedOut, frozen+f.frozen
		}
		if handedOut < admitted/4 || frozen == 0 {
			t.Errorf("%s: only %d of %d were handed out, and %d instances were frozen", c.high, handedOut, admitted, frozen)
		}
		t.Logf("%s: %d offered, %d admitted, %d of these from a lease, %d instances frozen", c.high, offered, admitted, handedOut, frozen)
	}
}

// A judge is an ordinary limit. It knows no leases, and counts what was admitted.
type judge struct {
	policy.Policy
	state  policy.State
	window int64
}

// admits counts n actions, if they fit.
func (j *judge) admits(now, n int64) bool {
	if window, _ := j.Item(now); window != j.window {
		j.state, j.window = nil, window
	}
	u, ok := j.Take(now, n, 1, j.state)
	if ok {
		j.state = u.Apply(j.state)
	}
	return ok
}

// A fleet is the instances that decide about one key, in virtual time.
type fleet struct {
	t         *testing.T
	seed      int64
	random    *rand.Rand
	at        float64 // Unix milliseconds
	store     Store
	instances []*Limiter
	texts     [2]string
	tiers     [2]policy.Policy
	ordinary  bool // the lower tier is not prepaid

	active          int // instances that get requests, at this pace; the share low is of the lower tier
	pace, low       float64
	thawing         bool
	offered, frozen int
	handedOut       int
	told            []admission
}

// An admission is what a caller was told.
type admission struct {
	at, n int64
	tier  int
}

func newFleet(t *testing.T, seed int64, high, low string, ordinary bool) *fleet {
	t.Helper()
	f := &fleet{t: t, seed: seed, ordinary: ordinary, random: rand.New(rand.NewSource(seed)), at: float64(newClock().now().UnixMilli()), texts: [2]string{high, low}}
	lose := []float64{0, 0.05, 0.3}[seed%3]
	lossy := &storetest.Metered{Store: new(memstore.Store), Lose: func() bool { return f.random.Float64() < lose }}
	f.store = afterEach(lossy, func(Write, bool) { f.freeze() })
	f.instances = make([]*Limiter, 1+f.random.Intn(20))
	for i := range f.instances {
		f.replace(i)
	}
	f.reread()
	return f
}

func (f *fleet) now() time.Time { return time.UnixMilli(int64(f.at)) }

// replace kills an instance, with what it holds.
func (f *fleet) replace(i int) {
	f.instances[i] = &Limiter{Store: f.store, Memory: NewMemory(mib), Now: f.now, NewBudget: noPauses(4)}
}

// reread reads live limits again, which are the same.
func (f *fleet) reread() {
	if f.tiers = [2]policy.Policy{leased(f.texts[0]), leased(f.texts[1])}; f.ordinary {
		f.tiers[1] = policy.Must(f.texts[1])
	}
}

func (f *fleet) run() {
	for range 40 {
		f.pace = []float64{0.001, 20, 300, 1000, 4000}[f.random.Intn(5)]
		lasts := f.random.Float64() * 1500
		f.active = 1 + f.random.Intn(len(f.instances))
		f.low = []float64{0, 0.1, 0.5}[f.random.Intn(3)]
		switch f.random.Intn(4) {
		case 0:
			f.replace(f.random.Intn(len(f.instances)))
		case 1:
			f.reread()
		}
		f.flow(lasts)
	}
}

// flow lets requests come for so many milliseconds.
func (f *fleet) flow(lasts float64) {
	end := f.at + lasts
	if f.pace < 1 {
		f.at = end
	}
	for f.at < end {
		f.at += f.random.ExpFloat64() * 1000 / f.pace
		f.ask()
	}
}

// ask sends a request to one of the active instances.
func (f *fleet) ask() {
	a := admission{at: int64(f.at)}
	if f.random.Float64() < f.low {
		a.tier = 1
	}
	n := int64(1)
	if f.random.Intn(20) == 0 {
		n = 1 + f.random.Int63n(30)
	}
	f.offered++
	d, err := f.instances[f.random.Intn(f.active)].Check(f.t.Context(), Request{
		UserID: "hot", Activity: "call", Policy: f.tiers[a.tier], Count: n, Partial: f.random.Intn(10) == 0,
		ID: strconv.Itoa(f.offered), Fresh: f.random.Intn(2) == 0,
	})
	if err != nil || !d.Allowed {
		return
	}
	if d.Leased {
		f.handedOut++
	}
	a.n = d.Granted
	f.told = append(f.told, a)
}

// judge counts what was admitted, sorted by when the decisions began.
func (f *fleet) judge(texts ...string) {
	f.t.Helper()
	slices.SortStableFunc(f.told, func(a, b admission) int { return cmp.Compare(a.at, b.at) })
	for i, text := range texts {
		truth := judge{Policy: policy.Must(text)}
		for _, a := range f.told {
			if a.tier >= i && !truth.admits(a.at, a.n) {
				f.t.Fatalf("%s, seed %d: %d more were admitted than limit %d allows: %+v", texts[0], f.seed, a.n, i, truth.Read(a.at, a.n, truth.state))
			}
		}
	}
}

// freeze freezes an instance now and then, after its update was performed and before it reads
// the answer. Meanwhile others go on, and so do other callers of that instance.
func (f *fleet) freeze() {
	if !f.thawing && f.random.Intn(30) == 0 {
		f.thawing = true
		f.flow(f.random.Float64() * 3000)
		f.thawing = false
		f.frozen++
	}
}

// A load is what callers ask of one key, in virtual time.
type load struct {
	text      string
	instances int
	pace      float64 // actions a second
	counts    []int64 // one of them each time
	moves     bool    // each second, all requests come to another instance
}

// shares returns how much of what an ordinary limit of the same numbers admits is admitted
// by a prepaid one in two minutes.
func (o load) share(t *testing.T, seed int64) float64 {
	t.Helper()
	p := leased(o.text)
	random, c := rand.New(rand.NewSource(seed)), newClock()
	store, instances := new(memstore.Store), make([]*Limiter, o.instances)
	for i := range instances {
		instances[i] = &Limiter{Store: store, Memory: NewMemory(mib), Now: c.now}
	}
	var mean, admitted, fitted float64
	for _, n := range o.counts {
		mean += float64(n) / float64(len(o.counts))
	}
	truth := judge{Policy: p}
	for id := 0; c.now().Sub(start) < 2*time.Minute; id++ {
		c.add(time.Duration(random.ExpFloat64() * float64(time.Second) * mean / o.pace))
		i := random.Intn(o.instances)
		if o.moves {
			i = int(c.now().Unix()) % o.instances
		}
		n := o.counts[random.Intn(len(o.counts))]
		r := call(p, id)
		if r.Count = n; mustCheck(t, instances[i], r).Allowed && c.now().Sub(start) > time.Minute {
			admitted += float64(n)
		}
		if truth.admits(c.now().UnixMilli(), n) && c.now().Sub(start) > time.Minute {
			fitted += float64(n)
		}
	}
	return admitted / fitted
}

// On a living instance, a prepaid limit admits nearly what an ordinary one does, whatever the
// counts are: what is left of a lease is handed out beside the next one.
func TestABusyKeyGetsItsWholeLimit(t *testing.T) {
	testkit.Long.Need(t)
	for _, o := range []struct {
		load

		least float64 // percent
	}{
		{load{"bucket 1000/1s burst 2000", 1, 2000, []int64{1}, false}, 98},
		{load{"bucket 1000/1s burst 2000", 1, 2000, []int64{10}, false}, 98},
		{load{"bucket 1000/1s burst 2000", 1, 1000, []int64{1, 60}, false}, 98},
		{load{"bucket 250/1s burst 600", 1, 500, []int64{10}, false}, 98},
		{load{"bucket 250/1s burst 600", 1, 500, []int64{1, 60}, false}, 94},
		{load{"bucket 100/1s burst 1000", 1, 200, []int64{10}, false}, 98},
		{load{"sliding 6000/1m", 1, 200, []int64{10}, false}, 98},
		{load{"6000/1m", 1, 110, []int64{1, 60}, false}, 98},
		{load{"6000/1m", 20, 110, []int64{1}, true}, 90},
	} {
		if got := 100 * o.share(t, 1); got < o.least {
			t.Errorf("%+v: %.1f %% of what an ordinary limit admits, want at least %.0f", o.load, got, o.least)
		} else {
			t.Logf("%+v: %.1f %%", o.load, got)
		}
	}
}
