package ratelimit

import (
	"strconv"
	"testing"
)

// However many keys are throttled, the breaker remembers a bounded number.
func TestTheBreakerRemembersABoundedNumberOfKeys(t *testing.T) {
	var b breaker
	for i := range mostThrottled + 100 {
		b.throttle(Key{UserID: strconv.Itoa(i)}, moment)
	}
	if len(b.throttled) != mostThrottled {
		t.Errorf("%d keys are remembered, want %d", len(b.throttled), mostThrottled)
	}
}
