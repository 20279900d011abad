package client

import (
	"sync"
	"sync/atomic"
	"time"
)

// closedFor is how long a guard is not asked after an outage.
const closedFor = time.Second

// breakers holds the breaker of each function. The zero value is ready for use.
type breakers struct {
	mu sync.Mutex
	of map[string]*breaker
}

func (b *breakers) breaker(function string) *breaker {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil {
		b.of = map[string]*breaker{}
	}
	if b.of[function] == nil {
		b.of[function] = &breaker{queue: map[*stopwatch]bool{}}
	}
	return b.of[function]
}

// A breaker lets calls to one function fail fast after an outage. A guard's own
// Unavailable counts as an answer, because perhaps only one user's key is
// throttled.
type breaker struct {
	mu      sync.Mutex
	open    bool
	paused  time.Time             // if open: when the last pause began; zero: the next call may ask
	probes  int                   // how many pauses and probes there were
	answers int                   // how many calls were answered
	queue   map[*stopwatch]bool   // of the requests that wait for a connection
	missing atomic.Pointer[error] // if open: the error about an agent that has never answered
}

// A ticket is what a breaker knew when a call began.
type ticket struct {
	answers int
	probe   int // its number, if the call is a probe; otherwise 0
}

// admit returns the ticket of a call that may ask the function. After an outage,
// one call may ask in each second until one of them ends without an outage.
func (b *breaker) admit(now time.Time) (t ticket, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t.answers = b.answers
	switch {
	case !b.open:
		return t, true
	case elapsed(b.paused, now) < closedFor:
		return t, false
	}
	b.pause(now)
	t.probe = b.probes
	return t, true
}

// elapsed returns how long ago began was, by the clock that went on for longer. The monotonic
// clock can stand still while Lambda freezes the app, and the one on the wall can be set back.
func elapsed(began, now time.Time) time.Duration {
	return max(now.Sub(began), now.Round(0).Sub(began.Round(0)))
}

// pause keeps other calls from asking for a second.
func (b *breaker) pause(now time.Time) {
	b.open, b.paused = true, now
	b.probes++
}

// lost records that a call got no answer. It opens the breaker only if no other
// call was answered since the lost one began. While the breaker is open, only the
// latest probe matters.
func (b *breaker) lost(t ticket, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.answers != b.answers || b.open && t.probe != b.probes {
		return
	}
	b.pause(now)
	for w := range b.queue {
		w.end(errPaused)
	}
}

// answered records that the function answered.
func (b *breaker) answered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = false
	b.missing.Store(nil)
	b.answers++
}

// again lets the next call ask, because the caller gave up the latest probe.
func (b *breaker) again(t ticket) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open && t.probe == b.probes {
		b.paused = time.Time{}
	}
}

// silentSince reports whether the function answered nobody since a call began.
func (b *breaker) silentSince(t ticket) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return t.answers == b.answers
}

// enqueue lets an outage end the wait of a request for a connection.
func (b *breaker) enqueue(w *stopwatch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue[w] = true
	if b.open && w.call.ticket.probe != b.probes {
		w.end(errPaused)
	}
}

// dequeue undoes enqueue. It returns how many calls were answered.
func (b *breaker) dequeue(w *stopwatch) (answers int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.queue, w)
	return b.answers
}
