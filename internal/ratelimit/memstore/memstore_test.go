package memstore_test

import (
	"strconv"
	"testing"

	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/ratelimit/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(testing.TB) ratelimit.Store { return new(memstore.Store) })
}

func TestExpires(t *testing.T) {
	storetest.RunExpires(t, func(testing.TB) (ratelimit.Store, func(ratelimit.Key) int64) {
		s := new(memstore.Store)
		return s, s.Expires
	})
}

// Each user acts once, 100 users a second, and each item matters for 20
// seconds. So at most 2,100 items matter at any time.
func TestHoldsAllThatMattersAndAtMostTwiceThat(t *testing.T) {
	const each, live, users = 10, 2000, 20_000 // milliseconds between two users, items that matter, users
	s := new(memstore.Store)
	key := func(user int) ratelimit.Key {
		return ratelimit.Key{UserID: strconv.Itoa(user), Activity: "act", Window: 7}
	}
	for user := range users {
		now := int64(1_700_000_000_000 + each*user)
		w := ratelimit.Write{Key: key(user), ID: ratelimit.NewID("r"), Now: now, Expires: now/1000 + live*each/1000}
		if _, done, err := s.Update(t.Context(), w); err != nil || !done {
			t.Fatal(done, err)
		}
		if n := s.Len(); n > 2*(live+100) {
			t.Fatalf("after %d users the store holds %d items, want at most about twice the %d that matter", user+1, n, live)
		}
		oldest := max(0, user-live+100) // the oldest user whose item matters
		if item, err := s.Read(t.Context(), key(oldest)); err != nil || len(item.IDs) != 1 {
			t.Fatalf("user %d's item is %v, %v while it still matters", oldest, item, err)
		}
	}
}
