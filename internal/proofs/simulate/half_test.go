package simulate_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
)

// A half is a run with something that only half works. The table answers late or not at
// all, one key fails, a process stands still, or two versions of the page are at work.
//
// Unlike a sim, a half lets decisions run as they do in production, with their own time, and
// with what they send beside a slow request. Everything is drawn before the run begins, and
// what happens to a request depends on its time alone. So one seed makes nearly the same run
// each time. The judges count from outside: what callers were told, and what is counted in the
// end.
type half struct {
	seed      uint64
	random    *rand.Rand // until the run begins
	start     time.Time
	store     *memstore.Store
	texts     [2]string // of the old and the new version, or twice the same
	versions  [2]policy.Policy
	rooms     bool // actions count in a room, too
	releases  bool // clients release
	users     int
	processes []*process
	spells    []spell

	mu       sync.Mutex
	admitted []*letThrough
	counts   map[string]*tally // by users and rooms
	writes   map[written]*copies
	lines    []string
	wrong    []string
}

// A process is an instance of one of the versions. Its requests go through it.
type process struct {
	*half

	number  int
	limiter *ratelimit.Limiter
	probes  map[ratelimit.Key]probed // the last probe of each item that was answered
}

// A spell is a time when something does not work.
type spell struct {
	what        trouble
	from, until time.Duration // since the start
	most        int64         // slow: the longest answer, in ms
	steady      bool          // slow: each answer takes as long
	fault       fault         // failing key
	key         string        // failing key: the user or the room
	process     int           // frozen
}

type trouble string

const (
	slowTable  trouble = "slow table"
	lossyTable trouble = "table that loses requests and answers"
	failingKey trouble = "key that fails alone"
	freeze     trouble = "frozen process"
)

// longest is how long clients send requests.
const longest = 90 * time.Second

// newHalf draws a run. Two versions count in the items of users alone.
func newHalf(seed uint64) *half {
	h := &half{seed: seed, random: rand.New(rand.NewPCG(seed, 48)), store: new(memstore.Store), counts: map[string]*tally{}, writes: map[written]*copies{}}
	switch seed % 4 {
	case 0, 1:
		before := sides[h.random.IntN(len(sides))]
		h.texts = [2]string{before, aSideOf(before, h.random)}
	default:
		text := wide[h.random.IntN(len(wide))]
		h.texts, h.rooms = [2]string{text, text}, seed%4 == 2
	}
	for i, text := range h.texts {
		h.versions[i] = policy.Must(text)
	}
	for i := range 4 {
		p := &process{half: h, number: i, probes: map[ratelimit.Key]probed{}}
		p.limiter = &ratelimit.Limiter{Store: p, Memory: ratelimit.NewMemory(memory), Timeout: time.Second}
		h.processes = append(h.processes, p)
	}
	h.releases, h.users = h.random.IntN(2) == 0, 1+h.random.IntN(3)
	h.drawSpells()
	return h
}

// drawSpells draws what does not work, and when. In two runs of three, nothing gets lost and
// nothing stands still, and in some the table is only slow.
func (h *half) drawSpells() {
	kinds := []trouble{slowTable, failingKey}
	switch h.random.IntN(6) {
	case 0, 1:
		kinds = append(kinds, lossyTable, freeze)
	case 2, 3:
		kinds = kinds[:1]
	}
	for range 1 + h.random.IntN(4) {
		s := spell{what: kinds[h.random.IntN(len(kinds))], from: time.Duration(h.random.Int64N(int64(longest)))}
		s.until = s.from + time.Duration(h.random.Int64N(int64(40*time.Second)))
		s.most, s.steady = []int64{20, 90, 200, 340, 600, 900}[h.random.IntN(6)], h.random.IntN(2) == 0
		s.fault = []fault{throttled, hang, failedBefore, denied}[h.random.IntN(4)]
		if s.key = "u0"; h.rooms {
			s.key = roomOf(h.random.IntN(2))
		}
		if s.process = h.random.IntN(len(h.processes)); s.what == freeze {
			s.until = s.from + 12*time.Second + time.Duration(h.random.Int64N(int64(28*time.Second)))
		}
		h.spells = append(h.spells, s)
	}
}

