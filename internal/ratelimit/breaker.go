package ratelimit

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cric-talk/guards/internal/crash"
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
// What happens to one key, and not to the whole table, opens the circuit of that key only.
// That is throttling, and each failure of a decision that has had an answer from the table
// before. The windows of one user and activity are one key here, because the next window of
// a busy user is as busy.
type breaker struct {
	mu    sync.Mutex
	table circuit
	keys  map[Key]circuit // the open ones; Window is 0
}

// A circuit is open if it has a cause.
type circuit struct {
	cause  *StoreError
	probed time.Time // when it was last probed, or opened
}

// due reports whether it is time for a probe: 5 s have passed since the last
// one, or the clock has stepped back.
func (c circuit) due(now time.Time) bool {
	age := now.Sub(c.probed)
	return age < 0 || age >= probeEvery
}

// maxOpen is how many keys can have an open circuit. They take at most 5 MB. If there are
// more, an arbitrary circuit closes.
const maxOpen = 10_000

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
	return b.table.probed, b.keys[k].probed
}

// look returns why a circuit of k is open, or nil if a decision about k may ask the store.
// Due reports whether the decision may send a probe.
func (b *breaker) look(k Key, now time.Time) (cause *StoreError, due bool) {
	k.Window = 0
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open(k, now)
}

func (b *breaker) open(k Key, now time.Time) (cause *StoreError, due bool) {
	key := b.keys[k]
	switch {
	case key.cause != nil && !key.due(now):
		return key.cause, false
	case b.table.cause != nil:
		return b.table.cause, b.table.due(now)
	}
	return key.cause, key.cause != nil
}

// claim reports whether a decision about k sends a probe. If so, no other decision sends one
// for the next 5 s.
func (b *breaker) claim(k Key, now time.Time) bool {
	k.Window = 0
	b.mu.Lock()
	defer b.mu.Unlock()
	_, due := b.open(k, now)
	if key, open := b.keys[k]; due && open {
		b.keys[k] = circuit{key.cause, now}
	}
	if due && b.table.cause != nil {
		b.table.probed = now
	}
	return due
}

// done opens or closes circuits according to how the decision about k ended.
func (b *breaker) done(k Key, t *attempts, failed *StoreError, now time.Time) {
	k.Window = 0
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case failed == nil, failed.noState():
		b.table = circuit{}
		delete(b.keys, k)
	case t.requests == 0, errors.Is(t.ctx.Err(), context.Canceled):
		// Nothing was sent, or the caller left: that says nothing about the store.
	case t.question == nil && b.table.cause == nil:
		// The circuit of k stays open, or closed meanwhile by another answer.
	case failed.Failure == NotApplied, t.question != nil && t.question.reached:
		b.table = circuit{} // the table answers, if only to say no
		b.openKey(k, circuit{failed, now})
	default:
		if b.table.cause == nil {
			b.table.probed = now
		}
		b.table.cause = failed
	}
}

// noState reports whether the store answered without anything for a memory to keep.
func (e *StoreError) noState() bool { return e.Failure == Unreadable || e.Failure == Invalid }

// openKey opens the circuit of k, whose Window is 0.
func (b *breaker) openKey(k Key, c circuit) {
	if b.keys == nil {
		b.keys = map[Key]circuit{}
	}
	b.keys[k] = c
	for other := range b.keys {
		if len(b.keys) <= maxOpen {
			break
		}
		delete(b.keys, other)
	}
}

// maxProbeWait is how long a decision waits for its probe. So an instance spends at most 5 %
// of an outage waiting.
const maxProbeWait = 250 * time.Millisecond

// nothing is an update whose guard contradicts itself.
var nothing = policy.Update{
	If:   [][]policy.Term{{policy.Missing("probe"), policy.Exactly("probe", 0)}},
	Acts: []policy.Act{{Verb: policy.Delete, Attr: "probe"}},
}

// probeOf returns the request of a probe for the item under k.
func probeOf(k Key) *request { return &request{updates, Write{Key: k, Update: nothing}} }

// probe finds out whether a store that was away answers again. It sends a write
// that the store always refuses. So it needs what a decision needs, and it counts
// nothing, even if its answer is late or lost.
//
// A store can be slower than the decision waits, and still quick enough for a closed
// circuit. Therefore the probe goes on without its decision, for as long as a decision may
// take. An answer closes the circuit, however late it is.
//
// It returns nil if the store answers a probe while the decision waits for it, and
// the time left is at least as long as the probe took. Otherwise the answer only
// closes the circuit.
func (l *Limiter) probe(ctx context.Context, q *question) *StoreError {
	key := q.write.Key
	q.budget = l.budget()
	t := &attempts{limiter: l, ctx: ctx, began: l.Clock(), requests: 1}
	if q.budget != nil { // nothing runs beside a decision
		return t.refused(ctx, l.Store, key)
	}
	began := time.Now()
	answer := make(chan *StoreError, 1)
	t.ctx = context.WithoutCancel(ctx) // its failure counts even if the caller has left
	go func() {
		defer crash.Contain()
		awake, stop := retry.Awake(t.ctx, l.Timeout)
		defer stop()
		answer <- t.refused(awake, l.redial(), key)
	}()
	waited := time.NewTimer(maxProbeWait)
	defer waited.Stop()
	select {
	case failed := <-answer:
		if end, _ := ctx.Deadline(); failed != nil || time.Until(end) >= time.Since(began) {
			return failed
		}
	case <-waited.C:
	case <-ctx.Done():
	}
	return &StoreError{Failure: Unknown, What: tooLate, Err: errProbe}
}

// errProbe is the cause of an outage if a probe has left too little time.
var errProbe = errors.New("the probe was not answered soon enough")

// refused sends a write that the store refuses, once. It tells the breaker the result,
// and the memory the item.
func (t *attempts) refused(ctx context.Context, s Store, key Key) *StoreError {
	l := t.limiter
	a := probeOf(key).by(ctx, s)
	failed := asStoreError(a.err)
	l.breaker.done(key, t, failed, l.Clock())
	if failed == nil {
		now := l.Clock()
		l.Memory.Change(key, func(k Known) Known { return k.learn(a.item, t.began, now) })
	}
	return failed
}
