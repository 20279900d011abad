package cleanup_test

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/cleanup"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/table"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// An activity with 10/1m lies beside one with 100/1d in the item of a group. All of
// the day is used up, and a user acts within the minute again and again. Cleanup runs
// each hour of the day, and deletes the item only when the day counts no more.
func TestCleanupNeverDeletesWhatStillCountsInAGroup(t *testing.T) {
	endpoint, name := dynamotest.Endpoint(t), dynamotest.Table(t)
	day := time.Unix(19_680*86_400, 0) // its first second
	now := day
	clock := func() time.Time { return now }
	guards, err := limits.Guards{{Name: "g", Message: "m", Activities: []limits.Activity{
		{Name: "post", Group: "content", Limit: policy.Must("posts: 10/1m")},
		{Name: "upload", Group: "content", Limit: policy.Must("uploads: 100/1d")},
	}}}.Link()
	if err != nil {
		t.Fatal(err)
	}
	l := &ratelimit.Limiter{Store: dynamostore.New(dynamotest.Config(endpoint), name), Timeout: time.Minute, Now: clock}
	c := &Cleanup{Table: table.New(dynamotest.Client(t, endpoint), name), Now: clock}
	last := 0
	check := func(activity string, n int64) ratelimit.Decision {
		t.Helper()
		last++
		_, a, _ := guards.Activity(activity)
		d, err := l.Check(t.Context(), ratelimit.Request{
			UserID: "u1", Activity: activity, Group: a.Group, Policy: a.Limit, Count: n, ID: strconv.Itoa(last), Fresh: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	sweep := func() (a Answer) {
		t.Helper()
		out, err := c.Invoke(t.Context(), []byte(`{}`))
		if err == nil {
			err = json.Unmarshal(out, &a)
		}
		if err != nil || !a.Finished || a.Scanned != 1 {
			t.Fatalf("%s, %v, want one item read", out, err)
		}
		return a
	}
	if d := check("upload", 100); !d.Allowed {
		t.Fatalf("%+v", d)
	}
	for hour := range 24 {
		if d := check("post", 10); !d.Allowed {
			t.Fatalf("hour %d: %+v", hour, d)
		}
		now = now.Add(time.Hour - time.Second) // nothing of the minute counts any more
		if swept := sweep(); swept.Deleted != 0 {
			t.Fatalf("hour %d: cleanup deletes an item in which a day counts", hour)
		}
		if d := check("upload", 1); d.Allowed || d.Used != 100 {
			t.Fatalf("hour %d: %+v, want refused with 100 used", hour, d)
		}
		now = now.Add(time.Second)
	}
	if d := check("upload", 1); !d.Allowed {
		t.Errorf("on the next day: %+v", d)
	}
	now = day.AddDate(0, 0, 3)
	if swept := sweep(); swept.Deleted != 1 {
		t.Errorf("a day later cleanup deletes %d items, want 1", swept.Deleted)
	}
}
