package replay_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	. "github.com/cric-talk/guards/internal/workbench/replay"
	"github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

// A replay of a group decides as a guard's limiter does with a store, for each activity.
func TestAGroupIsReplayedAsALimiterDecides(t *testing.T) {
	for _, texts := range [][2]string{
		{"posts: 3/9s, writes: 8/18s cost 2", "writes: 8/18s"},
		{"writes: 6/18s", "writes: 8/18s, comments: bucket 4/8s"},
		{"posts: log 3/9s, writes: sliding 8/18s cost 3", "writes: sliding 9/18s"},
		{"slots: log 4/9s cost 2", "slots: log 4/9s"},
	} {
		t.Run(texts[0], rapid.MakeCheck(func(t *rapid.T) {
			post, comment := policy.Must(texts[0]), policy.Must(texts[1])
			members := map[string]policy.Policy{"post": post, "comment": comment}
			now := int64(1_700_000_040_000)
			l := ratelimit.Limiter{Store: new(memstore.Store), Now: func() time.Time { return time.UnixMilli(now) }}
			var lines strings.Builder
			allowed := map[string]int64{}
			longest := map[string]int64{}
			for i := range rapid.IntRange(1, 40).Draw(t, "requests") {
				now += rapid.SampledFrom([]int64{0, 1, 200, 1000, 3000, 8999, 9000, 40_000}).Draw(t, "later")
				user, activity := rapid.SampledFrom([]string{"u1", "u2"}).Draw(t, "user"), rapid.SampledFrom([]string{"post", "comment"}).Draw(t, "activity")
				fmt.Fprintf(&lines, "%d,%s,%s\n", now, user, activity)
				p := members[activity]
				want, err := l.Check(t.Context(), ratelimit.Request{
					UserID: user, Activity: activity, Group: "g", Policy: p.Beside(post, comment), Count: 1, ID: fmt.Sprint(i), Fresh: true,
				})
				if err != nil {
					t.Fatal(err)
				}
				if want.Allowed {
					allowed[activity]++
				} else {
					longest[activity] = max(longest[activity], want.Wait.Milliseconds())
				}
			}
			record := "time,user,activity\n1700000040000,u0,view\n" + lines.String()
			r := Replay{Activity: "post", Policy: post}
			reports, err := r.Group(t.Context(), traffic.NewReader(traffic.Options{Unit: traffic.Millis}, traffic.File{Name: "f", Text: strings.NewReader(record)}), Member{Activity: "comment", Policy: comment})
			if err != nil {
				t.Fatal(err)
			}
			for _, report := range reports {
				if report.Allowed != allowed[report.Activity] || report.LongestWaitMs != longest[report.Activity] || report.OtherActivities != 1 {
					t.Errorf("%s: %d allowed, wait %d, %d others; want %d, %d, 1:\n%s", report.Activity,
						report.Allowed, report.LongestWaitMs, report.OtherActivities, allowed[report.Activity], longest[report.Activity], record)
				}
				if report.Requests == 0 && (report.From != 0 || report.RefusedShare != 0) {
					t.Errorf("%s without a request: %+v", report.Activity, report)
				}
			}
		}))
	}
}

// Traffic without any of the activities is an error.
func TestAGroupWithoutRequests(t *testing.T) {
	record := traffic.File{Name: "f", Text: strings.NewReader("time,user,activity\n1700000040000,u0,view\n")}
	r := Replay{Activity: "post", Policy: policy.Must("w: 1/1m")}
	_, err := r.Group(t.Context(), traffic.NewReader(traffic.Options{}, record), Member{Activity: "comment", Policy: policy.Must("w: 1/1m")})
	if err == nil || err.Error() != "f has no request of the activity \"post, comment\", only of view" {
		t.Error(err)
	}
}
