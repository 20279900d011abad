package ratelimit

import (
	"context"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/retry"
)

// A probe finds out whether a store that was away answers again. It sends a write
// that the store always refuses. So it needs what a decision needs, and it counts
// nothing, also if its answer is late or lost.
//
// The decision that probes waits for at most longestProbe. A store can be slower
// than that, and still quick enough for a closed circuit. Therefore the probe goes
// on without its decision, for as long as a closed circuit waits for an attempt. An
// answer closes the circuit, however late it is.
//
// For example, the table answers after 300 ms again, and a decision may take 1 s:
//
//	second  event
//	5       a decision probes; at 5.25 it decides from memory
//	5.3     the probe is answered and closes the circuit
//	6       a decision asks the table
const (
	// longestProbe is how long a decision waits for its probe. So an instance
	// spends at most 5 % of an outage waiting.
	longestProbe = 250 * time.Millisecond

	// tick is the step in which the time of a probe is counted.
	tick = 25 * time.Millisecond
)

// nothing is an update whose guard contradicts itself.
var nothing = policy.Update{
	If:   [][]policy.Term{{policy.Missing("probe"), policy.Exactly("probe", 0)}},
	Acts: []policy.Act{{Verb: policy.Delete, Attr: "probe"}},
}

// probe returns nil if the store answers a probe while the decision waits for it,
// and there is time left to ask the store as usual: for three attempts that take
// as long as the probe. Otherwise the answer only closes the circuit.
func (t *tries) probe(key Key) error {
	l := t.limiter
	if l.Attempts != nil || l.Timeout == 0 { // nothing runs beside a decision
		t.probing = true
		defer func() { t.probing = false }()
		return t.refused(key)
	}
	t.requests++
	began := time.Now()
	lasts, _ := (&retry.Budget{Deadline: began.Add(l.Timeout), Connected: l.connected.Load}).Next(t.ctx, false)
	answer := make(chan error, 1)
	go func() {
		ctx, stop := awake(context.WithoutCancel(t.ctx), lasts)
		defer stop()
		p := &tries{limiter: l, ctx: ctx, caller: context.Background(), budget: &patience{}, probing: true}
		answer <- p.refused(key)
	}()
	waited := time.NewTimer(min(longestProbe, lasts))
	defer waited.Stop()
	select {
	case err := <-answer:
		if end, _ := t.ctx.Deadline(); err != nil || time.Until(end) >= 3*time.Since(began) {
			return err
		}
	case <-waited.C:
	case <-t.ctx.Done():
	}
	return &StoreError{Failure: Unknown, What: tooLate, Err: errProbe}
}

// refused sends a write that the store refuses. It tells the breaker the result,
// and the memory the item.
func (t *tries) refused(key Key) error {
	l := t.limiter
	var item Item
	err := t.send(true, func(ctx context.Context) (err error) {
		item, _, err = l.Store.Update(ctx, Write{Key: key, Update: nothing})
		return err
	})
	l.breaker.ended(key, t, asStoreError(err), l.Clock())
	if err == nil {
		l.learn(key, item, t.asked)
	}
	return err
}

// patience is the budget of a probe that goes on without its decision: attempts
// without a limit of their own, until the context ends.
type patience struct{ pause retry.Pause }

func (p *patience) Next(ctx context.Context, failed bool) (time.Duration, bool) {
	if failed {
		p.pause.First, p.pause.Longest = tick, 4*tick
		p.pause.Wait(ctx)
	}
	return 0, ctx.Err() == nil
}

// awake returns a context that ends when this process has run for d. Lambda
// freezes an instance after it responds. A freeze counts as at most a tick, so
// that an answer which came meanwhile is still read.
func awake(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	go func() {
		defer stop()
		ticks := time.NewTicker(tick)
		defer ticks.Stop()
		for ; d > 0; d -= tick {
			select {
			case <-ticks.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, stop
}
