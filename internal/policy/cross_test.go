package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	. "github.com/cric-talk/guards/internal/policy"
)

// Each row counts its actions one after another in one window.
func TestWhichActionsCrossAShareOfTheLimit(t *testing.T) {
	for _, tt := range []struct {
		text  string
		count []int64
		want  []int64
	}{
		{"10/1m", []int64{7, 1, 1, 1}, []int64{0, 80, 0, 100}},
		{"10/1m", []int64{7, 3}, []int64{0, 100}},  // both at once
		{"10/1m", []int64{9, 1}, []int64{80, 100}}, // past 80 %
		{"10/1m", []int64{10}, []int64{100}},       // all at once
		{"10/1m", []int64{8, 2}, []int64{80, 100}}, // exactly
		{"1/1m", []int64{1}, []int64{100}},         // 80 % of 1 are 1
		{"2/1m", []int64{1, 1}, []int64{0, 100}},   // 80 % of 2 are 2
		{"4/1m", []int64{3, 1}, []int64{0, 100}},   // 80 % of 4 are 4
		{"5/1m", []int64{3, 1, 1}, []int64{0, 80, 100}},
		{"6/1m", []int64{4, 1, 1}, []int64{0, 80, 100}},            // 80 % of 6 are 5
		{"9/1h cost 2", []int64{1, 1, 1, 1}, []int64{0, 0, 0, 80}}, // 8 units are 80 %, and nothing crosses 100 %
		{"1000000/1d", []int64{799_999, 1, 199_999, 1}, []int64{0, 80, 0, 100}},
	} {
		var s State
		var got []int64
		p := Must(tt.text)
		for _, n := range tt.count {
			s = take(t, p, start, n, s)
			got = append(got, p.Cross(start, n, s, p.Read(start, 0, s)).Crossed)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s, %v at a time (-want +got):\n%s", tt.text, tt.count, diff)
		}
	}
}

// Each limit has its own share, and the whole has that of the limit whose figures it shows.
func TestEachOfSeveralLimitsIsCrossedByItself(t *testing.T) {
	for _, tt := range []struct {
		text  string
		count []int64
		want  []string
	}{
		{"minute: 5/1m, hour: 10/1h", []int64{3, 1, 1}, []string{"minute 0: 0 0", "minute 80: 80 0", "minute 100: 100 0"}},
		{"hour: 5/1h, minute: 5/1m", []int64{4, 1}, []string{"hour 80: 80 80", "hour 100: 100 100"}},
		{"minute: 10/1m, hour: 9/1h", []int64{7, 1, 1}, []string{"hour 0: 0 0", "hour 80: 80 80", "hour 100: 0 100"}},
		{"minute: 8/1m, slow: bucket 5/1m", []int64{4, 1}, []string{"slow 0: 0 0", "slow 0: 0 0"}},
		{"minute: 5/1m, slow: bucket 5/1m burst 9", []int64{4}, []string{"minute 80: 80 0"}},
		{"log: log 5/1m, minute: 5/1m", []int64{4, 1}, []string{"log 0: 0 80", "log 0: 0 100"}},
	} {
		var s State
		p := Must(tt.text)
		for i, n := range tt.count {
			s = take(t, p, start, n, s)
			r := p.Cross(start, n, s, p.Read(start, 0, s))
			if got := fmt.Sprintf("%s %d: %d %d", r.Name, r.Crossed, r.Each[0].Crossed, r.Each[1].Crossed); got != tt.want[i] {
				t.Errorf("%s, %d more: crossed is %s, want %s", tt.text, n, got, tt.want[i])
			}
		}
	}
}

func TestOnlyAFixedWindowIsCrossed(t *testing.T) {
	for _, k := range Kinds() {
		for _, text := range k.Examples {
			p := Must(text)
			for used := range p.Most() {
				var s State
				if used > 0 {
					s = take(t, p, start, used, s)
				}
				u, ok := p.Take(start, p.Most()-used, 1, s)
				if !ok {
					continue // a reservoir takes one action at a time
				}
				got := p.Cross(start, p.Most()-used, u.Apply(s), p.Read(start, 0, u.Apply(s))).Crossed
				want := map[string]int64{"fixed": 100}[k.Name]
				if want > 0 && strings.HasSuffix(text, "cost 2") {
					want = 80 // one unit of the limit is left, too few for an action
				}
				if got != want {
					t.Fatalf("%s: after %d of %d, the rest has crossed %d, want %d", text, used, p.Most(), got, want)
				}
			}
		}
	}
}
