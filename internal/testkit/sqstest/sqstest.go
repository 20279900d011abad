// Package sqstest gives tests an SQS to work with: an endpoint, queues for one
// test, and the part of Lambda that feeds a function from a queue.
package sqstest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// Endpoint returns the URL in SQS_ENDPOINT. If the variable is not set, it
// skips the test or, with CI=true, fails it: see [dynamotest.Endpoint].
func Endpoint(t testing.TB) string {
	t.Helper()
	return dynamotest.EndpointIn(t, "SQS_ENDPOINT", "an ElasticMQ")
}

// A Queue is a queue that only one test uses.
type Queue struct {
	URL string
	ARN string

	t      testing.TB
	client *sqs.Client
}

// NewQueue creates an empty queue at Endpoint, with attributes such as
// VisibilityTimeout. The queue is deleted when the test ends.
func NewQueue(t testing.TB, attributes map[string]string) *Queue {
	t.Helper()
	cfg := dynamotest.Config(Endpoint(t))
	if c, ok := cfg.HTTPClient.(*http.Client); ok {
		t.Cleanup(c.CloseIdleConnections)
	}
	client := sqs.NewFromConfig(cfg)
	made, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{
		QueueName:  aws.String("guards-test-" + rand.Text()),
		Attributes: attributes,
	})
	if err != nil {
		t.Fatalf("create the test's queue: %v", err)
	}
	t.Cleanup(func() { // t.Context is done by now
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := client.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: made.QueueUrl}); err != nil {
			t.Errorf("delete the test's queue: %v", err)
		}
	})
	q := &Queue{URL: *made.QueueUrl, t: t, client: client}
	q.ARN = q.attribute(types.QueueAttributeNameQueueArn)
	return q
}

// Redrive returns the RedrivePolicy for another queue. Its messages move to q
// after they were received the given number of times.
func (q *Queue) Redrive(received int) string {
	return fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, q.ARN, received)
}

// Send puts a message on the queue.
func (q *Queue) Send(body string) {
	q.t.Helper()
	if _, err := q.client.SendMessage(q.t.Context(), &sqs.SendMessageInput{QueueUrl: &q.URL, MessageBody: &body}); err != nil {
		q.t.Fatalf("send a message: %v", err)
	}
}

// A Message is a message that Take removed from a queue.
type Message struct {
	Body string
	Sent time.Time // according to the queue's clock
}

// Take removes n messages from the queue and returns them. It returns fewer if
// the time is over.
func (q *Queue) Take(n int, within time.Duration) (taken []Message) {
	q.t.Helper()
	for by := time.Now().Add(within); len(taken) < n && time.Now().Before(by); {
		messages, err := q.receive(q.t.Context(), min(n-len(taken), 10))
		if err != nil {
			q.t.Fatalf("receive messages: %v", err)
		}
		for _, m := range messages {
			if err := q.remove(q.t.Context(), m); err != nil {
				q.t.Fatalf("delete a message: %v", err)
			}
			millis, _ := strconv.ParseInt(m.Attributes["SentTimestamp"], 10, 64)
			taken = append(taken, Message{*m.Body, time.UnixMilli(millis)})
		}
	}
	return taken
}

// Len returns the number of messages in the queue, including delayed and
// invisible ones.
func (q *Queue) Len() (n int) {
	q.t.Helper()
	for _, name := range []types.QueueAttributeName{
		types.QueueAttributeNameApproximateNumberOfMessages,
		types.QueueAttributeNameApproximateNumberOfMessagesDelayed,
		types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
	} {
		some, err := strconv.Atoi(q.attribute(name))
		if err != nil {
			q.t.Errorf("the attribute %s of a queue: %v", name, err)
		}
		n += some
	}
	return n
}

// attribute returns one attribute of the queue.
func (q *Queue) attribute(name types.QueueAttributeName) string {
	q.t.Helper()
	got, err := q.client.GetQueueAttributes(q.t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: &q.URL, AttributeNames: []types.QueueAttributeName{name},
	})
	if err != nil {
		q.t.Fatalf("get an attribute of a queue: %v", err)
	}
	return got.Attributes[string(name)]
}

// receive waits at most one second for messages.
func (q *Queue) receive(ctx context.Context, most int) ([]types.Message, error) {
	got, err := q.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl:                    &q.URL,
		MaxNumberOfMessages:         int32(most),
		WaitTimeSeconds:             1,
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	})
	if err != nil {
		return nil, err
	}
	return got.Messages, nil
}

// remove deletes a received message.
func (q *Queue) remove(ctx context.Context, m types.Message) error {
	_, err := q.client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &q.URL, ReceiptHandle: m.ReceiptHandle})
	return err
}
