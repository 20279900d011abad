package agentd

import (
	"net/http"
	"os"
	"sync"
	"time"
)

// traffic knows whether the app still asks. A question about health does not count: it comes
// from the platform.
type traffic struct {
	mu     sync.Mutex
	active int
	last   time.Time // when the latest request came or ended
}

// counting returns h, and counts its requests.
func (t *traffic) counting(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			t.add(1)
			defer t.add(-1)
		}
		h.ServeHTTP(w, r)
	})
}

func (t *traffic) add(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.active += n
	t.last = time.Now()
}

// silence returns how long no request has come.
func (t *traffic) silence() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.active > 0 {
		return 0
	}
	return time.Since(t.last)
}

// drain returns when no request has come for the time quiet from now on, after the time
// longest, or at another signal.
func (t *traffic) drain(signals <-chan os.Signal, quiet, longest time.Duration) {
	t.add(0)
	end := time.NewTimer(longest)
	defer end.Stop()
	looks := time.NewTicker(quiet / 40)
	defer looks.Stop()
	for t.silence() < quiet {
		select {
		case <-looks.C:
		case <-end.C:
			return
		case <-signals:
			return
		}
	}
}
