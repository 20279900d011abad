package testkit

import (
	"testing"
	"time"
)

// InOneWindow waits for a window of the clock, such as a minute, with enough time left for a test
// whose requests must be counted in one. It is for programs that use the real clock.
func InOneWindow(t testing.TB, window, needs time.Duration) {
	t.Helper()
	now := time.Now()
	if left := now.Truncate(window).Add(window).Sub(now); left < needs {
		time.Sleep(left)
	}
}
