package guard_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// An instance answers one request a minute. Lambda freezes it in between, and the monotonic clock
// stands still. It goes by the clock on the wall: a kill switch works at the second request, and
// the table decides again at the first one after its only failure.
func TestAFreezeEndsEachWait(t *testing.T) {
	began, minutes := time.Now(), 0 // virtual time has no monotonic clock
	synctest.Test(t, func(t *testing.T) {
		b, s := newBench(t), &settings{}
		b.Limiter.Now = func() time.Time {
			return testkit.Later(began, time.Duration(minutes)*time.Minute, time.Duration(minutes)*10*time.Millisecond)
		}
		b.Live = &live.Follower{Source: s, Guards: cricket.All, Now: b.Limiter.Now}
		next := func(want string) {
			t.Helper()
			b.reasons(`{}`, want)
			minutes++
		}
		next("ok")
		b.store.away = errAway
		next("unavailable")
		b.store.away = nil
		next("ok")
		s.set(b, live.Settings{Activities: map[string]live.Override{"create_post": {Mode: "off"}}})
		next("ok") // it reads the switch
		next("unlimited")
	})
}
