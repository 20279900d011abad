package ratelimit_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cric-talk/guards/internal/dynamotest"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// minuteAndDay is the documented example of several limits.
var minuteAndDay = Several{
	{"minute", FixedWindow{Limit: 10, Window: time.Minute}},
	{"day", FixedWindow{Limit: 200, Window: 24 * time.Hour}},
}

// subjects are the ways of limiting as they are used, and what each admits at
// once.
var subjects = map[string]struct {
	policy   Policy
	capacity int
}{
	"fixed window":   {FixedWindow{Limit: 10, Window: time.Minute}, 10},
	"interval":       {TokenBucket{Limit: 1, Window: 5 * time.Second, Burst: 1, Keep: time.Hour}, 1},
	"bucket":         {TokenBucket{Limit: 10, Window: time.Minute, Burst: 15}, 15},
	"log":            {SlidingLog{Limit: 20, Window: 12 * time.Hour}, 20},
	"counter":        {SlidingWindow{Limit: 20, Window: time.Hour}, 20},
	"wide counter":   {SlidingWindow{Limit: 1000, Window: time.Hour}, 24},
	"reservoir":      {Reservoir{Limit: 10, Window: 10 * time.Second, Ahead: 15 * time.Minute}, 10},
	"several limits": {minuteAndDay, 10},
}

// 24 callers at once on one key: exactly the capacity is admitted, and a
// reservoir gives the others the places that follow.
func TestExactlyTheCapacityUnderARace(t *testing.T) {
	const callers = 24
	for name, subject := range subjects {
		for kind, open := range stores {
			t.Run(name+"/"+kind, func(t *testing.T) {
				l := &Limiter{Store: open(t), Timeout: 20 * time.Second, Now: func() time.Time { return start }}
				var mu sync.Mutex
				allowed, places := 0, map[int64]int{}
				var wg sync.WaitGroup
				for i := range callers {
					wg.Go(func() {
						d, err := l.Check(t.Context(), Request{UserID: "u", Activity: "act", Policy: subject.policy, Count: 1, ID: strconv.Itoa(i)})
						if err != nil {
							t.Error(err)
						}
						mu.Lock()
						defer mu.Unlock()
						if d.Allowed {
							allowed++
						}
						if d.Reason == Delayed {
							places[d.ReadyAt-start.UnixMilli()]++
						}
					})
				}
				wg.Wait()
				if allowed != subject.capacity {
					t.Errorf("%d of %d admitted at once, want %d", allowed, callers, subject.capacity)
				}
				if name == "reservoir" {
					if diff := cmp.Diff(map[int64]int{10_000: 10, 20_000: 4}, places); diff != "" {
						t.Errorf("places by the start of their window (-want +got):\n%s", diff)
					}
				}
			})
		}
	}
}

// A cold process needs one request for a decision where the policy has one
// branch, and at most two elsewhere: counted, one caller after the other.
func TestRequestsOfADecision(t *testing.T) {
	for name, most := range map[string]int{
		"fixed window": 1, "interval": 1, "counter": 1, "wide counter": 2, "bucket": 2, "log": 2, "reservoir": 2, "several limits": 2,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := dynamotest.NewProxy(t)
			store := dynamostore.New(dynamotest.Config(proxy.URL()), dynamotest.Table(t))
			p := subjects[name].policy
			_, window := p.Quota()
			c := &clock{Time: start}
			worst, all := 0, 0
			const decisions = 60
			for i := range decisions {
				c.Time = c.Add(time.Duration(i%7) * window / 60)
				cold := &Limiter{Store: store, Timeout: 5 * time.Second, Now: c.now}
				d, err := cold.Check(t.Context(), Request{UserID: "u", Activity: "act", Policy: p, Count: 1, ID: strconv.Itoa(i)})
				if err != nil {
					t.Fatal(err)
				}
				worst, all = max(worst, d.Requests), all+d.Requests
			}
			counts := proxy.Counts()
			if worst > most || counts["UpdateItem"] != all || len(counts) != 1 {
				t.Errorf("a decision takes up to %d requests, want at most %d; %v in all for %d decisions", worst, most, counts, decisions)
			}
			t.Logf("%.2f requests a decision by cold processes", float64(all)/decisions)
		})
	}
}

// Decisions in memory and in DynamoDB are the same, over many random steps: the
// clock goes on, and sometimes back.
func TestMemoryAndDynamoDBDecideAlike(t *testing.T) {
	steps := 10_000
	if testing.Short() {
		steps = 300
	}
	for name, subject := range subjects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps := steps
			if name == "wide counter" { // the same policy as the other counter, and four times as slow
				steps /= 10
			}
			c := &clock{Time: start}
			there := &Limiter{Store: stores["dynamodb"](t), Timeout: 10 * time.Second, Cache: NewCache(4), DenyOutage: true, Now: c.now}
			here := &Limiter{Store: new(memstore.Store), Cache: NewCache(4), DenyOutage: true, Now: c.now}
			seed := rand.Uint64()
			random := rand.New(rand.NewPCG(seed, 1))
			var receipts []Request
			for n := range steps {
				step := randomStep(random, c, subject.policy, n, &receipts)
				got, err := step.ask(t, there)
				if err != nil {
					t.Fatalf("seed %d, step %d: %+v: %v", seed, n, step.Request, err)
				}
				want, err := step.ask(t, here)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Decision{}, "Requests")); diff != "" {
					t.Fatalf("seed %d, step %d: %+v (-memory +dynamodb):\n%s", seed, n, step.Request, diff)
				}
				if got.At != 0 {
					step.At = got.At
					receipts = append(receipts, step.Request)
				}
			}
		})
	}
}

