package deployment_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/cric-talk/guards/internal/delayed/sqsqueue"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/testkit"
)

// delayedJobsReachTheReadyQueue sends 25 jobs at once. 10 may run now, 10 in the
// next ten seconds and 5 in the ten seconds after that. The last 15 come from the
// queue.
func (s *stack) delayedJobsReachTheReadyQueue(t *testing.T) {
	var wg sync.WaitGroup
	answers := make([]answer, 25)
	slots := make(chan struct{}, 4)
	for i := range answers {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			answers[i] = s.invoke(t, "jobs-guard", fmt.Sprintf(`{"userId": %q, "activity": "update_member_role", "job": {"n": %d}}`, user+"g1", i))
		})
	}
	wg.Wait()
	count := map[string]int{}
	for _, a := range answers {
		count[a.Reason]++
	}
	if count["ok"]+count["delayed"] != len(answers) || count["delayed"] < 5 {
		t.Fatalf("25 jobs at once: %v, want 10 ok in each window and the rest delayed", count)
	}
	// One job leaves the queue early, because SQS delays messages by 15 minutes at most, and must go back. Another one is late
	// and needs a new place.
	queue := sqsqueue.New(s.cfg, s.ids["DelayedQueue"])
	for n, at := range []time.Time{time.Now().Add(20 * time.Second), time.Now().Add(-time.Hour)} {
		job := guard.Job{UserID: user + "g2", Activity: "update_member_role", RequestID: fmt.Sprint("job-", n), Enqueued: 1, Job: json.RawMessage(fmt.Sprint(n))}
		job.ReadyAt = at.Truncate(10 * time.Second).UnixMilli() // the start of a window
		testkit.OK(t, queue.Send(t.Context(), job, 0))
	}
	want := count["delayed"] + 2
	seen := map[string]bool{}
	until(t, time.Minute, fmt.Sprintf("%d jobs on the ready queue", want), func() bool {
		out := testkit.Must(sqs.NewFromConfig(s.cfg).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: new(s.ids["ReadyQueue"]), MaxNumberOfMessages: 10, WaitTimeSeconds: 1,
		}))(t)
		for _, m := range out.Messages {
			seen[*m.Body] = true
		}
		return len(seen) >= want
	})
	if len(seen) != want {
		t.Errorf("%d jobs on the ready queue, want %d: %v", len(seen), want, seen)
	}
}
