package policy_test

import (
	"testing"

	. "github.com/cric-talk/guards/internal/policy"
)

func TestShare(t *testing.T) {
	for _, tt := range []struct{ a, b, want string }{
		{"10/1m", "20/1m", ""},
		{"log 100/12h", "log 50/12h", ""},
		{"sliding 50/1h", "sliding 1000/60m", ""},
		{"bucket 10/1m burst 15", "bucket 1/5s keep 1h", ""}, // the windows of buckets may differ
		{"reservoir 10/10s ahead 15m", "reservoir 20/10s", ""},
		{"minute: 10/1m, day: 200/1d", "day: 400/1d, minute: 20/1m", ""}, // their order means nothing
		{"minute: 10/1m, pace: bucket 1/5s", "minute: 20/1m, pace: bucket 1/1h", ""},

		{"10/1m", "10/1h", `window of "10/1h" is 1h, want 1m as in "10/1m", with which it shares a count`},
		{"log 100/12h", "log 100/1d", `window of "log 100/1d" is 1d, want 12h as in "log 100/12h", with which it shares a count`},
		{"sliding 50/1h", "20/1m", `"20/1m" counts in another way than "sliding 50/1h", with which it shares a count; did you mean "sliding 20/1m"?`},
		{"bucket 1/5s", "1/5s", `"1/5s" counts in another way than "bucket 1/5s", with which it shares a count; did you mean "bucket 1/5s"?`},
		{"10/1m", "bucket 20/1m burst 30", `"bucket 20/1m burst 30" counts in another way than "10/1m", with which it shares a count; did you mean "20/1m"?`},
		{"10/1m", "reservoir 20/1m ahead 15m", `"reservoir 20/1m ahead 15m" counts in another way than "10/1m", with which it shares a count; did you mean "20/1m"?`},

		{"10/1m", "minute: 10/1m, day: 200/1d", `"10/1m" has 1 limit and "minute: 10/1m, day: 200/1d" has 2, want the same limits, because they share a count`},
		{
			"minute: 10/1m, hour: 50/1h, day: 200/1d", "minute: 10/1m, day: 200/1d", // it leaves one out
			`"minute: 10/1m, hour: 50/1h, day: 200/1d" has 3 limits and "minute: 10/1m, day: 200/1d" has 2, want the same limits, because they share a count`,
		},
		{"minute: 10/1m, day: 200/1d", "minute: 10/1m, week: 200/7d", `"minute: 10/1m, day: 200/1d" has no limit named "week", but "minute: 10/1m, week: 200/7d" has one, and they share a count`},
		{
			"minute: 10/1m, day: 200/1d", "minute: 10/1h, day: log 100/1d",
			`window of limit "minute" of "minute: 10/1h, day: log 100/1d" is 1h, want 1m as in "minute: 10/1m, day: 200/1d", with which it shares a count` + "\n" +
				`limit "day" of "minute: 10/1h, day: log 100/1d" counts in another way than in "minute: 10/1m, day: 200/1d", with which it shares a count; did you mean "day: 100/1d"?`,
		},
	} {
		got := ""
		if err := Share(Must(tt.a), Must(tt.b)); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("Share(%q, %q):\n got %s\nwant %s", tt.a, tt.b, got, tt.want)
		}
	}
}
