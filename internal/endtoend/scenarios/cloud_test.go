package scenarios_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

// A cloud is Lambda with some functions, and their table.
type cloud struct {
	url       string
	table     string
	functions map[string]*lambdatest.Instance // by name; nil: a function that is no guard
	agents    map[way]map[string]string       // the addresses of agents, by prefix; see besideApp
	env       map[string]string               // changes to the environment of an app that asks this cloud

	mu       sync.Mutex
	faults   []fault
	requests []request
	hanging  sync.WaitGroup

	sourceFails bool // the source of credentials; see source
}

// A request is one that arrived, with the fields of its event.
type request struct {
	UserID, Activity, Op, RequestID string
	Partial                         bool
}

// deploy starts posts-guard in several forms, by prefix:
//
//	(none)    counts in the table
//	deny-     its table is away, and it has ON_OUTAGE=deny
//	alone-    its table is away, and it decides from memory
//	strict-   a refusal is an error, by ON_LIMIT=error
//	broken-   exits when it starts
//	hello-    is no guard
//
// It also starts forum-guard, whose activities count in rooms.
func deploy(t *testing.T) *cloud {
	t.Helper()
	c := &cloud{table: dynamotest.Table(t), functions: map[string]*lambdatest.Instance{"hello-posts-guard": nil}}
	here, gone := "AWS_ENDPOINT_URL_DYNAMODB="+dynamotest.Endpoint(t), tableAway(t)
	binary := lambdatest.Build(t, "./functions/posts-guard")
	for prefix, env := range map[string][]string{
		"":        {here, "DECISION_TIMEOUT=5s"}, // so that a busy machine does not look like an outage
		"deny-":   {gone, "DECISION_TIMEOUT=250ms", "ON_OUTAGE=deny"},
		"alone-":  {gone, "DECISION_TIMEOUT=250ms"},
		"strict-": {here, "DECISION_TIMEOUT=5s", "ON_LIMIT=error"},
		"broken-": {here, "MODE=nonsense"},
	} {
		c.functions[prefix+"posts-guard"] = lambdatest.Start(t, binary, append(env, "TABLE_NAME="+c.table)...)
	}
	c.functions["forum-guard"] = lambdatest.Start(t, lambdatest.Build(t, forum), here, "DECISION_TIMEOUT=5s", "TABLE_NAME="+c.table, "ROOM=required")
	server := httptest.NewServer(c.handler())
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

func (c *cloud) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /2015-03-31/functions/{name}/invocations", c.withFaults(checkSignature, c.invoke))
	mux.HandleFunc("POST /{name}", c.withFaults(checkSignature, c.form))
	mux.HandleFunc("GET /credentials/{name}", c.source)
	return mux
}

// withFaults lets the next fault have a request, if check returns no problem with it. serve
// answers it otherwise.
func (c *cloud) withFaults(check func(*http.Request, []byte) string, serve func(http.ResponseWriter, *http.Request, []byte)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client gave up
		}
		if problem := check(r, body); problem != "" {
			refuse(w, http.StatusForbidden, "InvalidSignatureException", problem)
			return
		}
		var q request
		_ = json.Unmarshal(body, &q) // the guard reports what is wrong with the event
		c.mu.Lock()
		c.requests = append(c.requests, q)
		var f fault
		if len(c.faults) > 0 {
			f, c.faults = c.faults[0], c.faults[1:]
		}
		c.mu.Unlock()
		if f == nil {
			serve(w, r, body)
			return
		}
		c.hanging.Add(1)
		defer c.hanging.Done()
		f(w, r, func() { serve(httptest.NewRecorder(), r, body) })
	}
}

// expect prepares for the next step and forgets the last one's requests.
func (c *cloud) expect(s step) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults, c.sourceFails, c.requests = s.faults, s.sourceFails, nil
}