func roomOf(n int) string { return fmt.Sprint(" room r", n) }

// has reports whether the run has a trouble of one of these kinds.
func (h *half) has(kinds ...trouble) bool {
	return slices.ContainsFunc(h.spells, func(s spell) bool { return slices.Contains(kinds, s.what) })
}

// during returns a spell of this kind that lasts now, or has ended less than after ago. The
// condition also selects one.
func (h *half) during(what trouble, after time.Duration, condition func(spell) bool) (spell, bool) {
	now := time.Since(h.start)
	i := slices.IndexFunc(h.spells, func(s spell) bool {
		return s.what == what && s.from <= now && now < s.until+after && (condition == nil || condition(s))
	})
	if i < 0 {
		return spell{}, false
	}
	return h.spells[i], true
}

// thaw waits until p goes on.
func (p *process) thaw() {
	for {
		s, frozen := p.during(freeze, 0, func(s spell) bool { return s.process == p.number })
		if !frozen {
			return
		}
		time.Sleep(s.until - time.Since(p.start))
	}
}

// A way is what happens to one request.
type way struct {
	fault  fault
	answer time.Duration // after this time; the table performs the request after a part of it
	lands  time.Duration
}

// wayOf draws what happens to a request that is sent now.
func (p *process) wayOf(k ratelimit.Key) way {
	hash := fnv.New64a()
	_, _ = fmt.Fprint(hash, k, p.number)
	random := rand.New(rand.NewPCG(p.seed^hash.Sum64(), uint64(time.Since(p.start))))
	w := way{answer: time.Duration(2_000_000 + random.Int64N(10_000_000))}
	if s, slow := p.during(slowTable, 0, nil); slow {
		later := s.most * 1_000_000
		if !s.steady {
			later = random.Int64N(later)
		}
		w.answer += time.Duration(later)
	}
	w.lands = time.Duration(random.Int64N(int64(w.answer)))
	if s, failing := p.during(failingKey, 0, func(s spell) bool { return s.key == k.UserID }); failing {
		w.fault = s.fault
	} else if _, lossy := p.during(lossyTable, 0, nil); lossy {
		w.fault = []fault{lostAnswer, lostRequest, "", "", "", "", "", "", "", ""}[random.IntN(10)]
	}
	return w
}

