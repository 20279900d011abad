package scenarios_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
)

// once makes one attempt of up to 1.5 s for each call.
var once = map[string]any{"timeout": 1_500, "decisionTimeout": 1_000, "attempts": 1}

// A call of one client begins while others wait.
type timed struct {
	after time.Duration
	user  string // its kind, see gate
	want  string // answered, lost or paused
}

// Each timeline leaves 300 ms between what must be in order.
var timelines = map[string][]timed{
	"a lost call opens the breaker for a second": {
		{0, "silent", "lost"}, {1800 * time.Millisecond, "user", "paused"}, {2800 * time.Millisecond, "user", "answered"},
	},
	"not if another call was answered meanwhile": {
		{0, "silent", "lost"}, {0, "slow", "answered"}, {1800 * time.Millisecond, "user", "answered"},
	},
	"a stale probe does not open it again": {
		{0, "silent", "lost"}, {2800 * time.Millisecond, "silent", "lost"}, {4 * time.Second, "user", "answered"}, {4600 * time.Millisecond, "user", "answered"},
	},
}

func TestTheBreakerOfEachClient(t *testing.T) {
	everyClient(t, func(t *testing.T, c client) {
		for name, calls := range timelines {
			t.Run(name, func(t *testing.T) {
				g := openGate(t)
				d := c.start(t, g.url, nil)
				testkit.Retry(t, func(tb testing.TB) { // a busy machine can make a call late
					tb.Helper()
					d.do(t, map[string]any{"new": once})
					all := make([]map[string]any, len(calls))
					for i, call := range calls {
						all[i] = checkBy(call.user, call.after)
					}
					for i, r := range d.do(t, map[string]any{"together": all}).Results {
						if got := outcome(r); got != calls[i].want {
							tb.Errorf("the call after %v is %s, want %s", calls[i].after, got, calls[i].want)
						}
					}
				})
			})
		}
	})
}

func outcome(r result) string {
	text, lost := r.Answer["outage"].(string)
	switch {
	case r.Error != nil:
		return r.Error.Class
	case !lost:
		return "answered"
	case strings.HasSuffix(text, "did not answer a moment ago"):
		return "paused"
	}
	return "lost"
}

// The client's process stands still while the answer arrives, until long after
// the call's timeout.
func TestAProcessThatWasLateReadsItsAnswer(t *testing.T) {
	everyClient(t, func(t *testing.T, c client) {
		g := openGate(t)
		g.asked, g.takes = make(chan bool), 100*time.Millisecond
		d := c.start(t, g.url, nil)
		testkit.Retry(t, func(tb testing.TB) {
			tb.Helper()
			d.do(t, map[string]any{"new": once})
			ended, stopped := make(chan bool), make(chan error, 1)
			go func() {
				select {
				case <-g.asked:
				case <-ended:
					stopped <- errors.New("no request arrived")
					return
				}
				err := d.process.Signal(syscall.SIGSTOP)
				time.Sleep(3 * time.Second) // no clock of ours can stop a process
				stopped <- errors.Join(err, d.process.Signal(syscall.SIGCONT))
			}()
			r := d.do(t, checkBy("user", 0))
			close(ended)
			if err := <-stopped; err != nil || outcome(r) != "answered" {
				tb.Errorf("%s: %v, want an answer: %v", outcome(r), fmt.Sprint(r.Answer), err)
			}
		})
	})
}
