package policy_test

import (
	"testing"

	"github.com/cric-talk/guards/internal/policy"
)

// A request that takes more than the lowest of several limits never fits.
func TestTheMostOfSeveralLimitsIsTheLowest(t *testing.T) {
	for text, most := range map[string]int64{
		"10/1m":                                       10,
		"bucket 10/1m burst 15":                       15,
		"minute: 10/1m, day: 200/1d":                  10,
		"day: 200/1d, minute: 10/1m":                  10,
		"a: 30/1m, b: bucket 1/5s burst 3, c: 60/1h":  3,
		"pace: bucket 1/5s burst 3, places: 10/1m":    3,
		"day: 200/1d, jobs: reservoir 10/10s":         1, // each job has a place of its own
		"jobs: reservoir 10/10s, pace: bucket 20/10s": 1,
	} {
		if got := policy.Must(text).Most(); got != most {
			t.Errorf("%s: a request can take at most %d, want %d", text, got, most)
		}
	}
}