// seen returns the requests since expect was called. Each must have ended by
// now, or soon: a client must not leave a request running that it gave up.
func (c *cloud) seen(t *testing.T) []request {
	t.Helper()
	ended := make(chan struct{})
	go func() { c.hanging.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Error("the client left a request running")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests
}

// run invokes a function. It returns false if the function exits instead of
// answering.
func (c *cloud) run(ctx context.Context, name string, payload []byte) (lambdatest.Result, bool) {
	instance := c.functions[name]
	if instance == nil {
		return lambdatest.Result{Payload: []byte(`{"message":"hello"}`)}, true
	}
	result, err := instance.Do(ctx, lambdatest.Invocation{Payload: payload})
	return result, err == nil
}

// invoke serves Lambda's Invoke API.
func (c *cloud) invoke(w http.ResponseWriter, r *http.Request, body []byte) {
	name := r.PathValue("name")
	if _, ok := c.functions[name]; !ok {
		refuse(w, http.StatusNotFound, "ResourceNotFoundException", "Function not found: "+name)
		return
	}
	result, ok := c.run(context.WithoutCancel(r.Context()), name, body)
	if !ok {
		result.ErrorType = "Runtime.ExitError"
		result.Payload = []byte(`{"errorType":"Runtime.ExitError","errorMessage":"RequestId: 1 Error: Runtime exited with error: exit status 1"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amz-Executed-Version", "$LATEST")
	if result.ErrorType != "" {
		w.Header().Set("X-Amz-Function-Error", "Unhandled")
	}
	_, _ = w.Write(result.Payload)
}

// form serves a Function URL.
func (c *cloud) form(w http.ResponseWriter, r *http.Request, body []byte) {
	name := r.PathValue("name")
	if _, ok := c.functions[name]; !ok {
		refuse(w, http.StatusNotFound, "ResourceNotFoundException", "")
		return
	}
	var e events.LambdaFunctionURLRequest
	e.Version, e.RawPath, e.Body = "2.0", "/", string(body)
	e.RequestContext.HTTP.Method = r.Method
	payload, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	result, ok := c.run(context.WithoutCancel(r.Context()), name, payload)
	if !ok || result.ErrorType != "" {
		http.Error(w, "Internal Server Error", http.StatusBadGateway) // what a Function URL sends for a function error
		return
	}
	var reply events.LambdaFunctionURLResponse
	if json.Unmarshal(result.Payload, &reply) != nil || reply.StatusCode == 0 { // any JSON is the body of a 200
		reply = events.LambdaFunctionURLResponse{StatusCode: http.StatusOK, Body: string(result.Payload)}
	}
	for name, value := range reply.Headers {
		w.Header().Set(name, value)
	}
	w.WriteHeader(reply.StatusCode)
	_, _ = io.WriteString(w, reply.Body)
}

// ask sends an event to posts-guard directly. further holds its other fields.
func (c *cloud) ask(t *testing.T, user, further string) {
	t.Helper()
	event := fmt.Sprintf(`{"userId":%q,"activity":"create_post",%s}`, user, further)
	if r := c.functions["posts-guard"].Invoke(t, event); r.ErrorType != "" || !bytes.HasPrefix(r.Payload, []byte(`{"allowed":true`)) {
		t.Fatalf("%s: %s", event, r.Payload)
	}
}

// counted returns how many actions the table counts for a user.
func (c *cloud) counted(t testing.TB, user string) (sum int64) {
	t.Helper()
	condition := "userId = :user"
	out := testkit.Must(dynamotest.Client(t, dynamotest.Endpoint(t)).Query(t.Context(), &dynamodb.QueryInput{
		TableName: &c.table, KeyConditionExpression: &condition,
		ExpressionAttributeValues: map[string]types.AttributeValue{":user": &types.AttributeValueMemberS{Value: user}},
	}))(t)
	for _, item := range out.Items {
		n, _ := item["activityCount"].(*types.AttributeValueMemberN)
		if n == nil || strings.Contains(n.Value, ".") {
			t.Fatalf("an item without a count: %v", item)
		}
		sum += testkit.Must(strconv.ParseInt(n.Value, 10, 64))(t)
	}
	return sum
}
