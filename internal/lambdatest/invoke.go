package lambdatest

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// Invocation is one event for a function.
type Invocation struct {
	Payload   []byte        // JSON; nil: {}
	RequestID string        // empty: a new one, as Lambda makes them
	Timeout   time.Duration // from the moment the function has it to the deadline it is told; 0: 30 s
}

// Result is what a function made of an invocation. One with an ErrorType is a
// function error.
type Result struct {
	Payload      []byte // the answer; of a function error its JSON as Lambda passes it on
	ErrorType    string
	ErrorMessage string
	RequestID    string
	Duration     time.Duration // from the moment the function had the event to its answer
}

// String is the answer as JSON, also that of a function error, and how long it
// took: what a failed test wants to print.
func (r Result) String() string { return fmt.Sprintf("%s in %v", r.Payload, r.Duration) }

// Invoke hands payload, which is JSON, to the function and returns what it made
// of it. The test fails at once where that is nothing; for anything but the
// defaults, and on a goroutine that is not the test's own, use Do.
func (i *Instance) Invoke(t testing.TB, payload string) Result {
	t.Helper()
	result, err := i.Do(t.Context(), Invocation{Payload: []byte(payload)})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// Do hands inv to the function and returns what it made of it. An error means
// that there is no answer: the process ended, or it was still at work a second
// after the deadline and is stopped, as Lambda would have done, or ctx ended
// first. In that last case the function works on, its answer is dropped and the
// next invocation waits for it.
func (i *Instance) Do(ctx context.Context, inv Invocation) (Result, error) {
	if inv.Payload == nil {
		inv.Payload = []byte("{}")
	}
	if inv.RequestID == "" {
		inv.RequestID = newUUID()
	}
	if inv.Timeout == 0 {
		inv.Timeout = 30 * time.Second
	}
	if err := i.waitReady(ctx); err != nil {
		return Result{}, err
	}
	job := &work{Invocation: inv, over: make(chan struct{})}
	select {
	case i.api.queue <- job:
	case <-i.exited:
		return Result{}, i.errExited("before it took the invocation")
	case <-ctx.Done():
		return Result{}, fmt.Errorf("wait for %s to take an invocation: %w", i.name, ctx.Err())
	}
	err := i.await(ctx, job)
	if result := i.api.resultOf(job); result != nil {
		return *result, nil
	}
	return Result{}, err
}

// await returns nil when job is over, and otherwise why it was not waited for.
// It may be answered all the same.
func (i *Instance) await(ctx context.Context, job *work) error {
	limit := time.NewTimer(job.Timeout + timeoutGrace)
	defer limit.Stop()
	select {
	case <-job.over:
		return nil
	case <-i.exited:
		return i.errExited("before it answered")
	case <-ctx.Done():
		return fmt.Errorf("wait for the answer of %s: %w", i.name, ctx.Err())
	case <-limit.C:
		i.Stop()
		return fmt.Errorf("%s was still at work %v after its deadline and is stopped; it wrote:\n%s", i.name, timeoutGrace, i.Logs())
	}
}
