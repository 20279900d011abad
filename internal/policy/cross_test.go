package policy_test

import (
	"fmt"
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
		{"6/1m", []int64{4, 1, 1}, []int64{0, 80, 100}},                 // 80 % of 6 are 5
		{"100/1h cost 7", []int64{11, 1, 1, 1}, []int64{0, 80, 0, 100}}, // 2 units are left
		{"100/1h cost 7", []int64{14}, []int64{100}},
		{"100/1h cost 50", []int64{1, 1}, []int64{0, 100}},
		{"9/1h cost 2", []int64{1, 1, 1, 1}, []int64{0, 0, 0, 100}}, // 8 units are 80 %, too
		{"9/1h cost 4", []int64{1, 1}, []int64{0, 100}},
		{"3/1h cost 2", []int64{1}, []int64{100}}, // 2 units are below 80 %, and no more can be used
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

// Each limit has its own share. The whole has the share of the limit whose figures it
// shows.
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

// In a group, actions of different costs use up one limit. It is used up if the cheapest one
// does not fit any more, also by the check of a dearer one. A live limit has the code's costs.
func TestTheCheapestActionOfAGroupUsesUpALimit(t *testing.T) {
	dear, cheap, other := Must("posts: 99/1h, writes: 100/1h cost 7"), Must("writes: 100/1h cost 3"), Must("likes: 10/1h")
	all := []Policy{dear, cheap, other}
	live, err := Must("posts: 99/1h, writes: 200/1h").WithDefaults(dear.Beside(all...))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		p     Policy
		units int64 // used before
		n     int64
		want  int64
	}{
		{dear, 80, 2, 0},   // 6 are left, which two of the cheap ones fit
		{dear, 90, 1, 0},   // exactly one of the cheap ones
		{dear, 91, 1, 100}, // 2 are left
		{dear, 93, 1, 100},
		{cheap, 94, 1, 0},
		{cheap, 95, 1, 100},
		{cheap, 77, 1, 80},
		{cheap, 77, 7, 100},
		{live, 190, 1, 0},
		{live, 191, 1, 100},
	} {
		p := tt.p
		if tt.p.Part("writes") != "200/1h cost 7" {
			p = p.Beside(all...)
		}
		s := take(t, p, start, tt.n, Values{"writes_s": start*1_000_000 + tt.units}.State())
		r := p.Cross(start, tt.n, s, p.Read(start, 0, s))
		if got := r.Each[len(r.Each)-1]; got.Name != "writes" || got.Crossed != tt.want {
			t.Errorf("%v: %d more after %d units crossed %d of %s, want %d", tt.p, tt.n, tt.units, got.Crossed, got.Name, tt.want)
		}
	}
	if alone := Must("writes: 100/1h cost 7"); alone.Cross(start, 1, Values{"writes_s": start*1_000_000 + 97}.State(), alone.Read(start, 0, Values{"writes_s": start*1_000_000 + 97}.State())).Crossed != 100 {
		t.Error("a limit by itself is used up if its own action does not fit")
	}
}

func TestOnlyAFixedWindowAndALockoutAreCrossed(t *testing.T) {
	for _, k := range Kinds() {
		for _, text := range k.Examples {
			p := Must(text)
			for used := range p.Max() {
				var s State
				if used > 0 {
					s = take(t, p, start, used, s)
				}
				u, ok := p.Take(start, p.Max()-used, 1, s)
				if !ok {
					continue // a reservoir takes one action at a time
				}
				got := p.Cross(start, p.Max()-used, u.Apply(s), p.Read(start, 0, u.Apply(s))).Crossed
				want := map[string]int64{"fixed": 100, "lockout": 100}[k.Name]
				if got != want {
					t.Fatalf("%s: after %d of %d, the rest has crossed %d, want %d", text, used, p.Max(), got, want)
				}
			}
		}
	}
}
