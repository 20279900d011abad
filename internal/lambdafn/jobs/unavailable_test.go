package jobs_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

func TestPoisonGoesToTheDeadLetterQueue(t *testing.T) {
	t.Parallel()
	testkit.Retry(t, func(t testing.TB) { // the queue delivers again what is not handled within a second
		r := newRig(t, 1, 2)
		i := r.start("delayed-jobs")
		r.feed(i)
		good := message(t, canary, 1, starts(thisWindow()-100), 1)
		r.delayed.Send(`{"userId": "` + canary + `"}`)
		r.delayed.Send(good)
		r.delayed.Send("payload")
		if got := r.ready.Take(1, 20*time.Second); len(got) != 1 || got[0].Body != good {
			t.Errorf("on the ready queue: %+v, want the good one", got)
		}
		if got := r.dead.Take(2, 20*time.Second); len(got) != 2 {
			t.Errorf("on the dead-letter queue: %+v, want two", got)
		}
		if n := strings.Count(i.Logs(), "invalid job"); n < 2 || n > 4 || r.delayed.Len() != 0 {
			t.Errorf("%d lines of log on two messages of two deliveries, %d left", n, r.delayed.Len())
		}
	})
}

// An outage of the table is an error of a late job, whatever ON_OUTAGE says.
func TestTableUnreachable(t *testing.T) {
	t.Parallel()
	testkit.Retry(t, func(t testing.TB) { // a job must be received in its window, and SQS must answer within 2 s
		r := newRig(t, 60, 10)
		i := r.start("delayed-jobs", "DECISION_TIMEOUT=300ms", "ON_OUTAGE=allow")
		i.Ready(t)
		inOneWindow(8 * time.Second)
		r.dynamo.Fail(math.MaxInt, dynamotest.Refuse)
		onTime, late := message(t, canary, 0, starts(thisWindow()), 1), message(t, canary, 1, starts(thisWindow()-100), 1)
		if failed := r.work(i, onTime, late); failed != "m1" {
			t.Errorf("failed: %q, want the late one, which needs the table", failed)
		}
		if got := r.ready.Take(1, 20*time.Second); len(got) != 1 || got[0].Body != onTime {
			t.Errorf("on the ready queue: %+v, want the one on time", got)
		}
	})
}
