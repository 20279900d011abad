// Package delayed is the function that passes delayed jobs on at their time: off
// the delayed queue, past the guard's policy, onto the ready queue.
package delayed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
)

// A Worker takes jobs at their time. It is safe for concurrent use.
type Worker struct {
	// Guard is asked on each job. An outage is to be an error there: a job can
	// wait for the table, and need not be decided on one instance's memory.
	Guard *guard.Guard

	Delayed Queue        // where a job goes whose time has not come
	Ready   Queue        // where it goes at its time
	Log     *slog.Logger // a line for each failure; nil: none
}

// A Queue is where jobs wait.
type Queue interface {
	// Send puts a job on the queue, not to be received before delay is over, or
	// before the longest that the queue can hold it back. After an error it may
	// be there all the same, and without one it may be there twice.
	Send(ctx context.Context, job guard.Job, delay time.Duration) error
}

const (
	atOnce = 10                     // messages of an event that are worked on at a time
	margin = 500 * time.Millisecond // of Lambda's deadline, kept for the answer
)

// Invoke implements lambda.Handler: an event of SQS in, the messages that failed
// out. They come again, and those that always fail go to the dead-letter queue.
func (w *Worker) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var batch events.SQSEvent
	if err := json.Unmarshal(payload, &batch); err != nil || batch.Records == nil {
		return nil, &input.ValidationError{Field: "Records", Problem: "is missing, want an event of SQS"}
	}
	if by, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, by.Add(-margin))
		defer cancel()
	}
	failed := w.work(ctx, batch.Records)
	answer := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for i, m := range batch.Records {
		if failed[i] {
			answer.BatchItemFailures = append(answer.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
		}
	}
	return json.Marshal(answer)
}

// work says of each message whether it failed.
func (w *Worker) work(ctx context.Context, messages []events.SQSMessage) []bool {
	failed := make([]bool, len(messages))
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i, m := range messages {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			job, err := parse(m.Body)
			if err == nil {
				err = w.turn(ctx, job)
			}
			w.record(ctx, m.MessageId, err)
			failed[i] = err != nil
		})
	}
	wg.Wait()
	return failed
}

// turn passes a job on, or has it wait on. Its message is deleted only after that,
// so for a moment it is there twice: a job may come twice, and is never lost.
func (w *Worker) turn(ctx context.Context, job guard.Job) error {
	a, err := w.ask(ctx, job)
	if err != nil {
		return err
	}
	if a.Allowed {
		return w.Ready.Send(ctx, job, 0)
	}
	d := a.Decision
	if d.Enqueued != 0 { // a new place
		job.ReadyAt, job.Enqueued = d.ReadyAt, d.Enqueued
	}
	return w.Delayed.Send(ctx, job, d.Wait)
}

// ask has the guard decide on a job in its place. Where the limits were changed
// and have no such place any more, it asks for a new one.
func (w *Worker) ask(ctx context.Context, job guard.Job) (guard.Answer, error) {
	r := guard.Request{
		UserID: job.UserID, Activity: job.Activity, ReadyAt: job.ReadyAt,
		// A message that comes twice is given one new place, while the table remembers.
		RequestID: fmt.Sprintf("place-%d-%d", job.ReadyAt, job.Enqueued),
	}
	a, err := w.Guard.Decide(ctx, r)
	if e, ok := errors.AsType[*input.ValidationError](err); ok && e.Field == "readyAt" {
		r.ReadyAt = 0
		return w.Guard.Decide(ctx, r)
	}
	return a, err
}

// record leaves a line of log for a message that failed: its id, and nothing of
// what it holds.
func (w *Worker) record(ctx context.Context, message string, err error) {
	if err == nil || w.Log == nil {
		return
	}
	if e, ok := errors.AsType[*input.ValidationError](err); ok {
		w.Log.LogAttrs(ctx, slog.LevelError, "invalid job", slog.String("message", message), slog.String("field", e.Field))
		return
	}
	if e, ok := errors.AsType[*input.Unavailable](err); ok && e.Cause != nil {
		err = fmt.Errorf("%w: %w", e, e.Cause)
	}
	w.Log.LogAttrs(ctx, slog.LevelWarn, "job not passed on", slog.String("message", message), slog.Any("error", err))
}
