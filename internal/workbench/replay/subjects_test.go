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
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	. "github.com/cric-talk/guards/internal/workbench/replay"
	"github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

// A replay with subjects decides as a guard's limiter does with a store, and a line
// without a room is not limited by one.
func TestSubjectsAreReplayedAsALimiterDecides(t *testing.T) {
	for _, texts := range [][3]string{
		{"3/9s", "4/9s", "minute: 5/9s, day: 9/1m"},
		{"log 3/9s", "bucket 4/8s", "sliding 6/9s"},
		{"fast: 2/9s, slow: 5/18s", "log 3/9s cost 2", "bucket 5/5s burst 9"},
	} {
		t.Run(texts[0], rapid.MakeCheck(func(t *rapid.T) {
			own := policy.Must(texts[0])
			subjects := []Subject{{Name: "room", Policy: policy.Must(texts[1])}, {Name: "tenant", Policy: policy.Must(texts[2])}}
			now := int64(1_700_000_040_000)
			l := ratelimit.Limiter{Store: new(memstore.Store), Now: func() time.Time { return time.UnixMilli(now) }}
			lines, want := "time,user,room,tenant\n", map[string]int64{}
			allowed, longest := int64(0), int64(0)
			for i := range rapid.IntRange(1, 40).Draw(t, "requests") {
				now += rapid.SampledFrom([]int64{0, 1, 200, 1000, 3000, 8999, 9000, 40_000}).Draw(t, "later")
				user, room := rapid.SampledFrom([]string{"u1", "u2", "u3"}).Draw(t, "user"), rapid.SampledFrom([]string{"r1", "r2", ""}).Draw(t, "room")
				lines += fmt.Sprintf("%d,%s,%s,t1\n", now, user, room)
				one := ratelimit.Request{UserID: user, Activity: "write", Policy: own, Count: 1, ID: fmt.Sprint(i), Fresh: true}
				parts := []ratelimit.Part{{Request: one}}
				for k, id := range []string{room, "t1"} {
					if id == "" {
						continue
					}
					part := ratelimit.Part{Request: one, Subject: subjects[k].Name}
					part.UserID, part.For, part.Policy = limits.SubjectID(part.Subject, id), user, subjects[k].Policy
					parts = append(parts, part)
				}
				d, err := l.DecideAll(t.Context(), ratelimit.Check, parts, false)
				if err != nil {
					t.Fatal(err)
				}
				if d.Allowed {
					allowed++
					continue
				}
				by := "write"
				for _, s := range subjects {
					if d.LimitedBy == s.Name || strings.HasPrefix(d.LimitedBy, s.Name+".") {
						by = s.Name
					}
				}
				want[by]++
				longest = max(longest, d.Wait.Milliseconds())
			}
			r := Replay{Activity: "write", Policy: own, Subjects: subjects}
			o := traffic.Options{Unit: traffic.Millis, Activity: "write", Subjects: []string{"room", "tenant"}}
			report, err := r.Run(t.Context(), traffic.NewReader(o, traffic.File{Name: "f", Text: strings.NewReader(lines)}))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, report.LimitedBy); diff != "" || report.Allowed != allowed || report.LongestWaitMs != longest {
				t.Errorf("%d allowed, longest wait %d; want %d, %d (-want +got):\n%s\n%s", report.Allowed, report.LongestWaitMs, allowed, longest, diff, lines)
			}
		}))
	}
}
