package ratelimit_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
)

// Decisions in memory and in DynamoDB are the same over many random steps. The
// clock goes forward, and sometimes back.
func TestMemoryAndDynamoDBDecideAlike(t *testing.T) {
	steps := repeats(600) // of each policy: more than 10,000 in all
	onEachSubject(t, func(t *testing.T, s subject) {
		t.Parallel()
		p := s.policy()
		c := newClock()
		there := &Limiter{Store: stores["dynamodb"](t), Timeout: 10 * time.Second, Memory: NewMemory(mib), Now: c.now}
		here := &Limiter{Store: new(memstore.Store), Memory: NewMemory(mib), Now: c.now}
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 1))
		hold := random.IntN(2) == 0
		var receipts []Request
		for n := range steps {
			step := randomStep(random, c, p, n, &receipts)
			step.Hold = hold
			got, err := step.ask(t, there)
			if err != nil {
				t.Fatalf("seed %d, step %d: %+v: %v", seed, n, step.Request, err)
			}
			want, err := step.ask(t, here)
			testkit.OK(t, err)
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Decision{}, "Requests")); diff != "" {
				t.Fatalf("seed %d, step %d: %+v (-memory +dynamodb):\n%s", seed, n, step.Request, diff)
			}
			if got.At != 0 {
				step.At, step.Count = got.At, max(1, got.Granted) // a delayed check is granted none, and can be repeated
				receipts = append(receipts, step.Request)
			}
		}
	})
}

// A step is a request and what to ask with it.
type step struct {
	Request
	op int
}

// randomStep moves the clock and draws a step. It asks again with earlier ids, and
// releases and renews with earlier receipts.
func randomStep(random *rand.Rand, c *clock, p policy.Policy, n int, receipts *[]Request) step {
	pause := time.Duration(random.Int64N(int64(longest(p)) / 4))
	if p.Rates()[0].Kind != "log" && random.IntN(10) == 0 { // which of a log's expired slots are used again is chance
		pause = -pause / 2
	}
	c.at(c.now().Add(pause).Truncate(time.Millisecond).Sub(start))
	r := request(p, strconv.Itoa(n), 1)
	r.UserID, r.Fallback = fmt.Sprint("u", random.IntN(3)), false
	op := random.IntN(20)
	switch last := len(*receipts) - 1; {
	case op == 0 && last >= 0 && !p.Queues():
		r = (*receipts)[max(0, last-random.IntN(4))]
		return step{r, op}
	case op == 1:
		return step{r, op}
	case op == 3 && last >= 0 && p.HasLog():
		return step{(*receipts)[max(0, last-random.IntN(4))], op}
	case op == 2 && last >= 0: // the same request again
		r = (*receipts)[max(0, last-random.IntN(4))]
		r.At = 0
	case !p.Queues():
		r.Count = 1 + random.Int64N(min(p.Max(), 4))
		r.Partial = random.IntN(3) == 0
	}
	return step{r, 2}
}

func (s step) ask(t *testing.T, l *Limiter) (Decision, error) {
	t.Helper()
	switch s.op {
	case 0:
		return l.Decide(t.Context(), Release, s.Request)
	case 1:
		return l.Decide(t.Context(), Status, s.Request)
	case 3:
		return l.Decide(t.Context(), Renew, s.Request)
	}
	return l.Check(t.Context(), s.Request)
}

// However the clock moves within a window, no more is admitted than the policy
// allows in that time.
func TestNoClockAdmitsOverTheLimit(t *testing.T) {
	onEachSubject(t, func(t *testing.T, s subject) {
		p := s.policy()
		window := p.Rates()[0].Window
		c := newClock()
		l := &Limiter{Store: new(memstore.Store), Now: c.now}
		admitted := map[int64]int64{} // by the window that counts them
		for i := range repeats(4000) {
			c.at(time.Duration(rand.Int64N(int64(window))).Truncate(time.Millisecond))
			if d := mustCheck(t, l, request(p, strconv.Itoa(i), 1)); d.Allowed {
				admitted[d.WindowKey]++
			}
		}
		// In one window a bucket admits its burst and as many actions as come back.
		// Several limits have no number of a window, so two windows count as one.
		most := remaining(p)
		if r := p.Rates()[0]; r.Burst > 0 || len(p.Rates()) > 1 {
			most += r.Limit
		}
		for key, n := range admitted {
			if n > most {
				t.Errorf("%d admitted in window %d, want at most %d", n, key, most)
			}
		}
	})
}
