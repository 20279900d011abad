package clients_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

func TestEveryClientInvokesEveryFunction(t *testing.T) {
	testkit.Clients.Need(t)
	calls := []call{{"posts-guard", json.RawMessage(`{"misspelt":1}`)}, {"pots-guard", json.RawMessage(`{}`)}, {"cleanup", nil}}
	want := []string{`Unhandled{"errorMessage":"event has the unknown field`, "ResourceNotFoundException", `{"scanned":`} // as outcome.String begins
	for _, g := range cricket.All {
		calls, want = append(calls, call{g.Name, nil}), append(want, `{"allowed":true,"reason":"ok",`)
	}
	for i, c := range calls {
		if c.Event == nil {
			calls[i].Event = json.RawMessage(text(t, "functions", c.Function, "event.json"))
		}
	}
	for name, invoke := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i, o := range invoke(t, serve(t), calls) {
				if !strings.HasPrefix(o.String(), want[i]) {
					t.Errorf("%s of %s: %v, want %s", calls[i].Event, calls[i].Function, o, want[i])
				}
			}
		})
	}
}

// These tests check what docs/calling.md says about AWS's own SDKs.

const threads = `
import json
import threading

import boto3
from botocore.config import Config

ordinary = boto3.client("lambda").meta.config
assert (ordinary.connect_timeout, ordinary.read_timeout) == (60, 60)

guards = boto3.client("lambda", config=Config(connect_timeout=100, read_timeout=100))
event = json.dumps({"userId": "u1", "activity": "like"})
all = [threading.Thread(target=guards.invoke, kwargs={"FunctionName": "posts-guard", "Payload": event}) for _ in range(20)]
for thread in all:
    thread.start()
for thread in all:
    thread.join()
`

// Twenty threads ask at the same time, although boto3 keeps only ten connections.
func TestThreadsShareOneBoto3Client(t *testing.T) {
	testkit.Clients.Need(t)
	together := make(chan bool)
	waits := fault(func(w http.ResponseWriter, r *http.Request, n int64, _ http.Handler) {
		if n == 20 {
			close(together)
		}
		select {
		case <-together:
		case <-r.Context().Done():
		case <-time.After(patience / 4):
			http.Error(w, "the others don't come", http.StatusTeapot)
		}
	})
	if ended := finish(t, install(t, "threads.py", threads).command(t, waits.between(t, nowhere))); ended.status != 0 {
		t.Errorf("status %d: %s", ended.status, ended.stderr)
	}
}

const patientNode = `
import { InvokeCommand, LambdaClient } from "@aws-sdk/client-lambda";

const guards = new LambdaClient({ maxAttempts: 1, requestHandler: { requestTimeout: 200 } });
const response = await guards.send(new InvokeCommand({ FunctionName: "posts-guard", Payload: "{}" }));
console.log(response.Payload.transformToString());
`

func TestTheSDKForJavaScriptOnlyWarnsAtItsTimeout(t *testing.T) {
	testkit.Clients.Need(t)
	late := fault(func(w http.ResponseWriter, r *http.Request, n int64, _ http.Handler) {
		time.Sleep(time.Second) // five times the SDK's timeout
		answering(`{"allowed":true}`)(w, r, n, nil)
	})
	if ended := finish(t, install(t, "patient.mjs", patientNode).command(t, late.between(t, nowhere))); ended.status != 0 || ended.stdout != "{\"allowed\":true}\n" {
		t.Errorf("status %d, %q, %s", ended.status, ended.stdout, ended.stderr)
	}
}

func TestTheSDKForGoHasNoTimeout(t *testing.T) {
	testkit.Clients.Need(t)
	client, ok := lambda.New(lambda.Options{Region: "us-east-1"}).Options().HTTPClient.(*awshttp.BuildableClient)
	if !ok || client.GetTimeout() != 0 {
		t.Error("the default client is another one, or it has a timeout")
	}
}

// A request that an SDK sends again is another action if it has no id.
func TestWithoutAnIDALostAnswerCountsTwice(t *testing.T) {
	testkit.Clients.Need(t)
	loses := fault(func(w http.ResponseWriter, r *http.Request, n int64, serve http.Handler) {
		if n > 1 {
			serve.ServeHTTP(w, r)
			return
		}
		serve.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	})
	testkit.Retry(t, func(t testing.TB) { // a minute can end before the status is asked
		endpoint := serve(t)
		for id, want := range map[string]int64{"": 2, `,"requestId":"r1"`: 1} {
			user := fmt.Sprint("user", want)
			askPosts(t, loses.between(t, endpoint), user, id)
			if counted := askPosts(t, endpoint, user, `,"op":"status"`); counted != want {
				t.Errorf("with the field %q: %d counted, want %d", id, counted, want)
			}
		}
	})
}
