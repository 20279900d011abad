package replay_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	. "github.com/cric-talk/guards/internal/workbench/replay"
	"github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

// A replay decides as a guard does by the numbers of callers. A number that is too low refuses,
// and counts nothing.
func TestAReplayDecidesByNumbers(t *testing.T) {
	for _, text := range []string{"3/9s max 7", "4/9s max 9 cost 2", "log 3/9s max 7", "sliding 3/9s max 7", "bucket 3/9s burst 4 max 8", "writes: 3/9s max 7"} {
		t.Run(text, rapid.MakeCheck(func(t *rapid.T) {
			p := policy.Must(text)
			l, now := limiter(t)
			full, quick := Check(p, true), Check(p, false)
			for i := range rapid.IntRange(1, 40).Draw(t, "requests") {
				*now += later(t)
				line, by := traffic.Line{Time: *now, User: "u1"}, p
				if rapid.Bool().Draw(t, "gives") {
					line.Limit = new(rapid.Int64Range(0, 10).Draw(t, "number"))
					by = p.With(func(string) (int64, bool) { return *line.Limit, true })
				}
				want := ratelimit.Decision{Reason: ratelimit.Limited}
				if _, low := by.TooLow(1); !low {
					var err error
					if want, err = l.Check(t.Context(), ratelimit.Request{UserID: "u1", Policy: by, Count: 1, ID: fmt.Sprint(i), Fresh: true}); err != nil {
						t.Fatal(err)
					}
				}
				got, fast := full(line), quick(line)
				if got.Allowed != want.Allowed || got.Wait != want.Wait && want.Limit > 0 || fast.Allowed != want.Allowed || fast.Wait != want.Wait || got.Limit == 0 {
					t.Fatalf("%+v, for a report %+v, want %+v", got, fast, want)
				}
			}
		}))
	}
}

// Only a user's only limit takes a number, and no subject's.
func TestWhichLimitsTakeNumbers(t *testing.T) {
	const csv = "time,user,activity,room,limit\n1767571200000,u1,act,r1,4\n1767571200000,u1,act,r1,4\n1767571200000,u1,act,r1,4\n1767571200000,u1,act,r1,0\n1767571200000,u1,act,r1,\n"
	o := traffic.Options{Unit: traffic.Millis, Numbers: true}
	for _, tt := range []struct {
		limit, room string
		want        map[string]int64 // refused, by what
	}{
		{"2/1m max 9", "", map[string]int64{"all": 2}},
		{"2/1m", "", map[string]int64{"all": 3}},
		{"a: 2/1m max 9, b: 8/1m", "", map[string]int64{"all": 3}},
		{"2/1m max 9", "9/1m", map[string]int64{"act": 2}},
		{"2/1m max 9", "2/1m max 9", map[string]int64{"act": 2, "room": 1}},
	} {
		r := Replay{Activity: "act", Policy: policy.Must(tt.limit)}
		if o.Subjects = nil; tt.room != "" {
			o.Subjects, r.Subjects = []string{"room"}, []Subject{{Name: "room", Policy: policy.Must(tt.room)}}
		}
		report, err := r.Run(t.Context(), traffic.NewReader(o, traffic.File{Name: "t", Text: strings.NewReader(csv)}))
		if err != nil {
			t.Fatal(err)
		}
		got := report.LimitedBy
		if got == nil {
			got = map[string]int64{"all": report.Refused}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || report.Numbered != 4 {
			t.Errorf("%s, room %s: %d with numbers, refused (-want +got):\n%s", tt.limit, tt.room, report.Numbered, diff)
		}
	}
}
