package lambdatest_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/lambdatest"
)

func TestEnvironmentIsLambdasOwn(t *testing.T) {
	t.Setenv("LEAKED", "from the test")
	t.Setenv("AWS_PROFILE", "from the test")
	s := decode(t, lambdatest.Start(t, probe(t), "TABLE_NAME=other", "AWS_REGION=eu-west-1").Invoke(t, `{}`))
	names := map[string]int{}
	for _, entry := range s.Env {
		name, _, _ := strings.Cut(entry, "=")
		names[name]++
	}
	if names["LEAKED"]+names["AWS_PROFILE"] > 0 {
		t.Errorf("the test's environment shows: %q", s.Env)
	}
	for _, want := range []string{"TABLE_NAME=other", "AWS_REGION=eu-west-1", "AWS_LAMBDA_FUNCTION_NAME=probe", "HOME=" + s.Dir} {
		if name, _, _ := strings.Cut(want, "="); !slices.Contains(s.Env, want) || names[name] != 1 {
			t.Errorf("want %s once, have %q", want, s.Env)
		}
	}
	if s.Args != 1 {
		t.Errorf("%d arguments, want the program's name only", s.Args)
	}
}

func TestExitAtStart(t *testing.T) {
	t.Parallel()
	i := lambdatest.Start(t, probe(t), "START=refuse")
	exit := i.Exit(t)
	if exit.Code != 1 || !strings.Contains(exit.Logs, `START is "refuse"`) || exit.InitError != "" {
		t.Errorf("got %+v", exit)
	}
	if _, err := i.Do(t.Context(), lambdatest.Invocation{}); err == nil || !strings.Contains(err.Error(), "before it asked for work") {
		t.Errorf("got %v, want an error: it never asked for work", err)
	}
}

func TestErrorOfTheStartIsRecorded(t *testing.T) {
	t.Parallel()
	exit := lambdatest.Start(t, probe(t), "START=report").Exit(t)
	if exit.InitError != `{"errorType":"probe"}` || exit.Code != 3 {
		t.Errorf("got %+v", exit)
	}
}

func TestReadyIsTheColdStart(t *testing.T) {
	t.Parallel()
	i := lambdatest.Start(t, probe(t), "START=wait 300ms")
	if got := i.Ready(t); got < 300*time.Millisecond || got > 10*time.Second {
		t.Errorf("ready after %v, want a little over 300ms", got)
	}
	if first := i.Ready(t); i.Invoke(t, `{}`).ErrorType != "" || i.Ready(t) != first {
		t.Error("Ready changed with an invocation")
	}
}

func TestLogsOfAnInvocationAreThereWithItsAnswer(t *testing.T) {
	t.Parallel()
	i := lambdatest.Start(t, probe(t))
	var want strings.Builder
	for call := range 200 {
		do := fmt.Sprintf("call %d", call)
		i.Invoke(t, `{"do":"`+do+`"}`)
		fmt.Fprintf(&want, "stdout %s\nstderr %s\n", do, do)
		if got := i.Logs(); got != want.String() {
			t.Fatalf("after call %d: %q", call, got[max(0, len(got)-80):])
		}
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	t.Run("kills", func(t *testing.T) {
		i := lambdatest.Start(t, probe(t))
		i.Ready(t)
		i.Stop()
		i.Stop()
		if exit := i.Exit(t); exit.Code != -1 {
			t.Errorf("exit code %d, want it killed", exit.Code)
		}
	})
	t.Run("gives notice to a function that asked for it", func(t *testing.T) {
		i := lambdatest.Start(t, probe(t), "START=sigterm")
		i.Invoke(t, `{}`)
		i.Stop()
		if exit := i.Exit(t); exit.Code != 0 || !strings.Contains(exit.Logs, "good night") {
			t.Errorf("got %+v, want the handler to have run", exit)
		}
	})
	t.Run("fails the invocation at work", func(t *testing.T) {
		i := lambdatest.Start(t, probe(t))
		i.Ready(t)
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := i.Do(t.Context(), lambdatest.Invocation{Payload: []byte(`{"do":"sleep","ms":60000}`)}); err == nil {
				t.Error("an answer from a stopped instance")
			}
		})
		for !strings.Contains(i.Logs(), "sleep") {
			time.Sleep(5 * time.Millisecond)
		}
		i.Stop()
		wg.Wait()
	})
}
