package simulate_test

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/proofs/oracle"
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

	frozenUntil int64              // it stands still until then
	stoodStill  int64              // for how long in freezes the clock stood still that measures decisions, in all
	balances    map[owner]*balance // of prepaid limits

	alone  map[owner]*alone  // what it admitted alone
	seen   map[itemKey]*seen // what it knows of each item
	looked int64             // when it last began to read the live limits
	follow *documents        // the live limits that it has to follow
	blocks *documents        // and the blocks
}

// skews are how far ahead clocks are. The last one breaks the assumption of the
// contract, which is a difference of at most 2 s.
var skews = []int64{0, 0, 5, 2000, 90_000}

func (s *sim) newInstance(number int) *instance {
	in := &instance{sim: s, number: number, alone: map[owner]*alone{}, balances: map[owner]*balance{}, seen: map[itemKey]*seen{}, looked: math.MinInt64 / 2}
	in.ahead = s.skew()
	in.limiter = &ratelimit.Limiter{Store: in, Memory: ratelimit.NewMemory(memory), Now: in.clock, NewBudget: in.newBudget}
	if s.prepaid() {
		in.limiter.Memory.Crowd = smallCrowd
	}
	in.follower = &live.Follower{Source: in, Guards: []limits.Guard{s.guard()}, Now: in.clock}
	in.follow, in.blocks = &documents{}, &documents{}
	return in
}

// skew draws how far ahead a clock is.
func (s *sim) skew() int64 {
	if s.far {
		return skews[s.random.IntN(len(skews))]
	}
	return skews[s.random.IntN(slices.Index(skews, s.apart)+1)]
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
	answers     int             // attempts that the store answered
	asked       map[string]bool // the users and other subjects for whose items requests were sent
	barred      bool            // a circuit was open, so nothing may be sent
	writing     bool            // the attempt at hand is an update
	ended       bool
	endedAt     int64
	refused     bool     // it has ended, and was told limited
	unsure      bool     // an update had an unknown outcome
	last        *landing // the last attempt that was answered

	call    call
	parts   []*op         // if it counts in several items: the decision about each
	subject string        // of a part; empty: the user
	whole   *op           // of a part: the decision
	shadow  bool          // a guard in shadow mode asks
	turn    *op           // the part whose turn it is
	decided bool          // of a part: it was admitted or refused
	lost    bool          // of a part: its last attempt got no answer
	gives   *op           // the part of a check or a renewal that this one gives back
	refusal *landing      // the last mark's refusal, if nothing was answered since
	marked  *record       // what it relies on by its mark; nil: its own count, or nothing
	alone   bool          // of a part: it was admitted from memory
	earlier bool          // of a part: that was before others of the instance, which the models have noted already
	giving  bool          // it gives back
	spent   bool          // it had no time left for an attempt
	anew    bool          // what it sends next begins another question to the store
	held    *alone        // of a part: what the instance admitted alone, when o began to give back
	vain    bool          // of a part of a renewal: its slots were gone when that began
	own     *alone        // of a part: what the instance admitted alone, with this part; nil: without it
	shown   *seen         // and what it knew of the item
	holding int64         // of a check: the most that its visit holds of a lease
	given   int64         // of a reservoir's write under way: what a landing has of it
	again   bool          // its last attempt got no answer
	ownAt   oracle.Moment // when this part counts there
	shownAt oracle.Moment
}

