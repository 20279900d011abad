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

// Each user acts once, 100 of them a second, and matters for 20 seconds: so at
// most 2,100 do at any time.
func TestHoldsAtMostTwiceWhatMattersAndAllOfIt(t *testing.T) {
	const each, live, users = 10, 2000, 20_000 // milliseconds between two, and how many
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
			t.Fatalf("after %d users it holds %d items, want at most about twice the %d that still matter", user+1, n, live)
		}
		oldest := max(0, user-live+100) // who still matters; each user is it once
		if item, err := s.Read(t.Context(), key(oldest)); err != nil || !item.Has(w) {
			t.Fatalf("user %d's item is %v, %v while it still matters", oldest, item, err)
		}
	}
}
