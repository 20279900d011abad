package client

import (
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
)

// After an outage, a function is not asked for a second. The second ends in a freeze, in which the
// monotonic clock stands still, and although the clock on the wall is set back.
func TestAPauseLastsASecond(t *testing.T) {
	for _, tt := range []struct {
		what      string
		wall, ran time.Duration
		over      bool
	}{
		{"at once", 0, time.Millisecond, false},
		{"an app that runs", time.Second, time.Second, true},
		{"a freeze", 10 * time.Second, 20 * time.Millisecond, true},
		{"a clock that is set back", -time.Hour, time.Second, true},
	} {
		var all breakers
		b, now := all.breaker("g"), time.Now()
		first, _ := b.admit(now)
		b.lost(first, now)
		later := testkit.Later(now, tt.wall, tt.ran)
		if _, ok := b.admit(later); ok != tt.over {
			t.Errorf("%s: the pause is over: %v, want %v", tt.what, ok, tt.over)
		}
	}
}

// A slot ends in a freeze, too.
func TestASlotIsLostInAFreeze(t *testing.T) {
	lostAt := testkit.Later(time.Now(), -time.Second, time.Hour) // a second ago on the wall
	if s := (&Slot{lostAt: lostAt}); !s.Lost() {
		t.Error("the slot is not lost, want it lost by the clock on the wall")
	}
}
