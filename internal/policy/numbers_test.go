package policy_test

import (
	"fmt"
	"testing"

	. "github.com/cric-talk/guards/internal/policy"
)

// with returns p with a number for the limit with this name.
func with(p Policy, name string, n int64) Policy {
	return p.With(func(limit string) (int64, bool) { return n, limit == name })
}

func TestWith(t *testing.T) {
	for _, tt := range []struct {
		text   string
		number int64
		want   string // the numbers of the limit then
		short  bool   // not even one action fits
	}{
		{"10/1m max 100", 50, "50/1m max 100", false},
		{"10/1m max 100", 3, "3/1m max 100", false},
		{"10/1m max 100", 100, "100/1m max 100", false},
		{"10/1m max 100", 101, "100/1m max 100", false},
		{"10/1m max 100", 1_000_000, "100/1m max 100", false},
		{"10/1m max 100", 0, "1/1m max 100", true},
		{"10/1m", 50, "10/1m", false},
		{"sliding 50/1h max 100", 70, "sliding 70/1h max 100", false},
		{"log 10/1h max 100", 70, "log 70/1h max 100", false},
		{"10/1m max 100 cost 5", 4, "5/1m max 100 cost 5", true},
		{"10/1m max 100 cost 5", 5, "5/1m max 100 cost 5", false},
		{"bucket 100/1m burst 150 max 5000", 200, "bucket 200/1m burst 300 max 5000", false},
		{"bucket 100/1m burst 150 max 5000", 9000, "bucket 5000/1m burst 7500 max 5000", false},
		{"bucket 100/1m burst 10 max 5000", 95, "bucket 95/1m burst 9 max 5000", false},
		{"bucket 100/1m burst 10 max 5000", 9, "bucket 9/1m burst 1 max 5000", false}, // less than one, rounded down
		{"bucket 100/1m burst 10 max 5000", 1, "bucket 1/1m max 5000", false},
		{"bucket 100/1m burst 10 max 5000", 0, "bucket 1/1m max 5000", true},
		{"bucket 60/1m burst 1 max 600", 59, "bucket 59/1m burst 1 max 600", false},
		{"bucket 100/1m burst 10 max 5000 cost 2", 19, "bucket 19/1m burst 2 max 5000 cost 2", false},
		{"bucket 100/1m burst 10 max 5000 cost 2", 20, "bucket 20/1m burst 2 max 5000 cost 2", false},
	} {
		p := with(Must(tt.text), "", tt.number)
		if _, short := p.TooLow(1); p.String() != tt.want || short != tt.short {
			t.Errorf("%s with %d is %s, too low: %v, want %s, %v", tt.text, tt.number, p, short, tt.want, tt.short)
		}
		if p.Highest() != Must(tt.text).Highest() {
			t.Errorf("%s with %d: the highest is %d, want %d for every caller", tt.text, tt.number, p.Highest(), Must(tt.text).Highest())
		}
	}
}

// A number concerns the limit with its name, also where places are left out.
func TestWithSeveral(t *testing.T) {
	p := Must("minute: 10/1m max 50, day: 200/1d, jobs: reservoir 5/1h ahead 3h")
	for _, q := range []Policy{with(p, "minute", 20), with(p, "minute", 20).AtOnce(), with(p.AtOnce(), "minute", 20)} {
		if r := q.Read(0, 0, nil); r.Each[0].Limit != 20 || r.Each[1].Limit != 200 {
			t.Errorf("%s has the limits %d and %d, want 20 and 200", q, r.Each[0].Limit, r.Each[1].Limit)
		}
	}
	if limit, low := with(p, "minute", 3).TooLow(4); limit != "minute" || !low {
		t.Errorf("too low for 4 is %q, %v, want minute", limit, low)
	}
	if _, low := with(p, "day", 3).TooLow(4); low {
		t.Error("a number is too low for a limit that takes none")
	}
	if _, low := p.TooLow(1_000); low {
		t.Error("the text's own limit is no number of a caller")
	}
}

// No number makes a bucket more than 10 % slower than it says, and none faster.
func TestPaceOfNumbers(t *testing.T) {
	for _, text := range []string{"bucket 100/1h max 400000", "bucket 60/1m burst 1 max 6666", "bucket 1/1d max 1000000", "bucket 7/7s max 777"} {
		r := Must(text).Rates()[0]
		window := r.Window.Milliseconds()
		for _, n := range []int64{1, 2, 3, 7, 11, 13, 97, 101, 773, 777, 4999, 6661, 37_501, 99_991, 399_989, 999_983, r.Max - 1, r.Max} {
			if n > r.Max {
				continue
			}
			p := with(Must(text), "", n)
			interval := p.Quota().Window.Milliseconds() / p.Quota().Limit
			if pace := float64(window) / float64(interval) / float64(n); pace > 1 || pace < 0.9 {
				t.Errorf("%s with %d: an action every %d ms, which is %.3f of the number, want 0.9 to 1", text, n, interval, pace)
			}
		}
	}
}

// A number below what is counted refuses, and a larger one admits exactly the difference.
func TestANumberIsTheDifference(t *testing.T) {
	const now = 1_700_000_000_000
	for _, text := range []string{"10/1h max 100", "log 10/1h max 100", "sliding 10/1h max 100", "bucket 10/1h max 100", "a: 10/1h max 100, b: 1000/1d"} {
		p := Must(text)
		name := p.Rates()[0].Name
		s := take(t, p, now, 10, nil)
		for n := int64(1); n <= 100; n++ {
			q := with(p, name, n)
			_, fits := q.Take(now, max(1, n-10), 2, s)
			_, more := q.Take(now, max(1, n-9), 2, s)
			if want := n > 10; fits != want || more {
				t.Errorf("%s with %d after 10: the difference fits: %v, want %v; one more fits: %v", text, n, fits, want, more)
			}
		}
	}
}

// In a text of several activities, limits that share a count all have a max, or none has.
func TestMaxOfSharedCounts(t *testing.T) {
	for _, share := range []func(a, b Policy) error{CompatibleTiers, CompatibleInGroup} {
		join(t, share, []pair{
			{"w: 10/1m max 100", "w: 20/1m max 50", ""},
			{"w: 10/1m max 100", "w: 20/1m", `limit "w" of "w: 20/1m" has no max, but in "w: 10/1m max 100" has one, and they share a count`},
			{"w: 10/1m", "w: 20/1m max 50", `limit "w" of "w: 20/1m max 50" has a max, but in "w: 10/1m" has none, and they share a count`},
		})
	}
}

func ExamplePolicy_With() {
	p := Must("bucket 100/1m burst 150 max 5000")
	bought := p.With(func(limit string) (n int64, ok bool) { return 200, limit == "" })
	fmt.Println(bought)
	_, low := bought.TooLow(301)
	fmt.Println("301 at once can never fit:", low)
	// Output:
	// bucket 200/1m burst 300 max 5000
	// 301 at once can never fit: true
}

// A policy without a number is the same as before, so its leases serve.
func TestWithoutANumberAPolicyIsTheSame(t *testing.T) {
	for text, same := range map[string]bool{"600/1m prepaid": true, "10/1m": true, "10/1m max 20": false} {
		p := Must(text)
		q := p.With(func(string) (int64, bool) { return 15, true })
		if p.Same(q) != same {
			t.Errorf("%s with a number for each limit that takes one: the same: %v, want %v", text, !same, same)
		}
	}
}
