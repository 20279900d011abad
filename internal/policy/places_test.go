package policy_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	. "github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/policy/policytest"
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

// Skip leaves its arguments as they are.
func TestSkip(t *testing.T) {
	const next, million = start + 30_000, 1_000_000
	for _, tt := range []struct {
		text              string
		given, from, want State // no want: from
	}{
		{"reservoir 3/10s ahead 1m", policytest.Values{"t": next*million + 2}.State(), nil, policytest.Values{"t": next*million + 2}.State()},
		{"reservoir 3/10s ahead 1m", policytest.Values{"t": start*million + 2}.State(), nil, policytest.Values{"t": start*million + 2}.State()}, // the current window
		{"reservoir 3/10s ahead 1m", policytest.Values{"t": (start-10_000)*million + 2}.State(), nil, nil},                                      // the one before
		{"reservoir 3/10s ahead 1m", policytest.Values{"t": next*million + 2, "y": 1}.State(), policytest.Values{"t": next*million - 5, "x": 1}.State(), policytest.Values{"t": next*million + 2, "x": 1}.State()},
		{"reservoir 3/10s ahead 1m", policytest.Values{"t": next*million + 2}.State(), policytest.Values{"t": next*million + 2}.State(), nil},
		{"reservoir 3/10s ahead 1m", policytest.Values{"t": next*million + 2}.State(), policytest.Values{"t": next*million + 3}.State(), nil}, // it is further already
		{"reservoir 3/10s ahead 1m", nil, policytest.Values{"t": 5}.State(), nil},
		{"a: reservoir 3/10s ahead 1m, b: 9/1h", policytest.Values{"a_t": next*million + 1, "b_s": 9}.State(), policytest.Values{"b_s": 7}.State(), policytest.Values{"a_t": next*million + 1, "b_s": 7}.State()},
		{"3/10s", policytest.Values{"activityCount": 3}.State(), policytest.Values{"activityCount": 2}.State(), nil},
	} {
		before, givenBefore := Update{}.Apply(tt.from), Update{}.Apply(tt.given)
		want := tt.want
		if want == nil {
			want = tt.from
		}
		got, skips := Must(tt.text).Skip(start+5_000, tt.given, tt.from)
		if !cmp.Equal(got, want) || skips != (tt.want != nil) {
			t.Errorf("%s: Skip of %v in %v is %v, %v, want %v", tt.text, tt.given, tt.from, got, skips, want)
		}
		if !cmp.Equal(Update{}.Apply(tt.from), before) || !cmp.Equal(Update{}.Apply(tt.given), givenBefore) {
			t.Errorf("%s: Skip has changed an argument: %v to %v, or %v to %v", tt.text, before, tt.from, givenBefore, tt.given)
		}
	}
}

// The guard of a reservoir holds in exactly the states where a fresh plan would give the
// same place and leave the same ticket. It does not hold if the place is wrong, and it
// holds in more states than the one it was planned from. This is also true with places
// that were given elsewhere.
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
	for _, elsewhere := range []int64{0, start*million + 2, (start+window)*million + 3, (start+2*window)*million + 1, (start+3*window)*million + 3} {
		given := policytest.Values{"t": elsewhere}.State()
		take := func(s State) (Update, bool) { return p.TakeAfter(start, 1, 1, given, s) }
		for _, planned := range tickets {
			u, ok := take(policytest.Values{"t": planned}.State())
			if !ok {
				continue
			}
			for _, q := range tickets {
				if elsewhere != 0 && q < planned && elsewhere <= planned { // the ticket in the store never falls
					continue
				}
				s := policytest.Values{"t": q}.State()
				fresh, ok := take(s)
				same := ok && fresh.ReadyAt == u.ReadyAt && cmp.Equal(fresh.Apply(s), u.Apply(s))
				if u.Holds(s) != same {
					t.Errorf("with places up to %d, planned at ticket %d, the guard holds at %d: %v, want %v: %+v",
						elsewhere-start*million, planned-start*million, q-start*million, !same, same, u.If)
				}
			}
		}
	}
}

// TakeAfter gives the place that Take gives if the store knows the same places.
func TestTakeAfterPlacesThatWereGivenElsewhere(t *testing.T) {
	const million = 1_000_000
	for _, text := range []string{"reservoir 3/10s ahead 25s", "reservoir 3/10s", "jobs: reservoir 3/10s ahead 25s, day: 9/1d"} {
		p, attr := Must(text), "t"
		if p.Named() {
			attr = "jobs_t"
		}
		for _, elsewhere := range []int64{0, start*million + 1, start*million + 3, (start+10_000)*million + 2, (start+20_000)*million + 3} {
			for _, stored := range []int64{0, start*million + 2, (start+10_000)*million + 1, (start+10_000)*million + 3} {
				s, both := policytest.Values{attr: stored, "day_s": 0}.State(), policytest.Values{attr: max(stored, elsewhere), "day_s": 0}.State()
				u, ok := p.TakeAfter(start, 1, 1, policytest.Values{attr: elsewhere}.State(), s)
				want, wanted := p.Take(start, 1, 1, both)
				if ok != wanted || ok && (u.ReadyAt != want.ReadyAt || !cmp.Equal(u.Apply(s), want.Apply(both)) || !u.Holds(s)) {
					t.Errorf("%s, %d elsewhere, %d stored: %+v, %v, want what is given in %v: %+v, %v", text, elsewhere, stored, u, ok, both, want, wanted)
				}
			}
		}
	}
}
