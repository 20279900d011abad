package policy_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/policy"
)

// Figures are in actions: the limit and what is left are rounded down, and what is
// used is rounded up.
func TestFiguresOfACost(t *testing.T) {
	for _, tt := range []struct {
		text  string
		taken int64 // actions
		want  Reading
	}{
		{"100/1h cost 5", 3, Reading{Limit: 20, Used: 3, Remaining: 17}},
		{"100/1h cost 5", 20, Reading{Limit: 20, Used: 20, Remaining: 0}},
		{"9/1h cost 2", 4, Reading{Limit: 4, Used: 4, Remaining: 0}}, // one unit is left
		{"log 9/1h cost 2", 1, Reading{Limit: 4, Used: 1, Remaining: 3}},
		{"sliding 9/1h cost 2", 2, Reading{Limit: 4, Used: 2, Remaining: 2}},
		{"bucket 10/1h burst 7 cost 3", 1, Reading{Limit: 2, Used: 1, Remaining: 1}},
	} {
		p := Must(tt.text)
		s := take(t, p, 0, tt.taken, nil)
		got := p.Read(0, 0, s)
		if got.Limit != tt.want.Limit || got.Used != tt.want.Used || got.Remaining != tt.want.Remaining || p.Max() != tt.want.Limit {
			t.Errorf("%s after %d: limit %d, used %d, remaining %d, at most %d at once, want %+v", tt.text, tt.taken, got.Limit, got.Used, got.Remaining, p.Max(), tt.want)
		}
		if _, ok := p.Take(0, tt.want.Remaining+1, 0, s); ok {
			t.Errorf("%s takes one more than remain", tt.text)
		}
		if u, ok := p.Undo(0, 0, 0, tt.taken, s); !ok {
			t.Errorf("%s does not give back", tt.text)
		} else if s = u.Apply(s); p.Read(0, 0, s).Used != 0 {
			t.Errorf("%s has %d used after all were given back", tt.text, p.Read(0, 0, s).Used)
		}
	}
}

// Limits beside each other have costs of their own.
func TestEachLimitHasItsOwnCost(t *testing.T) {
	p := Must("minute: 6/1m, tokens: 100/1d cost 30")
	if p.Max() != 3 {
		t.Errorf("at most %d at once, want 3", p.Max())
	}
	if r := p.Read(0, 2, take(t, p, 0, 2, nil)); r.Name != "tokens" || r.Each[0].Used != 2 || r.Each[1].Used != 2 || r.Each[1].Remaining != 1 || r.Wait != 24*time.Hour {
		t.Errorf("%+v", r)
	}
}

func TestCostsThatCannotBe(t *testing.T) {
	for text, want := range map[string]string{
		"10/1m cost 11":               "cost is 11, want at most the 10 that one action can take",
		"bucket 10/1m burst 5 cost 6": "cost is 6, want at most the 5 that one action can take",
		"a: 10/1m, b: 10/1h cost 11":  "b: cost is 11, want at most the 10",
		"10/1m cost 0":                `cost is "0", want 1 to 1000000`,
		"reservoir 10/10s cost 2":     `"cost" is not an option of a reservoir limit`,
		"1000000/1m cost 20":          "limit is 50000 in 1m",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %s", text, err, want)
		}
	}
	for text, want := range map[string]string{"10/1m cost 1": "10/1m", "100000/1m cost 200": "100000/1m cost 200", "bucket 10/1m keep 1h cost 2": "bucket 10/1m keep 1h cost 2"} {
		if got := Must(text).String(); got != want {
			t.Errorf("%s is written %s, want %s", text, got, want)
		}
	}
}
