// Package delayed is the Lambda function that passes jobs on when their time comes.
//
// A guard with a reservoir gives a place to a job that has to wait. The place
// is the earliest time when the job may run. The guard puts the job on the
// delayed queue. This function takes the job from there, asks the guard again,
// and passes it on:
//
//	the job is  it goes to
//	on time     the ready queue, where the application takes it
//	early       the delayed queue again, with the same place
//	late        the ready queue if there is room now; otherwise the delayed
//	            queue, with a new place
package delayed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/retry"
	"github.com/cric-talk/guards/internal/strictjson"
)

// A Worker passes jobs on. It is safe for concurrent use.
type Worker struct {
	// Guard decides on each job. In an outage it must return an error and not
	// decide from memory, because a job can wait until the table is back.
	Guard *guard.Handler

	Delayed Queue        // where a job waits for its time
	Ready   Queue        // where a job goes when its time has come
	Log     *slog.Logger // gets a line for each failure; nil for none
}

// A Queue holds jobs.
type Queue interface {
	// Send puts a job on the queue. The queue hides the job until the delay is
	// over, or for the longest time that it can. After an error the job may
	// still be on the queue. Without an error it may be there twice.
	Send(ctx context.Context, job guard.Job, delay time.Duration) error
}

// parallel is how many messages of an event are handled at the same time.
const parallel = 10

// Invoke implements lambda.Handler. It takes an event from SQS and returns
// which messages failed. SQS delivers those again. A message that always fails
// goes to the dead-letter queue.
func (w *Worker) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var batch events.SQSEvent
	if err := json.Unmarshal(payload, &batch); err != nil || batch.Records == nil {
		return nil, &input.ValidationError{Field: "Records", Problem: "is missing, want an event of SQS"}
	}
	ctx, cancel := retry.Before(ctx, retry.Margin)
	defer cancel()
	answer := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for i, err := range w.work(ctx, batch.Records) {
		if m := batch.Records[i]; err != nil {
			w.record(ctx, m.MessageId, err)
			answer.BatchItemFailures = append(answer.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
		}
	}
	return json.Marshal(answer)
}

// work handles all messages, and returns the error of each.
//
// After an outage, one of them probes the table, and the others see an open circuit. If the
// table has answered the probe, work handles the others again. Otherwise they would come
// again only after a minute.
func (w *Worker) work(ctx context.Context, messages []events.SQSMessage) []error {
	failed := make([]error, len(messages))
	for round := range 2 {
		slots := make(chan struct{}, parallel)
		var wg sync.WaitGroup
		for i, m := range messages {
			if _, ok := errors.AsType[*input.Unavailable](failed[i]); round > 0 && !ok {
				continue
			}
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				job, err := parse(m.Body)
				if err == nil {
					err = w.pass(ctx, job)
				}
				failed[i] = err
			})
		}
		wg.Wait()
		if w.Guard.Limiter.CircuitOpen() {
			break
		}
	}
	return failed
}

// pass asks the guard about a job, with the job's place, and puts the job on the queue
// where it belongs now. If the message arrives twice, both deliveries get the same new
// place, while the table remembers the request.
//
// Only after pass does SQS delete the received message, so for a moment the job is there
// twice. So a job may arrive twice, but is never lost.
func (w *Worker) pass(ctx context.Context, job guard.Job) error {
	r := guard.Request{
		UserID: job.UserID, Activity: job.Activity, ReadyAt: job.ReadyAt, RequestID: job.RequestID,
		Tier: job.Tier, Limit: job.Limit,
	}
	a, err := w.Guard.DecideQueued(ctx, r)
	if e, ok := errors.AsType[*input.ValidationError](err); ok && e.Field == "limit" { // a deploy has taken its max away
		r.Limit = nil
		a, err = w.Guard.DecideQueued(ctx, r)
	}
	if err != nil {
		return err
	}
	if a.Allowed {
		return w.Ready.Send(ctx, job, 0)
	}
	d := a.Decision
	if d.Wait == 0 { // no wait helps
		return &input.ValidationError{Field: "limit", Problem: "has a number without room for the job"}
	}
	if d.Waiting != 0 { // a new place
		job.ReadyAt, job.Enqueued = d.ReadyAt, d.Waiting
	}
	return w.Delayed.Send(ctx, job, d.Wait)
}

// record logs a message that failed: its id and the cause, but nothing of what
// it contains. On Lambda, a line's own text has the key message.
func (w *Worker) record(ctx context.Context, messageID string, err error) {
	if w.Log == nil {
		return
	}
	if e, ok := errors.AsType[*input.ValidationError](err); ok {
		w.Log.LogAttrs(ctx, slog.LevelError, "invalid job", slog.String("messageId", messageID), slog.String("field", e.Field))
		return
	}
	if e, ok := errors.AsType[*input.Unavailable](err); ok && e.Cause != nil {
		err = fmt.Errorf("%w: %w", e, e.Cause)
	}
	w.Log.LogAttrs(ctx, slog.LevelWarn, "job not passed on", slog.String("messageId", messageID), slog.Any("error", err))
}

// noncharacters escapes two characters that JSON may contain and SQS refuses. The
// encoder escapes all others that SQS refuses.
var noncharacters = strings.NewReplacer("\ufffe", `\ufffe`, "\uffff", `\uffff`)

// Body returns a job as the text of a message: the JSON form of [guard.Job].
// The text is the same on both queues.
func Body(job guard.Job) (string, error) {
	body, err := strictjson.Marshal(job)
	if err != nil {
		return "", fmt.Errorf("make a message of a job: %w", err)
	}
	return noncharacters.Replace(string(body)), nil
}

// parse reads a message as strictly as guards read their events. Its errors
// have the type *input.ValidationError and never show a part of the message.
func parse(body string) (job guard.Job, err error) {
	if err := strictjson.Unmarshal([]byte(body), &job, strictjson.KnownMembers); err != nil {
		return job, &input.ValidationError{Field: "body", Problem: "is not a job"}
	}
	switch {
	case job.ReadyAt < 1:
		err = &input.ValidationError{Field: "readyAt", Problem: "is not a place"}
	case job.Enqueued < 0: // 0: an early job, which keeps its place
		err = &input.ValidationError{Field: "enqueued", Problem: "is not a place"}
	case input.CheckRequestID(job.RequestID) != nil:
		err = &input.ValidationError{Field: "requestId", Problem: "is not the id of a request"}
	case job.Job == nil:
		err = &input.ValidationError{Field: "job", Problem: "is missing"}
	}
	return job, err
}
