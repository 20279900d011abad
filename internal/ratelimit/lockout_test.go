package ratelimit_test

import (
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// A release with clear can be the first write of an item. It keeps its id there for a while, and
// not forever.
func TestAClearOfNobodyExpires(t *testing.T) {
	store := &expiring{Store: new(memstore.Store)}
	l := &Limiter{Store: store, Now: newClock().now}
	r := request(policy.Must("lockout 3/10m for 1h"), "r1", 1)
	r.At, r.Clear = start.UnixMilli(), true
	mustDo(t, l, Release, r)
	if least := start.Add(20 * time.Second).Unix(); store.expires < least {
		t.Errorf("the item expires at %d, want %d or later", store.expires, least)
	}
}