// send decides a call on an instance. Done gets the answer, unless the caller has left.
// A frozen instance gets the call when it goes on.
func (in *instance) send(v ratelimit.Op, c call, leaves int64, done func(*op, ratelimit.Decision, error)) {
	s := in.sim
	if s.now < in.frozenUntil {
		s.at(in.frozenUntil, func() { in.send(v, c, leaves, done) })
		return
	}
	if in.dead {
		in = s.instances[in.number]
	}
	t, now := in.terms(c)
	if (v == ratelimit.Check || v == ratelimit.Status) && t.Block != (live.Block{}) {
		s.stats[blocked]++
		return
	}
	if t.Exempt() {
		s.stats["calls while the mode is off"]++
		return
	}
	if s.violation != "" || in.refused(v, c, t, now) {
		return
	}
	shadow := t.Mode == "shadow"
	if shadow { // as a guard does
		s.withoutPlaces(t.Limit)
		t.Limit = t.Limit.AtOnce()
		s.stats["decisions in shadow mode"]++
	}
	s.stats["decisions"]++
	s.stats["of these, "+string(v)+" requests"]++
	o := in.newOp(v, c, t)
	o.leaves, o.shadow = leaves, shadow
	for _, p := range o.parts {
		p.shadow, p.vain = shadow, v == ratelimit.Renew && p.inVain()
	}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	s.line("%s: count %d, partial %v, receipt %d, place %d, subjects %v, by instance %d (%d ms ahead), limit %s",
		o.name, o.request.Count, c.Partial, c.At, c.ReadyAt, c.subjects, in.number, in.ahead, o.terms.text)
	o.barred, o.holding = o.bar(), o.mayHold()
	s.start(o, func() {
		d, err := o.decide()
		if o.ctx.Err() != nil {
			s.stats["callers who gave up"]++
		}
		o.cancel()
		for _, p := range append(o.parts, o) {
			p.ended, p.endedAt, p.refused = true, s.now, err == nil && d.Reason == ratelimit.Limited
		}
		s.mix(int64(len(o.name)), d.Used, d.Granted, int64(d.Wait), d.ResetAt, int64(d.Requests), d.At)
		s.line("%s: %s %s, granted %d, used %d of %d, wait %d, receipt %d, readyAt %d, %d requests, error %v",
			o.name, d.Reason, d.LimitedBy, d.Granted, d.Used, d.Limit, d.Wait.Milliseconds(), d.At, d.ReadyAt, d.Requests, err)
		if len(o.parts) > 0 {
			s.ledger.judgeAll(o, d, err)
		} else {
			if last := in.given(o); last != 0 && (o.again || in.others(o)) {
				alone := in.aloneOf(o.owner())
				alone.kept++
				alone.furthest = max(alone.furthest, last)
			}
			s.ledger.judge(o, d, err)
		}
		if done != nil && s.now < o.leaves {
			done(o, d, err)
		}
	})
}

// newOp returns the decision of a call by the terms t, with one part for each item that
// counts it, if there are several. The id is what the ledger knows a part by.
func (in *instance) newOp(v ratelimit.Op, c call, t live.Terms) *op {
	s := in.sim
	made := func(r ratelimit.Request, p policy.Policy) *op {
		r.Policy, r.Shared = p, t.Shared
		o := &op{in: in, call: c, request: r, terms: s.of(p), kind: v, id: r.ID, began: s.now, now: in.millis()}
		if r.ReadyAt != 0 {
			o.id = placeID(r)
		}
		if r.Group != "" {
			o.id = r.Activity + " " + o.id
		}
		if r.For != "" {
			o.id = r.For + " " + o.id
		}
		o.name = r.UserID + " " + string(v) + " " + o.id
		return o
	}
	o := made(c.Request, t.Limit)
	most := o.terms.numbers.Most
	if len(t.Subjects) > 0 && v != ratelimit.Reset {
		o.parts = append(o.parts, made(c.Request, t.Limit))
		for _, sub := range t.Subjects {
			r := c.Request
			r.UserID, r.For, r.Clear = sub.UserID, c.UserID, false
			p := made(r, sub.Limit)
			p.subject = sub.Name
			o.parts, most = append(o.parts, p), min(most, p.terms.numbers.Most)
		}
	}
	for _, p := range o.parts {
		p.whole = o
	}
	if !byReceipt(v) && !c.Partial {
		for _, p := range append(o.parts, o) {
			p.request.Count = min(c.Count, most)
		}
	}
	return o
}

func (o *op) decide() (ratelimit.Decision, error) {
	if len(o.parts) == 0 {
		return o.in.limiter.Decide(o.ctx, o.kind, o.request)
	}
	var parts []ratelimit.Part
	for _, p := range o.parts {
		parts = append(parts, ratelimit.Part{Request: p.request, Subject: p.subject})
	}
	return o.in.limiter.DecideAll(o.ctx, o.kind, parts, o.shadow)
}

// holdsSlots reports whether one of the limits of o is a log.
func (o *op) holdsSlots() bool {
	return slices.ContainsFunc(append(o.parts, o), func(p *op) bool { return p.terms.HasLog() })
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
