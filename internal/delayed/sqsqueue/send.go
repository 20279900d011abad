package sqsqueue

import (
	"cmp"
	"context"
	"errors"
	"net"
	"time"

	sdkretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/cric-talk/guards/internal/retry"
)

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
