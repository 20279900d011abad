package histories_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

const (
	instances = 3
	// lateness is how much later than its call a request can be performed, in
	// milliseconds.
	lateness = 4_000
	// remembered is how long an id is certainly remembered, with some reserve.
	remembered = 14_000
	start      = 1_700_000_003_000
)

// A rig is a set of instances. Each has an SDK client of its own, as in
// production.
type rig struct{ stores [instances]ratelimit.Store }

func newRig(t *testing.T, proxy *dynamotest.Proxy, table string) *rig {
	t.Helper()
	r := new(rig)
	for i := range r.stores {
		cfg, err := proxy.Config(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r.stores[i] = dynamostore.New(cfg, table)
	}
	return r
}

// An instance is a limiter with its own memory. It handles one request at a
// time, as a Lambda function does. All requests of a round come at the same
// time by its clock.
type instance struct {
	store   ratelimit.Store
	limiter *ratelimit.Limiter
	doubted int64 // the moment of its last release or reset
}

// cold replaces the instance by a new one, which knows nothing.
func (in *instance) cold(clock func() time.Time) {
	in.limiter = newLimiter(in.store, clock)
}

// newLimiter returns a limiter that knows nothing. A key is hot for it from four ids on.
func newLimiter(store ratelimit.Store, clock func() time.Time) *ratelimit.Limiter {
	l := &ratelimit.Limiter{
		Store: store, Memory: ratelimit.NewMemory(1 << 20), Now: clock,
		NewBudget: func() ratelimit.Budget { return new(dynamotest.Budget) },
	}
	l.Memory.Crowd = 4
	return l
}

// A history is what happened to one item.
type history struct {
	ctx    context.Context
	system system
	seed   uint64
	user   string
	random *rand.Rand
	clock  atomic.Int64 // Unix milliseconds
	moment atomic.Int64 // counts calls and answers, in real order

	instances [instances]*instance
	rounds    []round
	late      []*delivery

	mu       sync.Mutex
	ops      []op
	receipts []receipt
	epochs   map[string]int64 // when an id was first used
	faults   map[dynamotest.Fault]int
	errs     []error
}

// A round is a time during which the clock stands still.
type round struct{ now, begin int64 }

// An op is an operation with its answer. Begin and end are moments.
type op struct {
	client     int
	call       *call
	answer     *ratelimit.Decision
	begin, end int64
	again      bool // one more lost attempt of the same call: it takes effect, too, only after a release or a reset
}

type receipt struct {
	call    call
	granted int64
}

// A delivery is a request that is still on its way.
type delivery struct {
	attempt *dynamotest.Attempt
	op      op
}

func (r *rig) history(ctx context.Context, sys system, user string, seed uint64) *history {
	h := &history{
		ctx: ctx, system: sys, seed: seed, user: user, random: rand.New(rand.NewPCG(seed, 3)),
		epochs: map[string]int64{}, faults: map[dynamotest.Fault]int{},
	}
	h.clock.Store(start + h.random.Int64N(30_000))
	for i, store := range r.stores {
		h.instances[i] = &instance{store: store}
		h.instances[i].cold(h.now)
	}
	return h
}

func (h *history) now() time.Time { return time.UnixMilli(h.clock.Load()) }

// perform sends c to an instance, and records what happens.
func (h *history) perform(client int, in *instance, c *call, faults []dynamotest.Fault, attempts int) {
	plan := &dynamotest.Plan{Faults: faults, Patience: time.Millisecond, Attempts: attempts}
	ctx := plan.In(h.ctx)
	o := op{client: client, call: c, begin: h.moment.Add(1)}
	d, err := in.send(ctx, h, c)
	o.end, o.answer = h.moment.Add(1), &d
	h.judge(in, o, plan.Sent(), err)
}

// group reports whether two activities of a group count in the item.
func (h *history) group() bool {
	return h.system[0].Named() && (h.seed%2 == 0 || h.system.mixed())
}

func (in *instance) send(ctx context.Context, h *history, c *call) (ratelimit.Decision, error) {
	r := ratelimit.Request{
		UserID: h.user, Activity: "act", Policy: h.system[c.tier].Policy, Count: c.n, Partial: c.partial,
		ID: c.id, Fresh: c.partial, At: c.at, Clear: c.clear, Fallback: c.now%3 == 0,
	}
	if h.group() { // the id tells which activity the request is for
		r.Group, r.Activity = "act", []string{"post", "comment"}[len(c.id)%2]
	}
	return in.limiter.Decide(ctx, c.op, r)
}
