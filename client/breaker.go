package client

import (
	"sync"
	"time"
)

// closedFor is how long a guard is not asked after an outage.
const closedFor = time.Second

// breakers lets calls fail fast after an outage, for each function on its own.
// A guard's own Unavailable does not count, because perhaps only one user's key
// is throttled. The zero value is ready for use.
type breakers struct {
	mu      sync.Mutex
	retryAt map[string]time.Time // functions that had an outage, and when the next call may ask
}

// admit reports whether a call may ask the function. After an outage, one call
// may ask in each second until one of them ends without an outage.
func (b *breakers) admit(function string, now time.Time) (ok, probe bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at, out := b.retryAt[function]
	switch {
	case !out:
		return true, false
	case now.Before(at):
		return false, false
	}
	b.retryAt[function] = now.Add(closedFor)
	return true, true
}

// opened records an outage.
func (b *breakers) opened(function string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.retryAt == nil {
		b.retryAt = map[string]time.Time{}
	}
	b.retryAt[function] = now.Add(closedFor)
}

// closed records that the function answered.
func (b *breakers) closed(function string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.retryAt, function)
}

// again lets the next call ask, because the caller gave up a probe.
func (b *breakers) again(function string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, out := b.retryAt[function]; out {
		b.retryAt[function] = now
	}
}
