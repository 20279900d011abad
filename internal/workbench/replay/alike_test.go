package replay_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/policy/policytest"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
	. "github.com/cric-talk/guards/internal/workbench/replay"
	"github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

// limiter returns a guard's limiter, and its clock in Unix milliseconds. The age of the traffic
// does not matter.
func limiter(t *rapid.T) (l *ratelimit.Limiter, now *int64) {
	now = new(rapid.SampledFrom([]int64{0, 1_262_303_990_000, 1_700_000_040_000}).Draw(t, "begins"))
	return &ratelimit.Limiter{Store: new(memstore.Store), Now: func() time.Time { return time.UnixMilli(*now) }}, now
}

// later draws the milliseconds until the next request.
func later(t *rapid.T) int64 {
	return rapid.SampledFrom([]int64{0, 1, 200, 1000, 3000, 8999, 9000, 40_000}).Draw(t, "later")
}

// A replay decides as a guard's limiter does with a store, for all kinds of limits.
func TestAReplayDecidesAsALimiter(t *testing.T) {
	for _, text := range policytest.Combined("3/9s", "4/18s") {
		t.Run(text, rapid.MakeCheck(func(t *rapid.T) {
			p := policy.Must(text)
			l, now := limiter(t)
			full, quick := Check(p, true), Check(p, false)
			for i := range rapid.IntRange(1, 40).Draw(t, "requests") {
				*now += later(t)
				line := traffic.Line{Time: *now, User: rapid.SampledFrom([]string{"u1", "u2"}).Draw(t, "user")}
				want := testkit.Must(l.Check(t.Context(), ratelimit.Request{UserID: line.User, Policy: p, Count: 1, ID: fmt.Sprint(i), Fresh: true}))(t)
				want.Requests, want.At, want.HeldUntil, want.Crossed = 0, 0, 0, 0
				for i := range want.Each {
					want.Each[i].Crossed = 0
				}
				got := full(line)
				got.At = 0
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("at %d (-limiter +replay):\n%s", *now, diff)
				}
				if got := quick(line); got.Allowed != want.Allowed || got.Reason != want.Reason || got.Wait != want.Wait || got.ReadyAt != want.ReadyAt {
					t.Fatalf("at %d, for a report: %+v, want %+v", *now, got, want)
				}
			}
		}))
	}
}

// So do the replays of a group, for each of its activities, and of subjects. A line without a
// room is not limited by one.
func TestGroupsAndSubjectsAreReplayedAsALimiterDecides(t *testing.T) {
	for _, tt := range []struct{ post, comment, room, tenant string }{ // a group of posts and comments, or posts with subjects
		{"posts: 3/9s, writes: 8/18s cost 2", "writes: 8/18s", "", ""},
		{"writes: 6/18s", "writes: 8/18s, comments: bucket 4/8s", "", ""},
		{"posts: log 3/9s, writes: sliding 8/18s cost 3", "writes: sliding 9/18s", "", ""},
		{"slots: log 4/9s cost 2", "slots: log 4/9s", "", ""},
		{"3/9s", "", "4/9s", "minute: 5/9s, day: 9/1m"},
		{"log 3/9s", "", "bucket 4/8s", "sliding 6/9s"},
		{"fast: 2/9s, slow: 5/18s", "", "log 3/9s cost 2", "bucket 5/5s burst 9"},
	} {
		t.Run(tt.post, rapid.MakeCheck(func(t *rapid.T) {
			members, group := map[string]policy.Policy{"post": policy.Must(tt.post)}, ""
			r := Replay{Activity: "post", Policy: members["post"]}
			o := traffic.Options{Unit: traffic.Millis}
			var others []Member
			if tt.comment != "" {
				members["comment"], group = policy.Must(tt.comment), "g"
				others = []Member{{Activity: "comment", Policy: members["comment"]}}
			} else {
				r.Subjects = []Subject{{Name: "room", Policy: policy.Must(tt.room)}, {Name: "tenant", Policy: policy.Must(tt.tenant)}}
				o.Subjects = []string{"room", "tenant"}
			}
			l, now := limiter(t)
			*now = max(*now, 1) // in the first millisecond of 1970, a limiter gives nothing back
			var record strings.Builder
			fmt.Fprintf(&record, "time,user,activity,room,tenant\n%d,u0,view,,\n", *now)
			allowed, longest, by := map[string]int64{}, map[string]int64{}, map[string]int64{}
			for i := range rapid.IntRange(1, 40).Draw(t, "requests") {
				*now += later(t)
				user, room := rapid.SampledFrom([]string{"u1", "u2", "u3"}).Draw(t, "user"), rapid.SampledFrom([]string{"r1", "r2", ""}).Draw(t, "room")
				activity := "post"
				if group != "" {
					activity = rapid.SampledFrom([]string{"post", "comment"}).Draw(t, "activity")
				}
				fmt.Fprintf(&record, "%d,%s,%s,%s,t1\n", *now, user, activity, room)
				own := ratelimit.Request{UserID: user, Activity: activity, Group: group, Policy: members[activity], Count: 1, ID: fmt.Sprint(i), Fresh: true}
				if group != "" {
					own.Policy = own.Policy.Beside(members["post"], members["comment"])
				}
				parts := []ratelimit.Part{{Request: own}}
				for k, s := range r.Subjects {
					if id := []string{room, "t1"}[k]; id != "" {
						part := ratelimit.Part{Request: own, Subject: s.Name}
						part.UserID, part.For, part.Policy = limits.SubjectID(s.Name, id), user, s.Policy
						parts = append(parts, part)
					}
				}
				d := testkit.Must(l.DecideAll(t.Context(), ratelimit.Check, parts, false))(t)
				if d.Allowed {
					allowed[activity]++
					continue
				}
				longest[activity] = max(longest[activity], d.Wait.Milliseconds())
				name, _, _ := strings.Cut(d.LimitedBy, ".")
				if name != "room" && name != "tenant" {
					name = activity
				}
				by[name]++
			}
			reports := testkit.Must(r.Group(t.Context(), traffic.NewReader(o, traffic.File{Name: "f", Text: strings.NewReader(record.String())}), others...))(t)
			for _, report := range reports {
				if report.Allowed != allowed[report.Activity] || report.LongestWaitMs != longest[report.Activity] || report.OtherActivities != 1 {
					t.Errorf("%s: %d allowed, wait %d, %d others; want %d, %d, 1:\n%s", report.Activity,
						report.Allowed, report.LongestWaitMs, report.OtherActivities, allowed[report.Activity], longest[report.Activity], record.String())
				}
				if diff := cmp.Diff(by, report.LimitedBy); r.Subjects != nil && diff != "" {
					t.Errorf("limited by (-limiter +replay):\n%s\n%s", diff, record.String())
				}
				if report.Requests == 0 && (report.From != 0 || report.RefusedShare != 0) {
					t.Errorf("%s without a request: %+v", report.Activity, report)
				}
			}
		}))
	}
}
