package policy_test

import (
	"strings"
	"testing"

	. "github.com/cric-talk/guards/internal/policy"
)

func TestEachLimitIsAPolicyOfItsOwn(t *testing.T) {
	for _, k := range Kinds() {
		for _, text := range k.Examples {
			single, err := Parse("a: " + text + ", b: 10/1m")
			if err != nil {
				continue // this one can only stand alone
			}
			each := single.Each()
			if len(each) != 2 || !each[0].Equal(Must(text)) || !each[1].Equal(Must("10/1m")) {
				t.Errorf("the limits of %q are %v", single, each)
			}
		}
	}
}

// A live limit without an option, a zone or a cost has the code's, and no other one.
func TestOptionsOf(t *testing.T) {
	for _, tt := range []struct{ p, q, want string }{
		{"bucket 1/2s", "bucket 1/5s keep 1h", "bucket 1/2s keep 1h"},
		{"bucket 1/2s keep 2h", "bucket 1/5s keep 1h", "bucket 1/2s keep 2h"},
		{"bucket 1/5s", "bucket 1/5s burst 3", "bucket 1/5s"}, // a burst changes how much is allowed
		{"reservoir 20/10s", "reservoir 10/10s ahead 15m", "reservoir 20/10s ahead 15m"},
		{"20/1m", "10/1m", "20/1m"},
		{"b: 2/1m, a: bucket 1/2s", "a: bucket 1/5s keep 1h, b: 1/1m", "b: 2/1m, a: bucket 1/2s keep 1h"},
		{"20/1m", "10/1m cost 2", "20/1m cost 2"},
		{"20/1m cost 3", "10/1m cost 2", `cost of "20/1m cost 3" is 3, want 2`},
		{"1/1m", "10/1m cost 2", "cost is 2, want at most the 1"},
		{"300/day", "200/day in Europe/Berlin", "300/day in Europe/Berlin"},
		{"300/day in Asia/Tokyo", "200/day in Europe/Berlin", "is day in Asia/Tokyo, want day in Europe/Berlin"},
		{"300/1d", "200/day in Europe/Berlin", "is 1d, want day in Europe/Berlin"},
		{"300/week", "200/day in Europe/Berlin", "is week in Europe/Berlin, want day in Europe/Berlin"},
	} {
		p, err := Must(tt.p).WithDefaults(Must(tt.q))
		if got := p.String(); got != tt.want && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%q with the options of %q is %q, %v, want %q", tt.p, tt.q, got, err, tt.want)
		}
	}
}

// AtOnce refuses what a queue delays. Everything else stays.
func TestAtOnce(t *testing.T) {
	for text, want := range map[string]string{
		"reservoir 10/10s ahead 15m":                    "reservoir 10/10s",
		"day: 200/1d, jobs: reservoir 10/10s ahead 15m": "day: 200/1d, jobs: reservoir 10/10s",
		"reservoir 10/10s":                              "reservoir 10/10s",
		"bucket 10/1m burst 15":                         "bucket 10/1m burst 15",
	} {
		if got := Must(text).AtOnce(); got.String() != want {
			t.Errorf("%s at once is %s, want %s", text, got, want)
		}
	}
}
