package sqstest

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Batch is the number of messages that Lambda passes to a function at once.
const Batch = 10

// Feed does what Lambda does for a queue with ReportBatchItemFailures, until
// ctx is done. It receives messages, invokes the function with them, and
// deletes the messages that the function doesn't report as failed. A failed
// message becomes visible again after its visibility timeout. If the function
// returns an error, all its messages do.
func (q *Queue) Feed(ctx context.Context, invoke func(context.Context, []byte) ([]byte, error)) {
	for ctx.Err() == nil {
		messages, err := q.receive(ctx, Batch)
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
