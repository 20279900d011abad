package histories_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// judge turns an operation and its attempts into the parts that the model
// knows.
func (h *history) judge(in *instance, o op, sent []*dynamotest.Attempt, err error) {
	unsure, applied := false, 0
	for _, a := range sent {
		if a.Op == "GetItem" || a.Probes() {
			continue
		}
		unsure = unsure || a.Fault.Unknown()
		if a.Fault.Unknown() && a.Fault.Applied() && a.Fault != dynamotest.Late {
			applied++
		}
	}
	h.count(o, sent)
	c, d := *o.call, o.answer
	asked := slices.ContainsFunc(sent, func(a *dynamotest.Attempt) bool { return !a.Probes() })
	if asked && (c.op == ratelimit.Release || c.op == ratelimit.Reset) { // an open circuit sends none, so the memory is as true as before
		in.doubted = o.end
	}
	for range applied { // each lost attempt by itself, because a release or a reset may come between two of them
		h.add(o, maybe)
		o.again = true
	}
	o.again = false
	switch {
	case err != nil || d.Reason == ratelimit.Unavailable:
		if len(sent) > 0 && sent[len(sent)-1].Fault == dynamotest.Pass {
			h.failed(fmt.Errorf("%v is answered %v by the table, and yet is an outage: %w", c, *d, err))
		}
		if (h.seed+uint64(o.begin))%2 == 0 || h.system[c.tier].Queues() { // the model knows no places that the memory gave
			in.cold(h.now)
		}
	case c.op == ratelimit.Check && d.Reason == ratelimit.Limited && len(sent) == 0:
		o.begin = max(h.since(c.now-1000), in.doubted) // it was true at some moment of the last second
		h.add(o, whole)
	case unsure && c.op != ratelimit.Status && (c.op != ratelimit.Check || d.Reason == ratelimit.OK || d.Reason == ratelimit.Delayed):
		h.add(o, effect)
		h.add(o, figures)
	case unsure && d.Reason == ratelimit.Duplicate:
		h.failed(fmt.Errorf("%v: duplicate after an attempt of unknown outcome", c))
	default:
		h.add(o, whole)
	}
	if (c.op == ratelimit.Check || c.op == ratelimit.Renew) && d.At != 0 && d.Reason == ratelimit.OK && err == nil {
		h.mu.Lock()
		h.receipts = append(h.receipts, receipt{call: c, granted: d.Granted})
		h.receipts[len(h.receipts)-1].call.at = d.At
		h.mu.Unlock()
	}
}

// count notes the faults, and the attempts that are late.
func (h *history) count(o op, sent []*dynamotest.Attempt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range sent {
		if a.Fault != dynamotest.Pass {
			h.faults[a.Fault]++
		}
		if a.Fault == dynamotest.Late && a.Op != "GetItem" && !a.Probes() {
			c := *o.call
			c.part = maybe
			h.late = append(h.late, &delivery{a, op{client: instances + 1, call: &c, begin: o.begin}})
		}
	}
}

func (h *history) add(o op, p part) {
	c := *o.call
	c.part = p
	o.call = &c
	h.record(o)
}

// since returns when the first round of at least this time began.
func (h *history) since(now int64) int64 {
	for _, r := range h.rounds {
		if r.now >= now {
			return r.begin
		}
	}
	return h.rounds[len(h.rounds)-1].begin
}

// draw draws what a client does next. If actions of two activities cost differently, the
// activity has its own policy.
func (h *history) draw(random *rand.Rand) (*call, bool) {
	c, ok := h.drawAny(random)
	if h.system.mixed() {
		c.tier = len(c.id) % 2
	}
	return c, ok
}

func (h *history) drawAny(random *rand.Rand) (*call, bool) {
	now := h.clock.Load()
	c := &call{now: now, tier: random.IntN(len(h.system))}
	t := h.system[c.tier]
	queue := t.Queues()
	switch what := random.IntN(20); {
	case what < 5 && !queue:
		return c, h.drawRelease(c, t.top > 0 && random.IntN(2) == 0, random)
	case what == 5 && !queue && random.IntN(3) == 0:
		c.op, c.id, c.n = ratelimit.Reset, "reset", 1
	case what < 8:
		c.op, c.id, c.n = ratelimit.Status, "status", 1+random.Int64N(min(3, t.numbers.Most))
		c.partial = !queue && random.IntN(2) == 0
	case what < 12 && !queue:
		c.op, c.id, c.partial = ratelimit.Check, fmt.Sprint("p", random.Uint32()), true
		c.n = 1 + random.Int64N(min(t.numbers.Most+1, 5))
		if random.IntN(4) == 0 { // rarely, because a lost answer of 100 may mean any of 100 numbers
			c.n = 1 + random.Int64N(t.numbers.Most+1)
		}
	default:
		c.op = ratelimit.Check
		size := random.Int64N(3)
		c.n = 1 + size*max(1, h.least()/6)%h.least()
		c.id = h.id(fmt.Sprint("r", random.IntN(2), "x", c.n), now)
	}
	return c, true
}

// least returns the most actions that a request can take in every tier.
func (h *history) least() int64 {
	least := h.system[0].numbers.Most
	for _, t := range h.system {
		least = min(least, t.numbers.Most)
	}
	return least
}

// id returns the id with this name. It is a new one if the store may have
// forgotten the old one.
func (h *history) id(name string, now int64) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	first, ok := h.epochs[name]
	if !ok || now-first > remembered {
		first = now
		h.epochs[name] = now
	}
	return fmt.Sprint(name, "@", first-start)
}

// drawRelease draws the release of a check whose receipt a client has, or the renewal of
// its slots. It can be a receipt of before the last renewal.
func (h *history) drawRelease(c *call, slots bool, random *rand.Rand) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.receipts) == 0 {
		return false
	}
	r := h.receipts[max(0, len(h.receipts)-1-random.IntN(3))]
	c.op, c.id, c.at, c.n = ratelimit.Release, r.call.id, r.call.at, r.granted
	switch {
	case slots:
		c.op = ratelimit.Renew
	case c.n > 1 && random.IntN(3) == 0:
		c.n--
	}
	c.clear = c.op == ratelimit.Release && h.system[c.tier].HasLockout() && random.IntN(3) == 0
	return c.now-c.at <= remembered
}

// faults draws the faults of the attempts of one call.
func faults(random *rand.Rand) []dynamotest.Fault {
	kinds := append(dynamotest.Faults(), dynamotest.Late, dynamotest.Late, dynamotest.Late)
	list := make([]dynamotest.Fault, 4)
	for i := range list {
		if random.IntN(4) == 0 {
			list[i] = kinds[random.IntN(len(kinds))]
		}
	}
	return list
}
