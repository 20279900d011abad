package replay_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/policy/policytest"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	. "github.com/cric-talk/guards/internal/workbench/replay"
	"github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

// A replay decides as a guard's limiter does with a store, for all kinds of limits.
func TestAReplayDecidesAsALimiter(t *testing.T) {
	for _, text := range policytest.Combined("3/9s", "4/18s") {
		t.Run(text, rapid.MakeCheck(func(t *rapid.T) {
			p := policy.Must(text)
			now := int64(1_700_000_040_000)
			l := ratelimit.Limiter{Store: new(memstore.Store), Now: func() time.Time { return time.UnixMilli(now) }}
			full, quick := Check(p, true), Check(p, false)
			for i := range rapid.IntRange(1, 40).Draw(t, "requests") {
				now += rapid.SampledFrom([]int64{0, 1, 200, 1000, 3000, 8999, 9000, 40_000}).Draw(t, "later")
				line := traffic.Line{Time: now, User: rapid.SampledFrom([]string{"u1", "u2"}).Draw(t, "user")}
				want, err := l.Check(t.Context(), ratelimit.Request{UserID: line.User, Policy: p, Count: 1, ID: fmt.Sprint(i), Fresh: true})
				if err != nil {
					t.Fatal(err)
				}
				want.Requests, want.At, want.Crossed = 0, 0, 0
				for i := range want.Each {
					want.Each[i].Crossed = 0
				}
				got := full(line)
				got.At = 0
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("at %d (-limiter +replay):\n%s", now, diff)
				}
				if got := quick(line); got.Allowed != want.Allowed || got.Reason != want.Reason || got.Wait != want.Wait || got.ReadyAt != want.ReadyAt {
					t.Fatalf("at %d, for a report: %+v, want %+v", now, got, want)
				}
			}
		}))
	}
}
