package ratelimit_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// An item does not grow, whatever pauses its user makes, and however often the user
// releases.
func TestAnItemDoesNotGrow(t *testing.T) {
	for text, pause := range map[string]time.Duration{"sliding 5/1m": 25 * time.Minute, "10/12h": 2 * time.Second} {
		c, store := newClock(), new(memstore.Store)
		l := &Limiter{Store: store, Memory: NewMemory(mib), Now: c.now}
		r := request(policy.Must(text), "", 1)
		for i := range 500 {
			c.add(rand.N(pause))
			r.ID, r.At = strconv.Itoa(i), 0
			r.At = mustCheck(t, l, r).At
			if text == "10/12h" {
				mustDo(t, l, Release, r)
			}
		}
		window, _ := r.Policy.Item(c.now().UnixMilli())
		item, err := store.Read(t.Context(), Key{UserID: r.UserID, Activity: r.Activity, Window: window})
		ids := 0
		for _, set := range item.IDs {
			ids += len(set.Elements)
		}
		if err != nil || len(item.State) > 4 || len(item.IDs) > 5 || ids > 60 {
			t.Errorf("%s: the item keeps %d numbers and %d ids in %d sets, %v, want a few", text, len(item.State), ids, len(item.IDs), err)
		}
	}
}

// expiring returns a store, and when the last item that was written expires, in Unix seconds.
func expiring() (Store, *int64) {
	expires := new(int64)
	return afterEach(new(memstore.Store), func(w Write, done bool) {
		if done && w.Expires != 0 {
			*expires = w.Expires
		}
	}), expires
}

// A clock that is ahead counts, and then one that is 2 s behind it. The item still
// lasts until everything in it has expired for both.
func TestAnItemOutlivesWhatItCounts(t *testing.T) {
	for _, text := range []string{"sliding 50/1h", "reservoir 1/1h ahead 3h", "bucket 10/1h", "log 100/1h", "minute: 10/1m, hour: sliding 50/1h", "hour: 10/1h, pace: bucket 10/1m"} {
		// Offsets around the end of an hour, and around the moment 120 s before it.
		for _, offset := range []time.Duration{0, time.Second, 2 * time.Second, -119 * time.Second, -time.Minute} {
			store, expires := expiring()
			twoClocks(t, store, 2*time.Second, func(at func(time.Duration), behind, early *Limiter) {
				end := start.Truncate(time.Hour).Add(time.Hour).Sub(start) // of the hour that contains start
				var latest int64
				for i := range 3 {
					at(end + offset - 2*time.Second + time.Duration(i)*time.Millisecond)
					for _, l := range []*Limiter{early, behind} {
						d := mustCheck(t, l, request(policy.Must(text), strconv.Itoa(i)+strconv.FormatBool(l == early), 1))
						latest = max(latest, d.ResetAt, d.ReadyAt+time.Hour.Milliseconds())
						for _, each := range d.Each {
							latest = max(latest, each.ResetAt)
						}
					}
				}
				if *expires*1000 < latest {
					t.Errorf("%s, %v from the end: the item expires %v too early", text, offset, time.Duration(latest-*expires*1000)*time.Millisecond)
				}
			})
		}
	}
}

// A release leaves the expiry as it is, because it counts nothing.
func TestAReleaseLeavesTheExpiry(t *testing.T) {
	store, expires := expiring()
	c := newClock()
	l := &Limiter{Store: store, Now: c.now}
	r := request(policy.Must("sliding 50/1h"), "a", 1)
	r.At = mustCheck(t, l, r).At
	*expires = 0
	c.at(time.Second)
	if d, err := l.Decide(t.Context(), Release, r); err != nil || d.Used != 0 || *expires != 0 {
		t.Errorf("Release = %s, %v, and it sets the expiry to %d, want it left alone", inWords(d), err, *expires)
	}
}

// A refusal by a low number slows a bucket down. A release with clear and a renewal, which say when
// the item expires, do not let it go before the bucket is full.
func TestOtherWritesLeaveTheTimeOfASlowBucket(t *testing.T) {
	for op, other := range map[Op]string{Release: "try: lockout 100/10m for 5m", Renew: "work: log 100/10m"} {
		text := "pace: bucket 100/100s max 100, " + other
		store, expires := expiring()
		l := &Limiter{Store: store, Now: newClock().now}
		mustCheck(t, l, request(numbered(text, 100), "a", 50))
		refused := mustCheck(t, l, request(numbered(text, 1), "b", 1))
		r := request(numbered(text, 1), "a", 50)
		r.At, r.Clear = start.UnixMilli(), op == Release
		if op == Release {
			r.ID, r.Count = "b", 1
		}
		*expires = 0
		mustDo(t, l, op, r)
		if full := start.UnixMilli() + 5_000_000; refused.Allowed || refused.ResetAt != full || *expires*1000 < full {
			t.Errorf("%s: %+v, and the item expires at %d, want a refusal by a bucket that is full at %d", op, refused, *expires, full)
		}
	}
}

// A refusal that slows a bucket down says when the item expires. That is not before another bucket is
// full, whose pace was slower when it counted, nor before the last place of a reservoir is over.
func TestARefusalLeavesTheTimeOfOtherLimits(t *testing.T) {
	for _, tt := range []struct {
		counts, refuses string
		n               int64
		until           time.Duration
	}{
		{"a: bucket 10/1000s, b: bucket 10/10s", "a: bucket 10/100s, b: bucket 10/20s", 10, 1000 * time.Second},
		{"b: bucket 2/10s, q: reservoir 1/30m ahead 2h", "b: bucket 2/20s, q: reservoir 1/30m", 1, 45 * time.Minute},
	} {
		store, expires := expiring()
		l := &Limiter{Store: store, Now: newClock().now}
		for i := range 2 {
			mustDo(t, l, Check, request(policy.Must(tt.counts), strconv.Itoa(i), tt.n))
		}
		d := mustCheck(t, l, request(policy.Must(tt.refuses), "one more", 1))
		if until := start.Add(tt.until).Unix(); d.Allowed || *expires < until {
			t.Errorf("%s: %s, and the item expires at %d, want a refusal, and at least %d", tt.refuses, inWords(d), *expires, until)
		}
	}
}
