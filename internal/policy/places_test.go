package policy_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

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
		{"reservoir 10/10s ahead 15m", start + 1, false, false}, // no window starts then
		{"reservoir 10/10s ahead 15m", start + 9_999, false, false},
		{"reservoir 10/10s ahead 15m", start + 10_001, false, false},
		{"reservoir 10/1m ahead 15m", start + 10_000, false, false}, // a deploy has made the window longer
		{"reservoir 10/10s ahead 15m", -10_000, false, false},
		{"reservoir 10/10s ahead 15m", 0, false, false},
		{"10/1m", start, false, false}, // gives no places
	} {
		onTime, early := Must(tt.text).Due(start, tt.readyAt)
		if onTime != tt.onTime || early != tt.early {
			t.Errorf("%s: a place %d ms from now is on time: %v, early: %v, want %v, %v",
				tt.text, tt.readyAt-start, onTime, early, tt.onTime, tt.early)
		}
	}
}

// Skip leaves its argument as it is.
func TestSkip(t *testing.T) {
	const readyAt, million = start + 30_000, 1_000_000
	for _, tt := range []struct {
		text       string
		from, want State
	}{
		{"reservoir 3/10s ahead 1m", nil, State{"t": readyAt * million}},
		{"reservoir 3/10s ahead 1m", State{"t": readyAt*million - 5, "x": 1}, State{"t": readyAt * million, "x": 1}},
		{"reservoir 3/10s ahead 1m", State{"t": readyAt*million + 2}, State{"t": readyAt*million + 2}}, // it is further already
		{"a: reservoir 3/10s ahead 1m, b: 9/1h", State{"b_s": 7}, State{"a_t": readyAt * million, "b_s": 7}},
		{"3/10s", State{"activityCount": 2}, State{"activityCount": 2}},
	} {
		before := Update{}.Apply(tt.from)
		if got := Must(tt.text).Skip(readyAt, tt.from); !cmp.Equal(got, tt.want) {
			t.Errorf("%s: Skip of %v is %v, want %v", tt.text, tt.from, got, tt.want)
		}
		if !cmp.Equal(Update{}.Apply(tt.from), before) {
			t.Errorf("%s: Skip has changed its argument from %v to %v", tt.text, before, tt.from)
		}
	}
}

// The guard of a reservoir holds exactly where a fresh plan would give the same
// place and leave the same ticket: not where the place is wrong, and not only in the state
// it was planned in.
func TestTheGuardOfAReservoirFitsItsPlace(t *testing.T) {
	p := Must("reservoir 3/10s ahead 25s")
	const window, million = 10_000, 1_000_000
	tickets := []int64{0, (start-window)*million + 3}
	for begun := int64(start); begun < start+4*window; begun += window {
		for _, given := range []int64{-1, 0, 1, 2, 3, 4, 5} {
			if begun == start || given > 0 { // a later window is begun with its first place
				tickets = append(tickets, begun*million+given)
			}
		}
	}
	for _, planned := range tickets {
		u, ok := p.Take(start, 1, 1, State{"t": planned})
		if !ok {
			continue
		}
		for _, q := range tickets {
			s := State{"t": q}
			fresh, ok := p.Take(start, 1, 1, s)
			same := ok && fresh.ReadyAt == u.ReadyAt && cmp.Equal(fresh.Apply(s), u.Apply(s))
			if u.Holds(s) != same {
				t.Errorf("planned at ticket %d, the guard holds at %d: %v, want %v: %+v", planned-start*million, q-start*million, !same, same, u.If)
			}
		}
	}
}
