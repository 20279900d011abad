package simulate_test

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"slices"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// A sim is one run: instances with clocks of their own, clients, operators and a
// network that fails. They share one store. Times are true Unix milliseconds
// unless a name says otherwise.
//
// A run is one event loop. Each decision is a coroutine: it gives way whenever it
// waits for the network, and the loop continues it when its time has come. So
// decisions overlap as they do in production, and one seed makes one run.
type sim struct {
	seed   uint64
	random *rand.Rand
	far    bool  // some clocks differ by more than the 2 s that the contract assumes
	apart  int64 // by how much clocks can differ otherwise, in milliseconds
	odd    bool  // callers and operators do what they should not do

	now    int64
	events []event // in the order of their times
	op     *op     // the decision that runs
	begun  []*op   // all decisions of the run

	activities []limits.Activity // one, or two that count in one item
	byText     map[string]*terms
	store      *memstore.Store
	settings   settings
	instances  []*instance
	ids        int                      // of requests, so far
	deployed   int64                    // when the code last changed
	slow       int64                    // by how many milliseconds the table answers later
	slowUntil  int64                    // until then
	lag        int                      // one request in so many is up to 400 ms late
	broken     broken                   // the key that fails alone
	unread     map[ratelimit.Key]string // the attribute of each spoiled item that has a wrong type
	ledger     ledger

	stats     stats
	happened  map[happened]bool
	hash      uint64
	verbose   bool
	lines     []string
	violation string // the first one; it ends the run
}

// begin is the start of an hour. All runs start within the day that follows.
const begin = 1_700_002_800_000

func newSim(subject subject, seed uint64, verbose bool) *sim {
	h := fnv.New64a()
	h.Write([]byte(subject.name))
	random := rand.New(rand.NewPCG(seed, h.Sum64()))
	s := &sim{
		seed: seed, random: random, verbose: verbose, store: new(memstore.Store),
		now: begin + random.Int64N(86_400_000), hash: h.Sum64(), byText: map[string]*terms{}, unread: map[ratelimit.Key]string{}, stats: stats{}, happened: map[happened]bool{},
	}
	s.stats["runs"], s.apart = 1, skews[len(skews)-2]
	s.lag = []int{30, 8, 3}[random.IntN(3)]
	if subject.draw != nil && s.chance(3) { // clocks that hardly differ hide no excess
		s.apart = skews[len(skews)-3]
	}
	if s.far = subject.draw == nil && s.chance(5); s.far {
		s.stats["runs with clocks up to 90 s apart, for which nothing is promised"] = 1
	}
	if s.odd = seed%oddRuns == 0; s.odd && subject.draw == nil && s.chance(2) {
		s.now += old - begin
		s.stats["runs that begin before 2020"] = 1
	}
	s.activities = s.code(subject)
	s.ledger = ledger{sim: s, users: map[owner]*user{}}
	s.settings = settings{sim: s, versions: make(history, 1), blocked: make(history, 1)}
	n := 3 + s.random.IntN(6)*s.random.IntN(10)
	if subject.draw != nil {
		s.now, n = s.beginning(), 4
	}
	for i := range n {
		s.instances = append(s.instances, s.newInstance(i))
	}
	return s
}

// An event happens at its time. Events of the same time keep their order.
type event struct {
	at int64
	do func()
}

// at plans an event.
func (s *sim) at(when int64, do func()) {
	at := max(when, s.now)
	next, _ := slices.BinarySearchFunc(s.events, at+1, func(e event, at int64) int { return cmp.Compare(e.at, at) })
	s.events = slices.Insert(s.events, next, event{at, do})
}

// scatter plans n events, each within some time after at.
func (s *sim) scatter(n int, at, within int64, do func()) {
	for range n {
		s.at(at+s.upTo(within), do)
	}
}

// loop lets everything happen that is planned.
func (s *sim) loop() {
	for len(s.events) > 0 && s.violation == "" {
		e := s.events[0]
		s.events, s.now = s.events[1:], e.at
		e.do()
	}
	for _, o := range s.begun { // after a violation some decisions have not ended
		o.stop()
	}
}

// start runs body as a decision of its own.
func (s *sim) start(o *op, body func()) {
	o.next, o.stop = iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			if r := recover(); r != nil && r != any(stopped) {
				panic(r)
			}
		}()
		o.yield = yield
		body()
	})
	s.begun = append(s.begun, o)
	s.run(o)
}

// run continues a decision until it waits again.
func (s *sim) run(o *op) {
	before := s.op
	s.op = o
	circuits := o.circuits()
	o.next()
	s.ledger.judgeCircuits(o, circuits)
	s.op = before
}

// stopped is the panic that ends a decision whose run is over.
const stopped = "the run is over"

// until lets a decision wait. If its instance is frozen then, it waits until that is over.
func (o *op) until(when int64) {
	s := o.in.sim
	s.at(when, func() { s.run(o) })
	if !o.yield(struct{}{}) || o.in.dead {
		panic(stopped)
	}
	if s.now < o.in.frozenUntil {
		o.until(o.in.frozenUntil)
	}
}

// mix adds numbers to the hash of the run's trace.
func (s *sim) mix(numbers ...int64) {
	const prime = 1_099_511_628_211
	s.hash = (s.hash ^ uint64(s.now)) * prime
	for _, n := range numbers {
		s.hash = (s.hash ^ uint64(n)) * prime
	}
}

// line adds a line to the timeline, if the run keeps one.
func (s *sim) line(format string, args ...any) {
	if s.verbose {
		s.lines = append(s.lines, fmt.Sprintf("%12.3f  ", float64(s.now-begin)/1000)+fmt.Sprintf(format, args...))
	}
}

// wrong records that the store or an answer is not as the models have it. If
// clocks differ by more than 2 s, the contract does not promise that, and wrong
// only counts it.
func (s *sim) wrong(format string, args ...any) {
	if s.far {
		s.stats[beyond]++
		return
	}
	s.fail(format, args...)
}

// fail records a violation. The first one ends the run.
func (s *sim) fail(format string, args ...any) {
	if s.violation == "" {
		s.violation = fmt.Sprintf(format, args...)
		s.line("VIOLATION: %s", s.violation)
	}
}

// A happened names something that happened in a run, to an activity or, if that is empty,
// to all.
type happened struct{ activity, what string }

// had notes something that happened.
func (s *sim) had(activity, what string) { s.happened[happened{activity, what}] = true }

// chance reports true in one of so many cases.
func (s *sim) chance(in int) bool { return s.random.IntN(in) == 0 }

// upTo returns a number from 0 to most.
func (s *sim) upTo(most int64) int64 { return s.random.Int64N(most + 1) }

// soon returns a number from 0 to most, often a small one: what follows an event in
// milliseconds meets other things than what follows it in seconds.
func (s *sim) soon(most int64) int64 { return s.upTo(most >> s.random.IntN(8)) }
