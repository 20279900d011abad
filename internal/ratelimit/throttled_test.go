package ratelimit

import (
	"strconv"
	"testing"
)

// However many keys are throttled, the breaker remembers a bounded number.
func TestTheBreakerRemembersABoundedNumberOfKeys(t *testing.T) {
	var b breaker
	for i := range maxOpen + 100 {
		b.openKey(Key{UserID: strconv.Itoa(i)}, circuit{new(StoreError), moment})
	}
	if len(b.keys) != maxOpen {
		t.Errorf("%d keys are remembered, want %d", len(b.keys), maxOpen)
	}
}
