package sqstest_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/cric-talk/guards/internal/testkit/sqstest"
)

func TestFeedRepeatsOnlyFailedMessages(t *testing.T) {
	t.Parallel()
	dead := sqstest.NewQueue(t, nil)
	q := sqstest.NewQueue(t, map[string]string{"VisibilityTimeout": "1", "RedrivePolicy": dead.Redrive(3)})
	for _, body := range []string{"good", "again", "never"} {
		q.Send(body)
	}
	ctx, cancel := context.WithCancel(t.Context())
	calls, seen := 0, map[string]int{}
	var wg sync.WaitGroup
	wg.Go(func() {
		q.Feed(ctx, func(_ context.Context, payload []byte) ([]byte, error) {
			if calls++; calls == 1 {
				return nil, errors.New("the first call fails")
			}
			var batch events.SQSEvent
			var answer events.SQSEventResponse
			if err := json.Unmarshal(payload, &batch); err != nil {
				t.Error(err)
			}
			for _, m := range batch.Records {
				seen[m.Body]++
				if m.Body == "never" || m.Body == "again" && seen[m.Body] == 1 {
					answer.BatchItemFailures = append(answer.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
				}
			}
			return json.Marshal(answer)
		})
	})
	got := dead.Take(1, 30*time.Second)
	cancel()
	wg.Wait()
	if len(got) != 1 || got[0].Body != "never" || time.Since(got[0].Sent) > time.Minute || q.Len() != 0 {
		t.Errorf("the dead-letter queue has %+v and the queue has %d messages, want only \"never\" and 0", got, q.Len())
	}
	if seen["good"] != 1 || seen["never"] != 2 || seen["again"] != 2 {
		t.Errorf("deliveries after the failed first call: %v, want good 1, never 2, again 2", seen)
	}
}
