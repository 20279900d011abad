// Package sqsqueue implements a queue of delayed jobs with SQS. It is separate
// from package delayed, so that only functions with a queue link SQS's client.
package sqsqueue

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdkretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/cric-talk/guards/internal/delayed"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/retry"
)

// Queue is an SQS queue. It is safe for concurrent use.
type Queue struct {
	client *sqs.Client
	url    string
}

// New returns a Queue for the existing queue with this URL. It sends no
// requests. The SDK's retryer is off, because it does not respect a deadline.
func New(cfg aws.Config, url string) *Queue {
	client := sqs.NewFromConfig(cfg, func(o *sqs.Options) {
		o.Retryer = aws.NopRetryer{}
		o.RetryMaxAttempts = 0
	})
	return &Queue{client: client, url: url}
}

const (
	timeout      = 2 * time.Second  // for one Send, all attempts included
	longestDelay = 15 * time.Minute // the longest that SQS allows
)

// Send implements [delayed.Queue]. While there is time, it repeats an attempt
// that may have failed. That may put the job on the queue twice, which is safe,
// because consumers drop the second copy. Otherwise the job could be lost.
func (q *Queue) Send(ctx context.Context, job guard.Job, delay time.Duration) error {
	body, err := delayed.Body(job)
	if err != nil {
		return err
	}
	ctx, cancel := retry.Before(ctx, retry.Margin)
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, timeout)
	defer cancel()
	end, _ := ctx.Deadline()
	message := &sqs.SendMessageInput{QueueUrl: &q.url, MessageBody: &body, DelaySeconds: delaySeconds(delay)}
	budget := &retry.Budget{Deadline: end}
	err = cmp.Or(ctx.Err(), context.DeadlineExceeded) // if there is no time for any attempt
	for failed := false; ; failed = true {
		share, ok := budget.Next(ctx, failed)
		if !ok {
			return err
		}
		if err = q.attempt(ctx, share, message); err == nil || !temporary(err) {
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

// delaySeconds returns the delay in whole seconds. It rounds up, because a job
// that arrives early has to wait again.
func delaySeconds(delay time.Duration) int32 {
	delay = min(max(0, delay), longestDelay)
	return int32((delay + time.Second - 1) / time.Second)
}

// temporary reports whether another attempt may succeed. If SQS has answered
// that it refuses the message, another attempt is useless.
func temporary(err error) bool {
	answer, answered := errors.AsType[*smithyhttp.ResponseError](err)
	api, readable := errors.AsType[smithy.APIError](err)
	if !answered || !readable || answer.HTTPStatusCode() >= 500 {
		return true
	}
	_, throttled := sdkretry.DefaultThrottleErrorCodes[api.ErrorCode()]
	return throttled
}
