package ratelimit

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// probeEvery is how often one decision asks a store that was away.
	probeEvery = 5 * time.Second

	// longestProbe is how long that decision may take. So an instance spends at
	// most 5 % of an outage waiting.
	longestProbe = 250 * time.Millisecond
)

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
//	5       the probe: asks the store for at most 250 ms, and fails
//	6 to 9  does not ask the store
//	10      the probe: is answered, and closes the breaker
//
// Throttling concerns one key and not the whole table, so it leaves the breaker
// closed. Instead, the memory records it for that key (Known.Throttled), and
// one decision in 5 s probes that key.
type breaker struct {
	mu     sync.Mutex
	cause  *StoreError // why it is open; nil: it is closed
	probed time.Time   // when it was last probed or opened
}

// isOpen reports whether the breaker is open.
func (b *breaker) isOpen() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cause != nil
}

// CircuitProbed returns when the circuit breaker was last probed or opened. It
// returns the zero time if the breaker is closed.
func (l *Limiter) CircuitProbed() time.Time {
	l.breaker.mu.Lock()
	defer l.breaker.mu.Unlock()
	if l.breaker.cause == nil {
		return time.Time{}
	}
	return l.breaker.probed
}

// enter returns a nil cause if a decision may ask the store, and otherwise why
// the breaker is open. Probe reports whether the decision is the probe.
func (b *breaker) enter(now time.Time) (probe bool, cause *StoreError) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cause == nil {
		return false, nil
	}
	if !due(b.probed, now) {
		return false, b.cause
	}
	b.probed = now
	return true, nil
}

// set opens the breaker with a cause, or closes it with nil.
func (b *breaker) set(cause *StoreError, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cause == nil && cause != nil {
		b.probed = now
	}
	b.cause = cause
}

// due reports whether it is time for a probe: 5 s have passed since the last
// one, or the clock has stepped back.
func due(probed, now time.Time) bool {
	age := now.Sub(probed)
	return age < 0 || age >= probeEvery
}

// enter returns an error if the decision about key must not ask the store: the
// breaker is open, or key is throttled. Probe reports whether the decision is a
// probe, which has to be quick.
func (l *Limiter) enter(key Key, known Known, now time.Time) (probe bool, err error) {
	if !known.Throttled.IsZero() && !due(known.Throttled, now) {
		return false, errThrottled
	}
	probe, cause := l.breaker.enter(now)
	if cause != nil {
		return false, cause
	}
	if known.Throttled.IsZero() {
		return probe, nil
	}
	other := false // another decision began to probe this key
	l.Memory.Change(key, func(k Known) Known {
		switch {
		case k.Throttled.IsZero(): // another probe was answered
			return k
		case !due(k.Throttled, now):
			other = true
			return k
		}
		probe = true
		return k.throttled(now)
	})
	if other {
		return false, errThrottled
	}
	return probe, nil
}

// errThrottled is the outage of a key whose last request was throttled.
var errThrottled = &StoreError{Failure: NotApplied, What: "the table is throttled"}

// leave opens or closes the breaker according to how the decision ended, and
// stores the last answer in the memory.
func (l *Limiter) leave(key Key, known Known, t *tries, failed *StoreError) {
	now := l.Clock()
	switch {
	case failed == nil:
		l.breaker.set(nil, now)
	case failed.Failure == Unreadable, failed.Failure == Refused:
		l.breaker.set(nil, now)
		l.Memory.Change(key, func(k Known) Known { return k.throttled(time.Time{}) })
		return // the memory keeps what it has, because this item brought no state
	case t.requests == 0, errors.Is(t.caller.Err(), context.Canceled):
		// Nothing was sent, or the caller left. Neither says anything about the
		// store.
	case failed.Failure == NotApplied:
		l.breaker.set(nil, now) // the table answers, if only to say no
		l.Memory.Change(key, func(k Known) Known {
			if t.answered {
				k = k.learn(t.answer, t.told, now)
			}
			return k.throttled(now)
		})
		return
	default:
		l.breaker.set(failed, now)
	}
	if t.answered {
		l.Memory.Change(key, func(k Known) Known { return k.learn(t.answer, t.told, now) })
	} else if failed == nil && !known.Throttled.IsZero() {
		l.Memory.Change(key, func(k Known) Known { return k.throttled(time.Time{}) })
	}
}