// send carries a request to the table, and its answer back.
func (p *process) send(ctx context.Context, k ratelimit.Key, perform func(context.Context)) error {
	p.thaw()
	if err := ctx.Err(); err != nil {
		return err
	}
	w, performed := p.wayOf(k), make(chan struct{})
	switch w.fault {
	case throttled:
		return &ratelimit.StoreError{Failure: ratelimit.NotApplied, What: "throttled"}
	case denied:
		return &ratelimit.StoreError{Failure: ratelimit.Misconfigured, What: "denied"}
	case failedBefore:
		return errors.New("500")
	case "", lostAnswer: // it is performed even if nobody waits any more
		time.AfterFunc(w.lands, func() { perform(context.WithoutCancel(ctx)); close(performed) })
	default:
	}
	answered := time.NewTimer(w.answer)
	defer answered.Stop()
	if w.fault != "" {
		answered.Stop()
	}
	defer p.thaw()
	select {
	case <-answered.C:
		<-performed
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Update implements [ratelimit.Store]. A request that lands after its decision has left
// writes to variables that nobody reads any more.
func (p *process) Update(ctx context.Context, w ratelimit.Write) (ratelimit.Item, bool, error) {
	var item ratelimit.Item
	var done bool
	var landed time.Time
	first := p.leaves(w)
	if err := p.send(ctx, w.Key, func(ctx context.Context) {
		item, done, _ = p.store.Update(ctx, w)
		landed = time.Now()
		p.lands(w, first, done)
	}); err != nil {
		return ratelimit.Item{}, false, err
	}
	if w.Now == 0 { // a probe
		p.shown(w.Key, landed)
	}
	return item, done, nil
}

// Read implements [ratelimit.Store].
func (p *process) Read(ctx context.Context, k ratelimit.Key) (ratelimit.Item, error) {
	var item ratelimit.Item
	if err := p.send(ctx, k, func(ctx context.Context) { item, _ = p.store.Read(ctx, k) }); err != nil {
		return ratelimit.Item{}, err
	}
	return item, nil
}

// Delete implements [ratelimit.Store]. Nobody resets here.
func (p *process) Delete(context.Context, ratelimit.Key) error { return errors.New("no resets") }

// run plays a run, and judges it.
func (h *half) run() {
	h.start = time.Now()
	var clients sync.WaitGroup
	for i := range 160 {
		a := h.drawAction(i)
		clients.Go(func() {
			time.Sleep(a.at)
			h.act(a)
		})
	}
	clients.Wait()
	time.Sleep(2 * longest) // until all spells are over, and everything has arrived
	h.judgeAdmitted()
	h.judgeCounts()
}

// fail notes what is wrong. The first one counts.
func (h *half) fail(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, "VIOLATION: "+fmt.Sprintf(format, args...))
	h.wrong = append(h.wrong, fmt.Sprintf(format, args...))
}

func (h *half) line(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, fmt.Sprintf("%8.3f  ", time.Since(h.start).Seconds())+fmt.Sprintf(format, args...))
}

// Tables that are slow or fail for one key, processes that stand still, and two versions of
// a page that are at work at once break no promise.
func TestHalfBrokenAndHalfDeployed(t *testing.T) {
	prove.Explain(t, "simulate")
	first, last := uint64(1), prove.Bound(testkit.Bound[uint64](30, 240), 20_000)
	switch {
	case *oneSeed > 0:
		first, last = *oneSeed, *oneSeed
	case *seedsFlag > 0:
		first, last = *firstSeed, *firstSeed+*seedsFlag-1
	}
	total := stats{}
	for seed := first; seed <= last; seed++ {
		var h *half
		synctest.Test(t, func(*testing.T) {
			h = newHalf(seed)
			h.run()
		})
		if len(h.wrong) > 0 {
			t.Fatalf("%s\n\nThe limits: %q; rooms: %v\nThe spells: %+v\n%s\n\nRun it again: go test ./internal/proofs/simulate -run TestHalf -seed %d",
				h.wrong[0], h.texts, h.rooms, h.spells, strings.Join(h.lines[max(0, len(h.lines)-*linesFlag):], "\n"), seed)
		}
		total.add(h.stats())
	}
	if *oneSeed == 0 {
		halves = total
	}
}

// halves is what TestHalfBrokenAndHalfDeployed adds to the figures of TestSimulation, which
// runs after it.
var halves stats

// lets returns how many actions of r may run from one time to another, both included.
func lets(r policy.Rate, from, to int64) int64 {
	window, passed, cost := r.Window.Milliseconds(), to-from, max(1, r.Cost)
	switch {
	case r.Unit != "": // its windows begin at other times
		return r.Limit / cost * (passed/window + 2)
	case r.Kind == "log":
		return r.Limit / cost * (passed/window + 1)
	case r.Kind == "lockout": // the end of a series, and others that each last until the lock or the window is over
		return r.Limit - 1 + r.Limit*(passed/min(window, r.Lock.Milliseconds())+1)
	case r.Kind == "sliding", r.Kind == "fixed" && r.Name != "": // a write that lands in the next period, or window, counts there
		to += 5000
	case r.Kind == "bucket":
		return (max(r.Burst, r.Limit) + passed*r.Limit/window) / cost
	}
	return r.Limit / cost * (to/window - from/window + 1)
}
