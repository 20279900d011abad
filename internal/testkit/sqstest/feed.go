package sqstest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// batch is the number of messages that Lambda passes to a function at once.
const batch = 10

// Feed does what Lambda does for a queue with ReportBatchItemFailures, until
// ctx is done. It receives messages, invokes the function with them, and
// deletes the messages that the function doesn't report as failed. A failed
// message becomes visible again after its visibility timeout. If the function
// returns an error, all its messages do.
func (q *Queue) Feed(ctx context.Context, invoke func(context.Context, []byte) ([]byte, error)) {
	for ctx.Err() == nil {
		messages, err := q.receive(ctx, batch)
		if err != nil && ctx.Err() == nil {
			q.t.Errorf("receive messages for the function: %v", err)
			return
		}
		if len(messages) == 0 {
			continue
		}
		answer, err := invoke(ctx, q.event(messages))
		if err != nil {
			continue
		}
		for _, m := range messages {
			if failed(answer, *m.MessageId) {
				continue
			}
			if err := q.remove(ctx, m); err != nil && ctx.Err() == nil {
				q.t.Errorf("delete a message: %v", err)
			}
		}
	}
}

// event returns the event that Lambda makes of messages.
func (q *Queue) event(messages []types.Message) []byte {
	var event events.SQSEvent
	for _, m := range messages {
		event.Records = append(event.Records, events.SQSMessage{
			MessageId: *m.MessageId, ReceiptHandle: *m.ReceiptHandle, Body: *m.Body, Md5OfBody: *m.MD5OfBody,
			Attributes: m.Attributes, MessageAttributes: map[string]events.SQSMessageAttribute{},
			EventSource: "aws:sqs", EventSourceARN: q.ARN, AWSRegion: "us-east-1",
		})
	}
	payload, err := json.Marshal(event)
	if err != nil {
		q.t.Errorf("encode an event: %v", err)
	}
	return payload
}

// failed reports whether a function's answer lists a message as failed. An
// answer that is not valid JSON fails all messages.
func failed(answer []byte, id string) bool {
	var response events.SQSEventResponse
	if json.Unmarshal(answer, &response) != nil {
		return true
	}
	return slices.ContainsFunc(response.BatchItemFailures, func(f events.SQSBatchItemFailure) bool {
		return f.ItemIdentifier == id || f.ItemIdentifier == ""
	})
}

// Event returns the event that Lambda makes of messages with these bodies. Their
// ids are m0, m1, ...
func Event(t testing.TB, bodies ...string) []byte {
	t.Helper()
	event := events.SQSEvent{Records: []events.SQSMessage{}}
	for i, body := range bodies {
		event.Records = append(event.Records, events.SQSMessage{MessageId: fmt.Sprint("m", i), Body: body})
	}
	payload, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

// Failed returns the ids of the messages that a function's answer lists as
// failed, with spaces between them. An answer without a list fails the test.
func Failed(t testing.TB, answer []byte) string {
	t.Helper()
	var response events.SQSEventResponse
	if err := json.Unmarshal(answer, &response); err != nil || response.BatchItemFailures == nil {
		t.Fatalf("%s: %v", answer, err)
	}
	var ids []string
	for _, f := range response.BatchItemFailures {
		ids = append(ids, f.ItemIdentifier)
	}
	return strings.Join(ids, " ")
}
