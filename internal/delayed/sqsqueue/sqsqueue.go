// Package sqsqueue implements a queue of delayed jobs with SQS. It is separate
// from package delayed, so that only functions with a queue link SQS's client.
package sqsqueue

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdkretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
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

const (
	maxCopies = 2           // sends of one job that the queue may have taken
	copyAfter = time.Second // how long a send may be without an answer until a copy follows
)

// sends are the sends of one job. For example, the queue takes 1.3 s to answer:
//
//	0 s     the first send, on an open connection
//	1 s     a copy, on a new connection, because the first may be dead
//	1.3 s   the first send is answered: the job is queued, perhaps twice
//
// A send that the queue has certainly not taken is repeated at once, and is no copy. So
// there are at most two copies of a job, whatever fails.
type sends struct {
	started int   // all sends
	copies  int   // those that the queue may have taken; those under way are among them
	running int   // those under way
	failed  error // the last failure

	ended chan error
	next  *time.Timer // when the next send starts
	pause retry.Pause
	rest  time.Duration // the pause before the last send is repeated
}

// deliver sends the message until the queue has answered one of the sends, no other one may
// follow, or ctx ends. It needs a ctx with a deadline.
func (q *Queue) deliver(ctx context.Context, message *sqs.SendMessageInput) error {
	s := &sends{ended: make(chan error, retry.MaxTries), next: time.NewTimer(0)}
	defer s.next.Stop()
	for {
		select {
		case <-ctx.Done():
			return cmp.Or(s.failed, ctx.Err())
		case <-s.next.C:
			q.start(ctx, s, message)
		case err := <-s.ended:
			s.running--
			if err == nil || !temporary(err) {
				return err
			}
			s.failed = err
			if notTaken(err) {
				s.copies--
				if s.mayFollow() {
					s.next.Reset(s.rest)
				}
			}
			if s.running == 0 && !s.mayFollow() {
				return err
			}
		}
	}
}

// mayFollow reports whether another send may follow.
func (s *sends) mayFollow() bool { return s.copies < maxCopies && s.started < retry.MaxTries }

// start starts the next send, and sets when a copy of it follows.
func (q *Queue) start(ctx context.Context, s *sends, message *sqs.SendMessageInput) {
	client := q.client
	if s.started > 0 {
		client = q.fresh
	}
	s.rest = s.pause.Next()
	s.started++
	s.copies++
	s.running++
	go func() {
		_, err := client.SendMessage(ctx, message)
		s.ended <- err
	}()
	if end, _ := ctx.Deadline(); s.mayFollow() {
		s.next.Reset(min(copyAfter, time.Until(end)/2))
	}
}

// temporary reports whether another send may succeed. If SQS has answered
// that it refuses the message, another send is useless.
func temporary(err error) bool {
	answer, answered := errors.AsType[*smithyhttp.ResponseError](err)
	_, readable := errors.AsType[smithy.APIError](err)
	return !answered || !readable || answer.HTTPStatusCode() >= 500 || throttled(err)
}

// notTaken reports whether, after a temporary failure, the queue certainly does not have
// the message: it was throttled, or there was no connection to send it on.
func notTaken(err error) bool {
	network, ok := errors.AsType[*net.OpError](err)
	return throttled(err) || ok && network.Op == "dial"
}

func throttled(err error) bool {
	api, readable := errors.AsType[smithy.APIError](err)
	if !readable {
		return false
	}
	_, throttled := sdkretry.DefaultThrottleErrorCodes[api.ErrorCode()]
	return throttled
}
