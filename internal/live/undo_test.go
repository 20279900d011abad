package live_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// After a live limit is undone, a user waits at most as long as the code's
// limit says, whatever the limit was when the last action was counted.
func TestAnUndoneLimitRefusesNobodyForLonger(t *testing.T) {
	for _, tt := range []struct {
		code, live string
		longest    time.Duration // until one more action is allowed by the code's limit
	}{
		{"bucket 1/5s keep 1h", "bucket 1/12h", 5 * time.Second},
		{"bucket 10/1m burst 15", "bucket 1/1h burst 2", 6 * time.Second},
		{"10/1m", "1/1m", 0},
		{"log 100/12h", "log 1/12h", 0},
		{"sliding 50/1h", "sliding 1/1h", 0},
		{"slow: bucket 1/5s, day: 9/1d", "slow: bucket 1/12h, day: 1/1d", 5 * time.Second},
	} {
		t.Run(tt.code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { undo(t, tt.code, tt.live, tt.longest) })
		})
	}
}

func undo(t *testing.T, code, live string, longest time.Duration) {
	t.Helper()
	guards := guarding(policy.Must(code))
	act := guards[0].Activities[0]
	table := &table{}
	table.put(fmt.Sprintf(`{"act": {"limit": %q}}`, live))
	f := &Follower{Source: table, Guards: guards}
	l := &ratelimit.Limiter{Store: new(memstore.Store), Memory: ratelimit.NewMemory(ratelimit.DefaultMemory)}
	n := 0
	check := func() ratelimit.Decision {
		t.Helper()
		f.Refresh(t.Context(), 0)()
		n++
		a, _ := f.Limits().Activity(act)
		d, err := l.Check(t.Context(), ratelimit.Request{UserID: "u1", Activity: "act", Policy: a.Limit, Count: 1, ID: fmt.Sprint(n)})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for check().Allowed {
	}
	table.put(`{}`)
	time.Sleep(30 * time.Second) // by then every instance has looked
	f.Refresh(t.Context(), 0)()
	if a, _ := f.Limits().Activity(act); !a.Limit.Equal(act.Limit) {
		t.Fatalf("the limit is %q after it was undone, want %q", a.Limit, act.Limit)
	}
	time.Sleep(longest)
	if d := check(); !d.Allowed {
		t.Errorf("refused for another %v after the limit %q was undone, want at most %v", d.Wait, live, longest)
	}
}