// A step is a request and what to ask with it.
type step struct {
	Request
	op int
}

func randomStep(random *rand.Rand, c *clock, p Policy, n int, receipts *[]Request) step {
	limit, window := p.Quota()
	_, queue := p.(Reservoir)
	pause := time.Duration(random.Int64N(int64(window) / 4))
	if _, log := p.(SlidingLog); !log && random.IntN(10) == 0 { // which of a log's old slots are used again is chance
		pause = -pause / 2
	}
	c.Time = c.Add(pause).Truncate(time.Millisecond)
	r := Request{UserID: fmt.Sprint("u", random.IntN(3)), Activity: "act", Policy: p, Count: 1, ID: strconv.Itoa(n)}
	op := random.IntN(20)
	switch last := len(*receipts) - 1; {
	case op == 0 && last >= 0 && !queue:
		r = (*receipts)[max(0, last-random.IntN(4))]
		return step{r, op}
	case op == 1:
		return step{r, op}
	case op == 2 && last >= 0: // the same again
		r = (*receipts)[max(0, last-random.IntN(4))]
		r.At = 0
	case !queue:
		r.Count = 1 + random.Int64N(min(limit, 4))
		r.Partial = random.IntN(3) == 0
	}
	return step{r, 2}
}

func (s step) ask(t *testing.T, l *Limiter) (Decision, error) {
	t.Helper()
	switch s.op {
	case 0:
		return l.Release(t.Context(), s.Request)
	case 1:
		return l.Status(t.Context(), s.Request)
	}
	return l.Check(t.Context(), s.Request)
}

// Whatever the clock does within a while, no more is admitted than the policy
// allows in so long.
func TestNoClockAdmitsOverTheLimit(t *testing.T) {
	for name, subject := range subjects {
		t.Run(name, func(t *testing.T) {
			limit, window := subject.policy.Quota()
			c := &clock{}
			l := &Limiter{Store: new(memstore.Store), Now: c.now}
			admitted := map[int64]int64{} // by the window in which they count
			for i := range 2000 {
				c.at(time.Duration(rand.Int64N(int64(window))).Truncate(time.Millisecond))
				d, err := l.Check(t.Context(), Request{UserID: "u", Activity: "act", Policy: subject.policy, Count: 1, ID: strconv.Itoa(i)})
				if err != nil {
					t.Fatal(err)
				}
				if d.Allowed {
					admitted[d.WindowKey]++
				}
			}
			if _, ok := subject.policy.(TokenBucket); ok {
				limit *= 2 // the burst, and what comes back in its window
			}
			for key, n := range admitted {
				if n > limit {
					t.Errorf("%d admitted in window %d, want at most %d", n, key, limit)
				}
			}
		})
	}
}

// A slot that was used again since is not given back with what it held before.
func TestALogGivesBackOnlyWhatIsThere(t *testing.T) {
	p := SlidingLog{Limit: 1, Window: time.Hour}
	now := start.UnixMilli()
	take, _ := p.Plan(now, 1)(nil)
	s := take.Apply(nil)
	plan, _ := p.Release(now, now, 1)
	back, ok := plan(s)
	if !ok || !back.Holds(s) {
		t.Fatalf("%v can't be given back in %v", back, s)
	}
	again, _ := p.Plan(now+1, 1)(back.Apply(s))
	if later := again.Apply(back.Apply(s)); back.Holds(later) {
		t.Errorf("%v holds in %v, where another action has the slot", back, later)
	}
}

// What a counter keeps does not grow, whatever pauses its user makes.
func TestACounterForgets(t *testing.T) {
	c := &clock{Time: start}
	p := SlidingWindow{Limit: 5, Window: time.Minute}
	store := new(memstore.Store)
	warm := NewCache(4)
	for i := range 500 {
		c.Time = c.Add(time.Duration(rand.Int64N(int64(25 * time.Minute))))
		l := &Limiter{Store: store, Cache: warm, Now: c.now}
		if _, err := l.Check(t.Context(), Request{UserID: "u", Activity: "act", Policy: p, Count: 1, ID: strconv.Itoa(i)}); err != nil {
			t.Fatal(err)
		}
	}
	item, err := store.Read(t.Context(), Key{UserID: "u", Activity: "act"})
	if err != nil || len(item.State) > 4 || len(item.IDs) > 3 {
		t.Errorf("%d counters and %d sets of ids are kept, %v, want a few", len(item.State), len(item.IDs), err)
	}
}
