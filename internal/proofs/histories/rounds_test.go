package histories_test

import (
	"math/rand/v2"
	"sync"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// run makes the history: some rounds of concurrent calls, and a look at the end.
func (h *history) run() {
	for range 3 + h.random.IntN(3) {
		h.round()
	}
	h.deliver(func(*delivery) bool { return true })
	for i := range h.system {
		last := &instance{store: h.instances[0].store}
		last.cold(h.now)
		h.perform(instances, last, &call{op: ratelimit.Status, tier: i, id: "last", n: 1, now: h.clock.Load()}, nil, 1)
	}
}

func (h *history) round() {
	h.advance()
	var wg sync.WaitGroup
	for _, d := range h.take(func(*delivery) bool { return h.random.IntN(2) == 0 }) {
		wg.Go(func() { h.land(d) })
	}
	for i, in := range h.instances {
		random := rand.New(rand.NewPCG(h.random.Uint64(), 4))
		wg.Go(func() {
			for range 1 + random.IntN(2) {
				if c, ok := h.draw(random); ok {
					h.perform(i, in, c, faults(random), 1+random.IntN(4))
				}
				if random.IntN(12) == 0 {
					in.cold(h.now)
				}
			}
		})
	}
	wg.Wait()
}

// advance moves the clock: not at all, a little, to the end of a window, or far.
// What is on its way arrives within its time.
func (h *history) advance() {
	now := h.clock.Load()
	window := h.system[0].Rates()[0].Window.Milliseconds()
	next := now
	switch h.random.IntN(6) {
	case 0:
		next += 1 + h.random.Int64N(20)
	case 1:
		next += h.random.Int64N(1500)
	case 2:
		next += window - now%window - h.random.Int64N(2)
	case 3:
		next += h.random.Int64N(window)
	}
	h.deliver(func(d *delivery) bool { return next-d.op.call.now > lateness })
	h.clock.Store(next)
	h.rounds = append(h.rounds, round{next, h.moment.Add(1)})
}

// take removes the deliveries that which selects, and returns them.
func (h *history) take(which func(*delivery) bool) (taken []*delivery) {
	var left []*delivery
	for _, d := range h.late {
		if which(d) {
			taken = append(taken, d)
		} else {
			left = append(left, d)
		}
	}
	h.late = left
	return taken
}

func (h *history) deliver(which func(*delivery) bool) {
	for _, d := range h.take(which) {
		h.land(d)
	}
}

// land lets a late request arrive. It takes effect now or never.
func (h *history) land(d *delivery) {
	if err := d.attempt.Deliver(); err != nil {
		h.failed(err)
	}
	d.op.end = h.moment.Add(1)
	h.record(d.op)
}

func (h *history) record(o op) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, o)
}

func (h *history) failed(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.errs = append(h.errs, err)
}
