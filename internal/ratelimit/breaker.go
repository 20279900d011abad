package ratelimit

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/retry"
)

// probeEvery is how often one decision asks a store that was away.
const probeEvery = 5 * time.Second

// A breaker is a circuit breaker: during an outage it saves most decisions from
// waiting for their whole timeout. It opens when a decision ends as an outage,
// and closes with the next answer. While it is open, one decision in 5 s, the
// probe, asks the store. The zero breaker is closed.
//
// For example, the table goes down at second 0:
//
//	second  decision
//	0       waits for its whole timeout, fails, and opens the breaker
//	1 to 4  does not ask the store
//	5       the probe: waits for at most 250 ms, and decides without the store
//	6 to 9  does not ask the store
//	10      the probe: is answered, and closes the breaker. Then it is decided as usual
//
// Throttling concerns one key and not the whole table, so it opens the circuit of
// that key only. The windows of one user and activity are one key here, because
// the next window of a busy user is as busy.
type breaker struct {
	mu        sync.Mutex
	cause     *StoreError       // why the table's circuit is open; nil: it is closed
	probed    time.Time         // when the table was last probed, or its circuit opened
	throttled map[Key]time.Time // when an open key was last throttled or probed; Window is 0
}

// mostThrottled is how many keys can have an open circuit. They take at most
// 5 MB. If there are more, an arbitrary circuit closes.
const mostThrottled = 10_000

// CircuitOpen reports whether the circuit of the table is open.
func (l *Limiter) CircuitOpen() bool {
	table, _ := l.CircuitProbed(Key{})
	return !table.IsZero()
}

// CircuitProbed returns when the circuits of the table and of k were last probed
// or opened. The zero time stands for a closed circuit.
func (l *Limiter) CircuitProbed(k Key) (table, key time.Time) {
	k.Window = 0
	b := &l.breaker
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cause != nil {
		table = b.probed
	}
	return table, b.throttled[k]
}

// enter returns a nil cause if a decision about k may ask the store, and
// otherwise why a circuit is open. Probe reports whether the decision is a
// probe, which has to be quick.
func (b *breaker) enter(k Key, now time.Time) (probe bool, cause *StoreError) {
	k.Window = 0
	b.mu.Lock()
	defer b.mu.Unlock()
	throttled, open := b.throttled[k]
	switch {
	case open && !due(throttled, now):
		return false, errThrottled
	case b.cause != nil && !due(b.probed, now):
		return false, b.cause
	}
	if open {
		b.throttled[k] = now
	}
	if b.cause != nil {
		b.probed = now
	}
	return open || b.cause != nil, nil
}

// ended opens or closes circuits according to how the decision about k ended.
func (b *breaker) ended(k Key, t *attempts, failed *StoreError, now time.Time) {
	k.Window = 0
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case failed == nil, failed.noState():
		b.cause = nil
		delete(b.throttled, k)
	case t.requests == 0, errors.Is(t.caller.Err(), context.Canceled):
		// Nothing was sent, or the caller left: that says nothing about the store.
	case t.probing && b.cause == nil:
		// The circuit of k stays open, or closed meanwhile by another answer.
	case failed.Failure == NotApplied:
		b.cause = nil // the table answers, if only to say no
		b.throttle(k, now)
	default:
		if b.cause == nil {
			b.probed = now
		}
		b.cause = failed
		if t.answered {
			delete(b.throttled, k)
		}
	}
}

// noState reports whether the store answered without anything for a memory to keep.
func (e *StoreError) noState() bool { return e.Failure == Unreadable || e.Failure == Invalid }

// throttle opens the circuit of k, whose Window is 0.
func (b *breaker) throttle(k Key, now time.Time) {
	if b.throttled == nil {
		b.throttled = map[Key]time.Time{}
	}
	b.throttled[k] = now
	for other := range b.throttled {
		if len(b.throttled) <= mostThrottled {
			break
		}
		delete(b.throttled, other)
	}
}

// due reports whether it is time for a probe: 5 s have passed since the last
// one, or the clock has stepped back.
func due(probed, now time.Time) bool {
	age := now.Sub(probed)
	return age < 0 || age >= probeEvery
}

// errThrottled is the outage of a key whose last request was throttled.
var errThrottled = &StoreError{Failure: NotApplied, What: "the table is throttled"}

// A probe finds out whether a store that was away answers again. It sends a write
// that the store always refuses. So it needs what a decision needs, and it counts
// nothing, also if its answer is late or lost.
//
// The decision that probes waits for at most longestProbe. A store can be slower
// than that, and still quick enough for a closed circuit. Therefore the probe goes
// on without its decision, for as long as a closed circuit waits for an attempt. An
// answer closes the circuit, however late it is.
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
func (t *attempts) probe(key Key) error {
	l := t.limiter
	if l.NewBudget != nil || l.Timeout == 0 { // nothing runs beside a decision
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
		p := &attempts{limiter: l, ctx: ctx, caller: context.Background(), budget: &patience{}, probing: true}
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
func (t *attempts) refused(key Key) error {
	l := t.limiter
	var item Item
	err := t.send(true, func(ctx context.Context) (err error) {
		item, _, err = l.Store.Update(ctx, Write{Key: key, Update: nothing})
		return err
	})
	l.breaker.ended(key, t, asStoreError(err), l.Clock())
	if err == nil {
		now := l.Clock()
		l.Memory.Change(key, func(k Known) Known { return k.learn(item, t.began, now) })
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
