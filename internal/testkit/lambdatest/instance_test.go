package lambdatest_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

// seen is what the probe function reports about its invocation.
type seen struct {
	Dir         string
	Env         []string
	Args, Calls int
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

func TestFunctionSeesOnlyLambdasEnvironment(t *testing.T) {
	t.Setenv("LEAKED", "from the test")
	t.Setenv("AWS_PROFILE", "from the test")
	s := decode(t, lambdatest.Start(t, probe(t), "TABLE_NAME=other", "AWS_REGION=eu-west-1").Invoke(t, `{}`))
	names := map[string]int{}
	for _, entry := range s.Env {
		name, _, _ := strings.Cut(entry, "=")
		names[name]++
	}
	if names["LEAKED"]+names["AWS_PROFILE"] > 0 {
		t.Errorf("the function sees the test's environment: %q", s.Env)
	}
	for _, want := range []string{"TABLE_NAME=other", "AWS_REGION=eu-west-1", "AWS_LAMBDA_FUNCTION_NAME=probe", "HOME=" + s.Dir} {
		if name, _, _ := strings.Cut(want, "="); !slices.Contains(s.Env, want) || names[name] != 1 {
			t.Errorf("the environment is %q, want %s in it once", s.Env, want)
		}
	}
	if s.Args != 1 {
		t.Errorf("%d arguments, want only the program's name", s.Args)
	}
}

// A function error leaves the process running. A panic, an exit and the deadline end it.
func TestHowAFunctionFails(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		payload string
		timeout time.Duration
		kind    string // of the function error
		err     string // part of the error if there is no answer
		exit    int
	}{
		"an error":     {payload: `{"do":"fail"}`, kind: "probeError"},
		"a panic":      {payload: `{"do":"panic"}`, kind: "errorString", exit: 1},
		"an exit":      {payload: `{"do":"exit"}`, err: "exit status 7", exit: 7},
		"the deadline": {payload: `{"do":"sleep"}`, timeout: 100 * time.Millisecond, err: "after its deadline", exit: -1},
	} {
		t.Run(name, func(t *testing.T) {
			i := lambdatest.Start(t, probe(t))
			got, err := i.Do(t.Context(), lambdatest.Invocation{Payload: []byte(tt.payload), Timeout: tt.timeout})
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) || got.ErrorType != tt.kind {
				t.Errorf("got %+v, %v, want the function error %q and the error %q", got, err, tt.kind, tt.err)
			}
			if tt.exit == 0 {
				if s := decode(t, i.Invoke(t, `{}`)); s.Calls != 2 {
					t.Errorf("%d calls, want 2: the same process must go on", s.Calls)
				}
			} else if exit := i.Exit(t); exit.Code != tt.exit {
				t.Errorf("exit code %d, want %d", exit.Code, tt.exit)
			}
		})
	}
}
