// Package jobs builds the two Lambda functions that have queues. They are in a
// package of their own, so that no other function links SQS's client.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/delayed"
	"github.com/cric-talk/guards/internal/delayed/sqsqueue"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/lambdafn"
)

// Guard runs a guard as [lambdafn.Guard] does. If DELAYED_QUEUE_URL is set, the
// guard puts jobs that have to wait on that queue. Its windows are at least 2 s.
func Guard(page []guards.Guard, name string, mistake error) {
	lambdafn.Start(name, mistake, func(cfg aws.Config, logger *slog.Logger) (lambda.Handler, func(), error) {
		h, err := lambdafn.NewGuard(cfg, page, name, logger)
		if err != nil {
			return nil, nil, err
		}
		if os.Getenv("DELAYED_QUEUE_URL") == "" {
			return h, h.Metrics.Flush, nil
		}
		if !h.Guard.DelayedQueue {
			return nil, nil, fmt.Errorf("%s has no DelayedQueue", name)
		}
		queue, err := openQueue(cfg, "DELAYED_QUEUE_URL")
		if err != nil {
			return nil, nil, err
		}
		h.Delay = func(ctx context.Context, job guard.Job) error {
			return queue.Send(ctx, job, time.UnixMilli(job.ReadyAt).Sub(h.Limiter.Clock()))
		}
		return h, h.Metrics.Flush, nil
	})
}

// GuardOfPage runs a guard as [lambdafn.GuardOfPage] does, with the queue.
func GuardOfPage() {
	page, g, err := lambdafn.OfPage()
	Guard(page, g.Name, err)
}

// Delayed runs the function that passes on the jobs from the delayed queue, where the
// guard with a DelayedQueue puts them. It never returns. Mistake is as in [lambdafn.Start].
func Delayed(page []guards.Guard, mistake error) {
	const own = "delayed-jobs"
	lambdafn.Start(own, mistake, func(cfg aws.Config, logger *slog.Logger) (lambda.Handler, func(), error) {
		i := slices.IndexFunc(page, func(g guards.Guard) bool { return g.DelayedQueue })
		if i < 0 {
			return nil, nil, errors.New("no guard has a DelayedQueue")
		}
		h, err := lambdafn.NewGuard(cfg, page, page[i].Name, logger)
		if err != nil {
			return nil, nil, err
		}
		h.Guard.Name = own  // for the log and the metrics
		h.DenyOutage = true // a job can wait until the table is back
		w := &delayed.Worker{Guard: h, Log: logger}
		if w.Delayed, err = openQueue(cfg, "DELAYED_QUEUE_URL"); err != nil {
			return nil, nil, err
		}
		if w.Ready, err = openQueue(cfg, "READY_QUEUE_URL"); err != nil {
			return nil, nil, err
		}
		return w, h.Metrics.Flush, nil
	})
}

// openQueue opens the queue whose URL is in an environment variable.
func openQueue(cfg aws.Config, variable string) (*sqsqueue.Queue, error) {
	value := os.Getenv(variable)
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || len(u.Path) < 2 {
		return nil, fmt.Errorf("%s is %q, want the URL of a queue, such as https://sqs.us-east-1.amazonaws.com/123456789012/jobs", variable, value)
	}
	return sqsqueue.New(cfg, value), nil
}
