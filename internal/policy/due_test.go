package policy_test

import (
	"math"
	"testing"

	. "github.com/cric-talk/guards/internal/policy"
)

// A place keeps its time while it is still to come, even if the limit that gave
// it reached further ahead than the present one.
func TestDue(t *testing.T) {
	const start, day = 1_700_000_040_000, 24 * 3600 * 1000
	for _, tt := range []struct {
		text          string
		readyAt       int64
		onTime, early bool
	}{
		{"reservoir 10/10s ahead 15m", start, true, false},
		{"reservoir 10/10s ahead 15m", start - 10_000, false, false},
		{"reservoir 10/10s ahead 15m", start + 10_000, false, true},
		{"reservoir 10/10s ahead 15m", start + 15*60_000, false, true},
		{"reservoir 10/10s ahead 10s", start + 15*60_000, false, true}, // ahead was lowered
		{"reservoir 10/10s", start + 10_000, false, true},
		{"reservoir 10/10s", start, true, false},
		{"reservoir 10/10s ahead 366d", start + 366*day, false, true},
		{"reservoir 10/10s ahead 366d", start + 366*day + 10_000, false, false}, // no policy gives it
		{"reservoir 10/10s ahead 15m", math.MaxInt64 / 10_000 * 10_000, false, false},
		{"10/1m", start, false, false}, // gives no places
	} {
		onTime, early := Must(tt.text).Due(start, tt.readyAt)
		if onTime != tt.onTime || early != tt.early {
			t.Errorf("%s: a place %d ms from now is on time: %v, early: %v, want %v, %v",
				tt.text, tt.readyAt-start, onTime, early, tt.onTime, tt.early)
		}
	}
}
