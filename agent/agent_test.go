package agent_test

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
	"github.com/cric-talk/guards/limiter"
	"github.com/cric-talk/guards/limits"
)

// A third of 24 callers asks the function, a third the agent, and a third a limiter in its own
// process. All ask about one user, and exactly the limit gets through. While they run, nobody
// loses a count, so an app can move from one way to another.
func TestThreeWaysCountTogether(t *testing.T) {
	endpoint, table := dynamotest.Endpoint(t), dynamotest.Table(t)
	function := lambdatest.Start(t, lambdatest.Build(t, "./functions/pins-guard"), "TABLE_NAME="+table, "AWS_ENDPOINT_URL_DYNAMODB="+endpoint, "DECISION_TIMEOUT=5s")
	socket := "unix:" + filepath.Join(t.TempDir(), "agent.sock")
	beside := lambdatest.StartExtension(t, lambdatest.Build(t, "./cmd/guards-agent"), nil, "GUARDS_TABLE_NAME="+table, "AWS_ENDPOINT_URL_DYNAMODB="+endpoint,
		"GUARDS_DECISION_TIMEOUT=5s", "GUARDS_AGENT_ADDR="+socket)
	beside.Wait(t)
	cfg := dynamotest.Config(endpoint)
	l, err := limiter.New(t.Context(), limits.All, limiter.Options{Table: table, Config: &cfg, DecisionTimeout: 5 * time.Second, Output: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	asks, err := client.New(t.Context(), client.Options{Agent: socket, DecisionTimeout: 5 * time.Second, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	var turn sync.Mutex // an instance of a function has one request at a time
	event := `{"userId": "u1", "activity": "pin"}`
	ways := []func() (bool, error){
		func() (bool, error) {
			turn.Lock()
			defer turn.Unlock()
			answer := function.Invoke(t, event)
			return bytes.Contains(answer.Payload, []byte(`"allowed":true`)), nil
		},
		func() (bool, error) {
			d, err := asks.Check(t.Context(), "pin", client.Request{UserID: "u1"})
			return d.Allowed, errors.Join(err, d.Outage)
		},
		func() (bool, error) {
			d, err := l.Decide(t.Context(), guards.Request{UserID: "u1", Activity: "pin"})
			return d.Allowed, err
		},
	}
	var allowed atomic.Int64
	var racers sync.WaitGroup
	for i := range 24 {
		racers.Go(func() {
			for n := range 10 { // each moves on to another way in the middle
				ok, err := ways[(i+n/5)%len(ways)]()
				if err != nil {
					t.Error(err)
				}
				if ok {
					allowed.Add(1)
				}
			}
		})
	}
	racers.Wait()
	if n := allowed.Load(); n != 100 {
		t.Errorf("%d of 240 are allowed, want exactly 100", n)
	}
}
