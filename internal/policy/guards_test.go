package policy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	. "github.com/cric-talk/guards/internal/policy"
)

func TestNothingIsGivenBackWhereNothingIsCounted(t *testing.T) {
	if u, ok := Must("a: 3/1m, b: 9/1h").Undo(start, start, 1, nil); ok {
		t.Errorf("the undo in an empty item is %+v, want none", u)
	}
}

func TestAMillionActionsCanBeGivenBackAtOnce(t *testing.T) {
	s := State{"activityCount": 1_000_000}
	if u, ok := Must("9/1m").Undo(start, start, 1_000_000, s); !ok || u.Apply(s)["activityCount"] != 0 {
		t.Errorf("the undo of a million is %+v, %v", u, ok)
	}
	if u, ok := Must("9/1m").Undo(start, start, 1_000_001, State{"activityCount": 1_000_001}); ok {
		t.Errorf("the undo of more than a million is %+v, want none", u)
	}
}

// The product of a time and an interval has just more than 64 bits.
func TestABucketThatIsFullInTheFarFuture(t *testing.T) {
	s := State{"tat": 1 << 62, "every": 1}
	if r := Must("bucket 1/4ms").Read(start, 1, s); r.Wait <= 0 || r.ResetAt <= start {
		t.Errorf("it reads %+v, want a wait", r)
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

func TestIsPlace(t *testing.T) {
	for readyAt, want := range map[int64]bool{start: true, start + 10_000: true, 10_000: true, start + 1: false, start - 1: false, 0: false, -10_000: false} {
		if got := Must("reservoir 3/10s ahead 1m").IsPlace(readyAt); got != want {
			t.Errorf("IsPlace(%d) = %v, want %v", readyAt, got, want)
		}
		if Must("3/10s").IsPlace(readyAt) {
			t.Errorf("a window gives the place %d", readyAt)
		}
	}
}

// A clock that is up to 120 s ahead decides when an action counts. A time
// further ahead is a mistake, and is not followed.
func TestHowFarAheadAClockIsFollowed(t *testing.T) {
	p := Must("pace: bucket 1/5s burst 3, all: 9/1h")
	for ahead, want := range map[int64]int64{0: 0, 2000: 2000, 120_000: 120_000, 120_001: 0} {
		u, ok := p.Take(start+ahead, 1, 1, nil)
		if r := p.Read(start, 0, u.Apply(nil)); !ok || r.At != start+want {
			t.Errorf("on a clock %d ms behind, the receipt is %d ms ahead, want %d", ahead, r.At-start, want)
		}
	}
}
