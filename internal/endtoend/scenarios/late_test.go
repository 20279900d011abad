package scenarios_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
)

// once makes one attempt of up to 1.5 s for each call.
var once = map[string]any{"timeout": 1_500, "decisionTimeout": 1_000, "maxTries": 1}

// The client's process stands still while the answer arrives, until long after
// the call's timeout.
func TestAProcessThatWasLateReadsItsAnswer(t *testing.T) {
	testkit.Clients.Need(t)
	t.Parallel()
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
			r := d.do(t, checkBy("user"))
			close(ended)
			if err := <-stopped; err != nil || tallyOf([]result{r}).allowed != 1 {
				tb.Errorf("%+v, want an answer: %v", r, err)
			}
		})
	})
}
