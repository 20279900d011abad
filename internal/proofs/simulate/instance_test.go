package simulate_test

import (
	"context"
	"math"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// An instance is one process: a limiter with its memory, its clock and its live
// limits. It is also the network between that limiter and the store.
type instance struct {
	sim       *sim
	number    int
	limiter   *ratelimit.Limiter
	follower  *live.Follower
	ahead     int64 // by how much its clock differs, in milliseconds
	stepped   int64 // when its clock last stepped
	step      int64 // by how much its clock stepped back since then, in all
	downUntil int64 // until then the store is out of reach for it
	dead      bool  // it was killed

	frozenUntil int64               // until then it does nothing
	balances    map[string]*balance // of prepaid limits, by user

	alone  map[string]*alone // what it admitted alone, by user
	seen   map[counter]*seen // what it knows of each item; the id of a counter is the user's
	looked int64             // when it last began to read the live limits
	follow *documents        // what it has to follow
}

// skews are how far ahead clocks are. The last one breaks the assumption of the
// contract, which is a difference of at most 2 s.
var skews = []int64{0, 0, 5, 2000, 90_000}

func (s *sim) newInstance(number int) *instance {
	in := &instance{sim: s, number: number, alone: map[string]*alone{}, balances: map[string]*balance{}, seen: map[counter]*seen{}, looked: math.MinInt64 / 2}
	in.ahead = s.skew()
	in.limiter = &ratelimit.Limiter{Store: in, Memory: ratelimit.NewMemory(memory), Now: in.clock, NewBudget: in.newBudget}
	if s.prepaid() || len(s.shared) > 0 {
		in.limiter.Memory.Crowd = smallCrowd
	}
	in.follower = &live.Follower{Source: in, Guards: []limits.Guard{s.guard()}, Now: in.clock}
	in.follow = &documents{}
	return in
}

// skew draws how far ahead a clock is.
func (s *sim) skew() int64 {
	if s.far {
		return skews[s.random.IntN(len(skews))]
	}
	return skews[s.random.IntN(len(skews)-1)]
}

func (in *instance) millis() int64    { return in.sim.now + in.ahead }
func (in *instance) clock() time.Time { return time.UnixMilli(in.millis()) }

// stepClock sets the clock to another difference.
func (in *instance) stepClock() {
	to := in.sim.skew()
	in.sim.stats["clocks that stepped"]++
	in.step = max(in.step, in.ahead-to)
	in.sim.line("instance %d: the clock steps from %d ms ahead to %d ms", in.number, in.ahead, to)
	in.ahead, in.stepped = to, in.sim.now
}

// An op is one decision.
type op struct {
	in      *instance
	name    string
	request ratelimit.Request
	terms   *terms
	kind    ratelimit.Op
	id      string // of what it counts; a presented place counts under an id of its own
	began   int64  // true time
	now     int64  // by its instance's clock

	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool

	ctx         context.Context
	cancel      context.CancelFunc
	leaves      int64 // when the caller gives up
	attemptEnds int64
	attempts    int
	answers     int  // attempts that the store answered
	writing     bool // the attempt at hand is an update
	ended       bool
	refused     bool     // it has ended, and was told limited
	unsure      bool     // an update had an unknown outcome
	last        *landing // the last attempt that was answered

	parts []*op // if it counts in several items: the decision about each
	gives *op   // the part of a check that this one gives back
}

// send decides a request on an instance. Done gets the answer, unless the caller
// has left.
func (in *instance) send(v ratelimit.Op, r ratelimit.Request, tier string, leaves int64, done func(*op, ratelimit.Decision, error)) {
	s := in.sim
	s.stats["decisions"]++
	s.stats["of these, "+string(v)+" requests"]++
	t := in.terms(r.Activity, tier)
	r.Policy = t.Policy
	if !byReceipt(v) && !r.Partial {
		r.Count = min(r.Count, t.numbers.Most)
	}
	o := &op{in: in, request: r, terms: t, kind: v, id: r.ID, leaves: leaves, began: s.now, now: in.millis()}
	if r.ReadyAt != 0 {
		o.id = placeID(r)
	}
	if r.Group != "" {
		o.id = r.Activity + " " + o.id
	}
	o.name = r.UserID + " " + string(v) + " " + o.id
	o.ctx, o.cancel = context.WithCancel(context.Background())
	s.line("%s: count %d, partial %v, receipt %d, place %d, by instance %d (%d ms ahead), limit %s",
		o.name, r.Count, r.Partial, r.At, r.ReadyAt, in.number, in.ahead, t.text)
	s.start(o, func() {
		d, err := in.limiter.Decide(o.ctx, v, o.request)
		if o.ctx.Err() != nil {
			s.stats["callers who gave up"]++
		}
		o.cancel()
		o.ended, o.refused = true, err == nil && d.Reason == ratelimit.Limited
		s.mix(int64(len(o.name)), d.Used, d.Granted, int64(d.Wait), d.ResetAt, int64(d.Requests), d.At)
		s.line("%s: %s, granted %d, used %d of %d, wait %d, receipt %d, readyAt %d, %d requests, error %v",
			o.name, d.Reason, d.Granted, d.Used, d.Limit, d.Wait.Milliseconds(), d.At, d.ReadyAt, d.Requests, err)
		s.ledger.judge(o, d, err)
		if done != nil && s.now < o.leaves {
			done(o, d, err)
		}
	})
}

// of returns the terms of a policy.
func (s *sim) of(p policy.Policy) *terms {
	text := p.String()
	t, ok := s.byText[text]
	if !ok {
		t = newTerms(p)
		s.byText[text] = t
	}
	return t
}
