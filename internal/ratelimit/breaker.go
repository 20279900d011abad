package ratelimit

import (
	"context"
	"errors"
	"sync"
	"time"
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
func (b *breaker) ended(k Key, t *tries, failed *StoreError, now time.Time) {
	k.Window = 0
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case failed == nil, failed.noState():
		b.cause = nil
		delete(b.throttled, k)
	case t.requests == 0, errors.Is(t.caller.Err(), context.Canceled):
		// Nothing was sent, or the caller left. Neither says anything about the
		// store.
	case t.probing && b.cause == nil:
		// The circuit of k stays as it is: open, or closed meanwhile by another
		// answer.
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

// noState reports whether the store answered, but the answer shows nothing that
// a memory could keep.
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
