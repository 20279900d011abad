package agent_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cric-talk/guards"
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
	address := httptest.NewServer(nil) // a free port
	address.Close()
	beside := lambdatest.StartExtension(t, lambdatest.Build(t, "./cmd/guards-agent"), nil, "GUARDS_TABLE_NAME="+table, "AWS_ENDPOINT_URL_DYNAMODB="+endpoint,
		"GUARDS_DECISION_TIMEOUT=5s", "GUARDS_AGENT_ADDR="+address.Listener.Addr().String())
	beside.Wait(t)
	cfg := dynamotest.Config(endpoint)
	l, err := limiter.New(t.Context(), limits.All, limiter.Options{Table: table, Config: &cfg, DecisionTimeout: 5 * time.Second, Output: io.Discard})
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
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address.URL+"/pins-guard", strings.NewReader(event))
			if err != nil {
				return false, err
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Guards-Token", "local")
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				return false, err
			}
			body, err := io.ReadAll(response.Body)
			if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusTooManyRequests {
				err = fmt.Errorf("%d %s", response.StatusCode, body)
			}
			return response.StatusCode == http.StatusOK, errors.Join(err, response.Body.Close())
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
