package clients_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/smithy-go"

	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// A call is one invocation of a function.
type call struct {
	Function string          `json:"function"`
	Event    json.RawMessage `json:"event"`
}

// An outcome is what a client returned for an invocation.
type outcome struct {
	Exception     string // the name of the client's exception; the other fields are empty then
	FunctionError string
	Payload       json.RawMessage
}

func (o outcome) String() string { return o.Exception + o.FunctionError + string(o.Payload) }

// A client makes calls, atOnce of them at the same time, and returns the outcome
// of each.
type client func(t testing.TB, endpoint string, atOnce int, calls []call) []outcome

var clients = map[string]client{
	"AWS CLI":            byScript("cli.py"),
	"boto3":              byScript("invoke.py"),
	"SDK for Go":         byGo,
	"SDK for JavaScript": byScript("invoke.mjs"),
}

// byScript returns a client that makes all calls in one process. The script reads
// and writes JSON.
func byScript(file string) client {
	return func(t testing.TB, endpoint string, atOnce int, calls []call) (outcomes []outcome) {
		t.Helper()
		source, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		in, err := json.Marshal(calls)
		if err != nil {
			t.Fatal(err)
		}
		cmd := install(t, file, string(source)).command(t, endpoint, strconv.Itoa(atOnce))
		cmd.Stdin = bytes.NewReader(in)
		ended := finish(t, cmd)
		if err := json.Unmarshal([]byte(ended.stdout), &outcomes); err != nil || len(outcomes) != len(calls) {
			t.Fatalf("%s exited with status %d: %v\n%s", file, ended.status, err, ended.stderr)
		}
		return outcomes
	}
}

// byGo makes the calls with the SDK for Go.
func byGo(t testing.TB, endpoint string, atOnce int, calls []call) []outcome {
	t.Helper()
	functions := lambda.NewFromConfig(dynamotest.Config(endpoint))
	return share(atOnce, calls, func(c call) outcome {
		out, err := functions.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: &c.Function, Payload: c.Event})
		if failed, ok := errors.AsType[smithy.APIError](err); ok {
			return outcome{Exception: failed.ErrorCode()}
		}
		if err != nil {
			t.Error(err)
			return outcome{}
		}
		return outcome{FunctionError: aws.ToString(out.FunctionError), Payload: out.Payload}
	})
}

// share distributes the calls over atOnce goroutines.
func share(atOnce int, calls []call, invoke func(call) outcome) []outcome {
	outcomes := make([]outcome, len(calls))
	next := make(chan int)
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for i := range next {
				outcomes[i] = invoke(calls[i])
			}
		})
	}
	for i := range calls {
		next <- i
	}
	close(next)
	wg.Wait()
	return outcomes
}
