package scenarios_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
)

// The other scenarios set the timeout and the attempts.
func TestTheDefaultsOfEachClient(t *testing.T) {
	testkit.Clients.Need(t)
	t.Parallel()
	everyClient(t, func(t *testing.T, c client) {
		var requests []time.Time
		var mu sync.Mutex
		answer := throttle
		server := testkit.Serve(t, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			requests = append(requests, time.Now())
			mu.Unlock()
			_, _ = http.MaxBytesReader(w, r.Body, 1<<20).Read(make([]byte, 1<<16))
			answer(w, r, nil)
		})
		d := c.start(t, server.URL, nil)
		testkit.Retry(t, func(tb testing.TB) {
			tb.Helper()
			for name, tt := range map[string]struct {
				answer      fault
				requests    int
				least, most time.Duration
			}{
				"throttled": {throttle, 3, 0, 2 * time.Second},
				"silent":    {hang, 2, 2800 * time.Millisecond, 3500 * time.Millisecond},
			} {
				mu.Lock()
				answer, requests = tt.answer, nil
				mu.Unlock()
				d.do(t, map[string]any{"new": map[string]any{}})
				got := tallyOf([]result{d.do(t, checkBy("user"))})
				if len(requests) != tt.requests || got.outages != 1 || got.longest < tt.least || got.longest > tt.most {
					tb.Errorf("%s: %d requests, %+v, want %d in %v to %v", name, len(requests), got, tt.requests, tt.least, tt.most)
				}
				if name != "silent" || len(requests) == 0 {
					continue
				}
				if first := requests[len(requests)-1].Sub(requests[0]); first < 1200*time.Millisecond || first > 1600*time.Millisecond {
					tb.Errorf("the first attempt took %v, want 1.3 s and a pause", first)
				}
			}
		})
	})
}
