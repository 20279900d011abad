// Package sqsqueue implements a queue of delayed jobs with SQS. It is separate
// from package delayed, so that only functions with a queue link SQS's client.
package sqsqueue

import (
	"context"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/cric-talk/guards/internal/delayed"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/retry"
)

// Queue is an SQS queue. It is safe for concurrent use.
type Queue struct {
	client *sqs.Client
	fresh  *sqs.Client // opens a new connection for each request
	url    string
}

// New returns a Queue for the existing queue with this URL. It sends no
// requests. The SDK's retryer is off, because it does not respect a deadline.
//
// A transport takes an idle connection if it has one, so new connections need a transport
// of their own. If cfg has an HTTP client that is not the SDK's, all requests go by that one.
func New(cfg aws.Config, url string) *Queue {
	once := func(o *sqs.Options) {
		o.Retryer = aws.NopRetryer{}
		o.RetryMaxAttempts = 0
	}
	unshared := func(o *sqs.Options) {
		if client, ok := o.HTTPClient.(*awshttp.BuildableClient); ok {
			o.HTTPClient = client.WithTransportOptions(func(t *http.Transport) { t.DisableKeepAlives = true })
		}
	}
	return &Queue{client: sqs.NewFromConfig(cfg, once), fresh: sqs.NewFromConfig(cfg, once, unshared), url: url}
}

const (
	timeout  = 2 * time.Second  // for one Send, all copies included
	maxDelay = 15 * time.Minute // the longest that SQS allows
)

// Send implements [delayed.Queue]. While there is time, it sends the job again if the queue
// does not answer. That may put the job on the queue twice, which is safe, because
// consumers drop the second copy. Otherwise the job could be lost.
func (q *Queue) Send(ctx context.Context, job guard.Job, delay time.Duration) error {
	body, err := delayed.Body(job)
	if err != nil {
		return err
	}
	ctx, cancel := retry.Before(ctx, retry.Margin)
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return err
	}
	return q.deliver(ctx, &sqs.SendMessageInput{QueueUrl: &q.url, MessageBody: &body, DelaySeconds: delaySeconds(delay)})
}

// delaySeconds returns the delay in whole seconds. It rounds up, because a job
// that arrives early has to wait again.
func delaySeconds(delay time.Duration) int32 {
	delay = min(max(0, delay), maxDelay)
	return int32((delay + time.Second - 1) / time.Second)
}
