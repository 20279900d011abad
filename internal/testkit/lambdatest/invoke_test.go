package lambdatest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

// seen is what the probe function reports about its invocation.
type seen struct {
	Do, RequestID, ARN, Trace, Dir string
	LeftMs                         int64
	Env                            []string
	Args, Calls                    int
}

// probe builds the probe function.
func probe(t *testing.T) string {
	t.Helper()
	return lambdatest.Build(t, "./internal/testkit/lambdatest/testdata/probe")
}

func decode(t *testing.T, r lambdatest.Result) seen {
	t.Helper()
	var s seen
	if err := json.Unmarshal(r.Payload, &s); err != nil {
		t.Fatalf("answer %q: %v", r.Payload, err)
	}
	return s
}

func TestInvokePassesLambdasMetadata(t *testing.T) {
	t.Parallel()
	i := lambdatest.Start(t, probe(t))
	for call := range 3 {
		result := i.Invoke(t, `{"do":"look"}`)
		s := decode(t, result)
		if result.ErrorType != "" || s.Do != "look" || s.Calls != call+1 {
			t.Errorf("call %d: got %+v", call+1, s)
		}
		uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
		if s.RequestID != result.RequestID || !uuid.MatchString(s.RequestID) {
			t.Errorf("request id %q, in the result %q, want the same version 4 UUID", s.RequestID, result.RequestID)
		}
		trace := regexp.MustCompile(`^Root=1-[0-9a-f]{8}-[0-9a-f]{24};Parent=[0-9a-f]{16};Sampled=0$`)
		if !trace.MatchString(s.Trace) {
			t.Errorf("trace id %q", s.Trace)
		}
		if s.ARN != "arn:aws:lambda:us-east-1:000000000000:function:probe" {
			t.Errorf("function arn %q", s.ARN)
		}
		if s.LeftMs < 20_000 || s.LeftMs > 30_000 {
			t.Errorf("%d ms to the deadline, want about 30,000", s.LeftMs)
		}
	}
}

func TestDoUsesTheGivenIDAndTimeout(t *testing.T) {
	t.Parallel()
	i := lambdatest.Start(t, probe(t))
	result, err := i.Do(t.Context(), lambdatest.Invocation{RequestID: "again", Timeout: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if s := decode(t, result); s.RequestID != "again" || s.Do != "" || s.LeftMs < 290_000 || s.LeftMs > 300_000 {
		t.Errorf("got %+v", s)
	}
}

func TestFunctionErrorsAndPanicsAreReported(t *testing.T) {
	t.Parallel()
	i := lambdatest.Start(t, probe(t))
	got := i.Invoke(t, `{"do":"fail"}`)
	if got.ErrorType != "probeError" || got.ErrorMessage != "as asked" || !json.Valid(got.Payload) {
		t.Errorf("got %+v", got)
	}
	if text := got.String(); !strings.HasPrefix(text, `{"errorMessage":"as asked","errorType":"probeError"} in `) {
		t.Errorf("String returns %s", text)
	}
	if s := decode(t, i.Invoke(t, `{}`)); s.Calls != 2 {
		t.Errorf("%d calls, want 2: the same process must go on", s.Calls)
	}
	if got := i.Invoke(t, `{"do":"panic"}`); got.ErrorType != "errorString" || got.ErrorMessage != "as asked" {
		t.Errorf("got %+v", got)
	}
	if exit := i.Exit(t); exit.Code != 1 {
		t.Errorf("the exit code after a panic is %d, want 1", exit.Code)
	}
}

func TestExitDuringAnInvocationIsAnError(t *testing.T) {
	t.Parallel()
	i := lambdatest.Start(t, probe(t))
	for range 2 { // the second call finds that the process has ended
		result, err := i.Do(t.Context(), lambdatest.Invocation{Payload: []byte(`{"do":"exit"}`)})
		if err == nil || !strings.Contains(err.Error(), "exit status 7") || !strings.Contains(err.Error(), "stderr exit") {
			t.Fatalf("got %+v, %v, want an error with the status and the logs", result, err)
		}
	}
	if exit := i.Exit(t); exit.Code != 7 {
		t.Errorf("exit code %d, want 7", exit.Code)
	}
}

func TestContextEndsOnlyTheWait(t *testing.T) {
	t.Parallel()
	i := lambdatest.Start(t, probe(t))
	i.Ready(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for !strings.Contains(i.Logs(), "sleep") && t.Context().Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		cancel()
	}()
	if _, err := i.Do(ctx, lambdatest.Invocation{Payload: []byte(`{"do":"sleep","ms":5000}`)}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want the context's error", err)
	}
	if _, err := i.Do(ctx, lambdatest.Invocation{}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want the context's error, because the function is still running", err)
	}
	if s := decode(t, i.Invoke(t, `{"do":"next"}`)); s.Do != "next" || s.Calls != 2 {
		t.Errorf("got %+v, want the second call's own answer", s)
	}
}

func TestFunctionIsStoppedAfterItsDeadline(t *testing.T) {
	t.Parallel()
	i := lambdatest.Start(t, probe(t))
	_, err := i.Do(t.Context(), lambdatest.Invocation{Payload: []byte(`{"do":"sleep","ms":60000}`), Timeout: 100 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "after its deadline") {
		t.Fatalf("got %v", err)
	}
	if exit := i.Exit(t); exit.Code != -1 {
		t.Errorf("exit code %d, want -1 because it was killed", exit.Code)
	}
}

func TestDurationExcludesWaitingForAnEarlierInvocation(t *testing.T) {
	t.Parallel()
	i := lambdatest.Start(t, probe(t))
	i.Ready(t)
	began := time.Now()
	var sum atomic.Int64
	var wg sync.WaitGroup
	for range 3 { // later invocations wait for earlier ones
		wg.Go(func() {
			result, err := i.Do(t.Context(), lambdatest.Invocation{Payload: []byte(`{"do":"sleep","ms":300}`)})
			if err != nil || result.Duration < 300*time.Millisecond {
				t.Errorf("took %v, %v, want at least 300ms", result.Duration, err)
			}
			sum.Add(int64(result.Duration))
		})
	}
	wg.Wait()
	if all, took := time.Duration(sum.Load()), time.Since(began); all > took {
		t.Errorf("the durations of invocations in a row add up to %v in %v, so they include waiting", all, took)
	}
}

func TestManyCallersCanUseManyInstances(t *testing.T) {
	t.Parallel()
	const instances, callers, each = 3, 8, 20
	var wg sync.WaitGroup
	for range instances {
		i := lambdatest.Start(t, probe(t))
		var mu sync.Mutex
		calls := map[int]bool{}
		for caller := range callers {
			wg.Go(func() {
				for range each {
					want := fmt.Sprint("caller ", caller)
					result, err := i.Do(t.Context(), lambdatest.Invocation{Payload: []byte(`{"do":"` + want + `"}`)})
					if err != nil {
						t.Error(err)
						return
					}
					var s seen
					mu.Lock()
					if err := json.Unmarshal(result.Payload, &s); err != nil || s.Do != want || calls[s.Calls] || s.Calls > callers*each {
						t.Errorf("%s got the answer %+v", want, s)
					}
					calls[s.Calls] = true
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
}
