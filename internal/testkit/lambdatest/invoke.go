package lambdatest

import (
	"cmp"
	"context"
	"fmt"
	"testing"
	"time"
)

// Invocation is one event for a function.
type Invocation struct {
	Payload []byte        // JSON; nil means {}
	Timeout time.Duration // from the moment the function gets it to its deadline; 0 means 30 s
}

// Result is the outcome of an invocation. If ErrorType is set, it is a function
// error.
type Result struct {
	Payload      []byte // the answer, or the JSON of a function error as Lambda returns it
	ErrorType    string
	ErrorMessage string
	Duration     time.Duration // from the moment the function got the event to its answer
}

// String returns the payload and the duration, for the message of a failed
// test.
func (r Result) String() string { return fmt.Sprintf("%s in %v", r.Payload, r.Duration) }

// Invoke invokes the function with payload, which must be JSON. If there is no
// result, the test fails at once. Use Do if you need other settings than the
// defaults, or on a goroutine other than the test's own.
func (i *Instance) Invoke(t testing.TB, payload string) Result {
	t.Helper()
	result, err := i.Do(t.Context(), Invocation{Payload: []byte(payload)})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// Do invokes the function with inv. It returns an error if there is no answer:
//
//   - The process ended.
//   - The function was still running a second after its deadline. Do stops it
//     then, as Lambda does.
//   - ctx was done first. The function keeps running, its answer is dropped,
//     and the next invocation waits for it.
func (i *Instance) Do(ctx context.Context, inv Invocation) (Result, error) {
	if inv.Payload == nil {
		inv.Payload = []byte("{}")
	}
	inv.Timeout = cmp.Or(inv.Timeout, 30*time.Second)
	if err := i.waitReady(ctx); err != nil {
		return Result{}, err
	}
	job := &work{Invocation: inv, id: newUUID(), over: make(chan struct{})}
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

// await returns nil when job is over. Otherwise it returns the reason why it
// stopped waiting. Even then job may have an answer.
func (i *Instance) await(ctx context.Context, job *work) error {
	select {
	case <-job.over:
		return nil
	case <-i.exited:
		return i.errExited("before it answered")
	case <-ctx.Done():
		return fmt.Errorf("wait for the answer of %s: %w", i.name, ctx.Err())
	case <-time.After(job.Timeout + timeoutGrace):
		i.Stop()
		return fmt.Errorf("%s was still running %v after its deadline and was stopped; it wrote:\n%s", i.name, timeoutGrace, i.Logs())
	}
}
