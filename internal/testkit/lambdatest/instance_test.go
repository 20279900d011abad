package lambdatest_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

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

func TestExitAtStartupIsReported(t *testing.T) {
	t.Parallel()
	i := lambdatest.Start(t, probe(t), "START=refuse")
	exit := i.Exit(t)
	if exit.Code != 1 || !strings.Contains(exit.Logs, `START is "refuse"`) {
		t.Errorf("got %+v", exit)
	}
	if _, err := i.Do(t.Context(), lambdatest.Invocation{}); err == nil || !strings.Contains(err.Error(), "before it asked for work") {
		t.Errorf("got %v, want an error because the function never asked for work", err)
	}
}

func TestReadyReturnsTheColdStart(t *testing.T) {
	t.Parallel()
	i := lambdatest.Start(t, probe(t), "START=wait 300ms")
	if got := i.Ready(t); got < 300*time.Millisecond || got > 10*time.Second {
		t.Errorf("ready after %v, want a little over 300ms", got)
	}
	if first := i.Ready(t); i.Invoke(t, `{}`).ErrorType != "" || i.Ready(t) != first {
		t.Error("Ready changed with an invocation")
	}
}

func TestLogsOfAnInvocationArriveBeforeItsAnswer(t *testing.T) {
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

func TestStopEndsAnInstanceAsLambdaDoes(t *testing.T) {
	t.Parallel()
	t.Run("kills the process", func(t *testing.T) {
		i := lambdatest.Start(t, probe(t))
		i.Ready(t)
		i.Stop()
		i.Stop()
		if exit := i.Exit(t); exit.Code != -1 {
			t.Errorf("exit code %d, want -1 because it was killed", exit.Code)
		}
	})
	t.Run("sends SIGTERM first if the function asked for it", func(t *testing.T) {
		i := lambdatest.Start(t, probe(t), "START=sigterm")
		i.Invoke(t, `{}`)
		i.Stop()
		if exit := i.Exit(t); exit.Code != 0 || !strings.Contains(exit.Logs, "good night") {
			t.Errorf("got %+v, want the function's SIGTERM handler to run", exit)
		}
	})
	t.Run("fails a running invocation", func(t *testing.T) {
		i := lambdatest.Start(t, probe(t))
		i.Ready(t)
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := i.Do(t.Context(), lambdatest.Invocation{Payload: []byte(`{"do":"sleep","ms":60000}`)}); err == nil {
				t.Error("a stopped instance returned an answer")
			}
		})
		for !strings.Contains(i.Logs(), "sleep") {
			time.Sleep(5 * time.Millisecond)
		}
		i.Stop()
		wg.Wait()
	})
}

func TestMemoryIsThatOfTheFunction(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux shows the memory of another process")
	}
	t.Parallel()
	i := lambdatest.Start(t, probe(t))
	i.Ready(t)
	if now, err := i.Memory(); err != nil || now < 1<<20 || now > 1<<30 {
		t.Errorf("%d bytes, %v, want those of a small program", now, err)
	}
	i.Stop()
	if _, err := i.Memory(); err == nil {
		t.Error("a function that has ended has memory")
	}
}
