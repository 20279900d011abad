// Package sqsqueue keeps delayed jobs in SQS. It is apart from package delayed so
// that no function links SQS's client that has no queue.
package sqsqueue

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/cric-talk/guards/internal/delayed"
	"github.com/cric-talk/guards/internal/guard"
)

// Queue is a queue of SQS. It is safe for concurrent use.
type Queue struct {
	client *sqs.Client
	url    string
}

// New makes a queue of one that exists. It asks nothing. The SDK's retryer is
// off: it knows no deadline.
func New(cfg aws.Config, url string) *Queue {
	client := sqs.NewFromConfig(cfg, func(o *sqs.Options) {
		o.Retryer = aws.NopRetryer{}
		o.RetryMaxAttempts = 0
	})
	return &Queue{client: client, url: url}
}

const (
	timeout      = 2 * time.Second        // for one Send, all attempts included
	margin       = 100 * time.Millisecond // of the caller's deadline, kept for the answer
	longestDelay = 15 * time.Minute       // SQS's own

	firstPause   = 25 * time.Millisecond // at most, with full jitter; it doubles
	longestPause = 100 * time.Millisecond
	leastAttempt = 5 * time.Millisecond // a shorter one has no chance
)

// Send implements [delayed.Queue]. What may have failed is sent again in the
// time that there is: a job on the queue twice is the same job, one that is lost
// is lost.
func (q *Queue) Send(ctx context.Context, job guard.Job, delay time.Duration) error {
	body, err := delayed.Body(job)
	if err != nil {
		return err
	}
	by := time.Now().Add(timeout)
	if end, ok := ctx.Deadline(); ok && end.Add(-margin).Before(by) {
		by = end.Add(-margin)
	}
	ctx, cancel := context.WithDeadline(ctx, by)
	defer cancel()
	message := &sqs.SendMessageInput{QueueUrl: &q.url, MessageBody: &body, DelaySeconds: delaySeconds(delay)}
	if err := ctx.Err(); err != nil {
		return err
	}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		share := time.Until(by) / 3 // so that two more can follow
		err := q.attempt(ctx, share, message)
		if err == nil || !passes(err) || ctx.Err() != nil || share < leastAttempt {
			return err
		}
		select {
		case <-time.After(rand.N(pause)):
		case <-ctx.Done():
			return err
		}
	}
}

func (q *Queue) attempt(ctx context.Context, timeout time.Duration, message *sqs.SendMessageInput) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := q.client.SendMessage(ctx, message)
	return err
}

// delaySeconds rounds up: a job that is early has to wait once more.
func delaySeconds(delay time.Duration) int32 {
	delay = min(max(0, delay), longestDelay)
	return int32((delay + time.Second - 1) / time.Second)
}

// passes says whether another attempt may fare better: not where SQS has
// answered that it does not take the message.
func passes(err error) bool {
	answer, answered := errors.AsType[*smithyhttp.ResponseError](err)
	api, readable := errors.AsType[smithy.APIError](err)
	if !answered || !readable || answer.HTTPStatusCode() >= 500 {
		return true
	}
	_, throttled := retry.DefaultThrottleErrorCodes[api.ErrorCode()]
	return throttled
}
