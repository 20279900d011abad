package clients_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
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

// A client makes calls and returns the outcome of each.
type client func(t testing.TB, endpoint string, calls []call) []outcome

var clients = map[string]client{
	"AWS CLI":            byScript("cli.py"),
	"boto3":              byScript("invoke.py"),
	"SDK for Go":         byGo,
	"SDK for JavaScript": byScript("invoke.mjs"),
}

// byScript returns a client that makes all calls in one process. The script reads
// and writes JSON.
func byScript(file string) client {
	return func(t testing.TB, endpoint string, calls []call) (outcomes []outcome) {
		t.Helper()
		source, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		in, err := json.Marshal(calls)
		if err != nil {
			t.Fatal(err)
		}
		cmd := install(t, file, string(source)).command(t, endpoint, "2") // two calls at the same time
		cmd.Stdin = bytes.NewReader(in)
		ended := finish(t, cmd)
		if err := json.Unmarshal([]byte(ended.stdout), &outcomes); err != nil || len(outcomes) != len(calls) {
			t.Fatalf("%s exited with status %d: %v\n%s", file, ended.status, err, ended.stderr)
		}
		return outcomes
	}
}

// byGo makes the calls with the SDK for Go.
func byGo(t testing.TB, endpoint string, calls []call) (outcomes []outcome) {
	t.Helper()
	functions := lambda.NewFromConfig(dynamotest.Config(endpoint))
	for _, c := range calls {
		out, err := functions.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: &c.Function, Payload: c.Event})
		if failed, ok := errors.AsType[smithy.APIError](err); ok {
			outcomes = append(outcomes, outcome{Exception: failed.ErrorCode()})
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		outcomes = append(outcomes, outcome{FunctionError: aws.ToString(out.FunctionError), Payload: out.Payload})
	}
	return outcomes
}
