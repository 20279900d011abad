package outage_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// A renewal in an outage is an error, in time, and changes neither the item nor the memory.
// The slot lives until its end, so the renewal works when the table answers again. If the
// table performs what nobody hears of, the slot lives longer.
func TestARenewalInAnOutageIsAnErrorAndChangesNothing(t *testing.T) {
	prove.Explain(t, "outage")
	for _, f := range failures {
		for _, text := range []string{"log 3/10m", "pace: bucket 10/1m, work: log 6/10m cost 2"} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, f.name, 1, 1, text)
				in, u := w.instances[0], w.users[0]
				ctx := context.WithValue(t.Context(), units{}, int64(1))
				r := ratelimit.Request{UserID: u.name, Activity: "act", Policy: u.policy, Count: 1, ID: "r", Fallback: true}
				d, err := in.Check(ctx, r)
				if err != nil || d.At == 0 {
					t.Fatalf("%s: %+v, %v", f.name, d, err)
				}
				r.At = d.At
				key := ratelimit.Key{UserID: u.name, Activity: "act"}
				item, known := stored(t, in, key), in.Memory.Recall(key)
				time.Sleep(time.Minute)
				w.use(f.way)
				for i := range 3 { // the first one opens the circuit
					began := time.Now()
					d, err := in.Decide(ctx, ratelimit.Renew, r)
					if e := (*ratelimit.StoreError)(nil); !errors.As(err, &e) || d.Allowed || d.At != 0 {
						t.Errorf("%s: renewal %d: %+v, %v, want an error", f.name, i, d, err)
					}
					if most := []time.Duration{timeout, 0, 0}[i]; time.Since(began) > most {
						t.Errorf("%s: renewal %d took %v, want at most %v", f.name, i, time.Since(began), most)
					}
				}
				time.Sleep(probeEvery)
				now := stored(t, in, key)
				if f.lands {
					item = now
					if used := u.policy.Read(time.Now().UnixMilli(), 0, now.State).Used; used != 1 {
						t.Errorf("%s: %d are counted, want 1", f.name, used)
					}
				}
				if !reflect.DeepEqual(now, item) {
					t.Errorf("%s: a renewal turns %+v into %+v", f.name, item, now)
				}
				if now := in.Memory.Recall(key); !reflect.DeepEqual(now, known) {
					t.Errorf("%s: a renewal turns the memory %+v into %+v", f.name, known, now)
				}
				w.use(healthy)
				if d, err := in.Decide(ctx, ratelimit.Renew, r); err != nil || !d.Allowed || d.At <= r.At {
					t.Errorf("%s: when the table answers again: %+v, %v", f.name, d, err)
				}
			})
		}
	}
}

// stored returns the item that the table has.
func stored(t *testing.T, in *instance, k ratelimit.Key) ratelimit.Item {
	t.Helper()
	item, err := in.network.table.Read(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	return item
}
