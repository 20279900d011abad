package live_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// A limit and a mode end by the guard's clock, each by itself, although nobody writes
// anything. Then the code's limit and the function's mode are in force again.
func TestOverridesEndByThemselves(t *testing.T) {
	start := time.UnixMilli(1_700_000_000_000)
	s := Settings{
		Activities: map[string]Override{
			"create_post": {Limit: "20/1m", Tiers: map[string]string{"premium": "50/1m"}, Mode: "shadow"},
			"pin":         {Limit: "log 5/12h"},
		},
		Ends: Ends{
			"create_post": {Limits: map[string]Until{"": {Of: "20/1m", Until: start.Add(time.Hour)}, "premium": {Of: "40/1m", Until: start.Add(time.Minute)}}, Mode: Until{Of: "shadow", Until: start.Add(2 * time.Hour)}},
			"gone":        {Mode: Until{Of: "off", Until: start}},
		},
	}
	stored, err := s.Stored(1)
	if err != nil {
		t.Fatal(err)
	}
	again, err := stored.Settings()
	if err != nil {
		t.Fatal(err)
	}
	l, problems := again.Limits(cricket.All, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	l = l.With(Blocks{All: []Block{{UserID: "blocked", Until: start.Add(24 * time.Hour)}}})
	for _, tt := range []struct {
		after time.Duration
		want  string
	}{
		{0, "20/1m 50/1m shadow log 5/12h"},
		{time.Hour - 1, "20/1m 50/1m shadow log 5/12h"}, // the end of premium belongs to another limit
		{time.Hour, "10/1m 50/1m shadow log 5/12h"},
		{2*time.Hour - 1, "10/1m 50/1m shadow log 5/12h"},
		{2 * time.Hour, "10/1m 50/1m  log 5/12h"},
	} {
		at := start.Add(tt.after)
		ask := func(activity, tier string) Terms {
			return l.Terms(Query{Activity: activityOf(t, activity), UserID: "blocked", Tier: tier, At: at})
		}
		post := ask("create_post", "")
		got := fmt.Sprint(post.Limit, " ", ask("create_post", "premium").Limit, " ", post.Mode, " ", ask("pin", "").Limit)
		if got != tt.want || !post.Block.InForce(at) {
			t.Errorf("after %v: %s, blocked %v, want %s and blocked", tt.after, got, post.Block.InForce(at), tt.want)
		}
	}
}

// Without a write, an instance that reads nothing new ends an override in time. An entry that
// somebody damages beside it leaves what was in force.
func TestAnEndNeedsNoRead(t *testing.T) {
	follow(t, func(t *testing.T, b bench) {
		b.set("20/1m")
		b.Ends = fmt.Appendf(nil, `{"create_post": {"limits": {"": {"of": "20/1m", "until": %q}}}}`, time.Now().Add(45*time.Second).Format(time.RFC3339Nano))
		b.look(20, 1)
		terms := func() string {
			return b.Limits().Terms(Query{Activity: activityOf(t, "create_post"), UserID: "u", At: time.Now()}).Limit.String()
		}
		time.Sleep(14 * time.Second)
		if got := terms(); got != "20/1m" {
			t.Errorf("before the end: %s", got)
		}
		time.Sleep(time.Second)
		if got := terms(); got != "10/1m" {
			t.Errorf("after the end: %s", got)
		}
		b.Ends, b.Version = []byte(`{"create_post": 5}`), b.Version+1 // damaged: the limit stays
		b.look(20, 1)
		b.Stored = Stored{Version: b.Version + 1, Document: []byte(`{"activities": {"create_post": {"limit": 5}, "pin": {"limit": "log 7/12h"}}}`)}
		b.look(20, 1)
		if pin, _ := b.Limits().Activity(activityOf(t, "pin")); pin.Limit.Max() != 7 {
			t.Errorf("beside the damaged entry: %v, want the other one to be followed", pin.Limit)
		}
		synctest.Wait()
	})
}
