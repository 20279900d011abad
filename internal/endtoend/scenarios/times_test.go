package scenarios_test

import (
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
)

// everyClient runs a test with each client, at the same time.
func everyClient(t *testing.T, test func(t *testing.T, c client)) {
	t.Helper()
	for _, c := range append(slices.Clip(clients), asyncPython) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			test(t, c)
		})
	}
}

// checkOfANewUser returns a command that checks.
func checkOfANewUser() map[string]any {
	return map[string]any{"call": "check", "activity": "create_post", "args": map[string]any{"userId": "user-" + rand.Text()}}
}

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
			_, _ = io.Copy(io.Discard, r.Body)
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
				got := d.do(t, checkOfANewUser())
				took := time.Duration(got.Ms) * time.Millisecond
				if len(requests) != tt.requests || got.Answer["outage"] == nil || took < tt.least || took > tt.most {
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

// The client's process stands still while the answer arrives, until long after
// the call's timeout.
func TestAProcessThatWasLateReadsItsAnswer(t *testing.T) {
	testkit.Clients.Need(t)
	t.Parallel()
	everyClient(t, func(t *testing.T, c client) {
		asked := make(chan bool)
		server := testkit.Serve(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			select {
			case asked <- true:
			case <-r.Context().Done():
			}
			time.Sleep(100 * time.Millisecond)
			_, _ = io.WriteString(w, `{"allowed":true,"reason":"ok","userId":"u1","activity":"create_post","op":"check","granted":1}`)
		})
		d := c.start(t, server.URL, nil)
		testkit.Retry(t, func(tb testing.TB) {
			tb.Helper()
			d.do(t, map[string]any{"new": map[string]any{"timeout": 1_500, "decisionTimeout": 1_000, "maxTries": 1}})
			ended, stopped := make(chan bool), make(chan error, 1)
			go func() {
				select {
				case <-asked:
				case <-ended:
					stopped <- errors.New("no request arrived")
					return
				}
				err := d.process.Signal(syscall.SIGSTOP)
				time.Sleep(3 * time.Second) // no clock of ours can stop a process
				stopped <- errors.Join(err, d.process.Signal(syscall.SIGCONT))
			}()
			r := d.do(t, checkOfANewUser())
			close(ended)
			if err := <-stopped; err != nil || r.Answer["allowed"] != true || r.Answer["outage"] != nil {
				tb.Errorf("%+v, want an answer: %v", r, err)
			}
		})
	})
}
