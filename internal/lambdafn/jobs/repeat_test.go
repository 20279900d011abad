package jobs_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
)

// A group asks 20 times near the end of a window: 10 checks are ok, and 10 have a place in
// the next window. 19 s later, the window of these places is over. The ten are repeated
// beside ten new checks, and at most 10 of the 20 are allowed.
func TestARepeatAfterTheWindowOfItsPlace(t *testing.T) {
	t.Parallel()
	testkit.Retry(t, func(t testing.TB) { // 20 requests must fit into the end of a window
		r := newRig(t, 60, 10)
		i := r.start("jobs-guard")
		warmUp(t, i)
		inOneWindow(4 * time.Second)
		first := thisWindow()
		time.Sleep(time.Until(time.UnixMilli(starts(first) + 7_000)))
		check := func(id string) answer {
			a, _ := ask(t, i, fmt.Sprintf(`{"userId": %q, "activity": "update_member_role", "requestId": %q}`, canary, id))
			return a
		}
		for n := range 20 {
			want := "ok"
			if n >= 10 {
				want = "delayed"
			}
			if a := check(fmt.Sprint("r", n)); a.Reason != want || n >= 10 && a.ReadyAt != starts(first+1) {
				t.Fatalf("check %d: %+v, want %s", n, a, want)
			}
		}
		time.Sleep(time.Until(time.UnixMilli(starts(first+2) + 6_000)))
		allowed := 0
		for n := range 10 {
			for _, id := range []string{fmt.Sprint("r", 10+n), fmt.Sprint("new", n)} {
				a := check(id)
				if a.Allowed {
					allowed++
				} else if a.ReadyAt != starts(first+3) {
					t.Errorf("%s: %+v, want a place in the next window", id, a)
				}
				if again := check(id); again.Allowed != a.Allowed || again.ReadyAt != a.ReadyAt {
					t.Errorf("%s again: %+v, want the place of %+v", id, again, a)
				}
			}
		}
		if now := thisWindow(); now != first+2 {
			t.Fatalf("the last answer came in window %d, want %d", now, first+2)
		}
		if allowed != 10 {
			t.Errorf("%d of 20 jobs run in one window, want 10", allowed)
		}
	})
}
