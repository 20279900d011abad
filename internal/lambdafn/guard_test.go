package lambdafn_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

func TestExactlyTheLimitFromTwoProcesses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	instances := []*lambdatest.Instance{r.start(t, "posts-guard"), r.start(t, "posts-guard")}
	testkit.InOneWindow(t, time.Minute, 20*time.Second)
	const callers = 50
	var mu sync.Mutex
	reasons := map[string]int{}
	var wg sync.WaitGroup
	for n := range callers {
		wg.Go(func() {
			got, err := instances[n%2].Do(t.Context(), lambdatest.Invocation{Payload: []byte(event("create_post"))})
			if err != nil {
				t.Error(err)
			}
			var a answer
			_ = json.Unmarshal(got.Payload, &a)
			mu.Lock()
			defer mu.Unlock()
			reasons[a.Reason]++
		})
	}
	wg.Wait()
	if reasons["ok"] != 10 || reasons["limited"] != 40 {
		t.Errorf("%v of 50, want 10 ok and 40 limited", reasons)
	}
	requests := r.proxy.Counts()
	if requests["UpdateItem"] > callers || requests["GetItem"] > 2*len(instances) || len(requests) != 2 {
		t.Errorf("requests %v, want at most one UpdateItem for each decision, and one GetItem of the live limits and of the blocks by each instance", requests)
	}
}

func TestEveryGuardLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, g := range cricket.All {
		t.Run(g.Name, func(t *testing.T) {
			i := r.start(t, g.Name)
			ask(t, i, fmt.Sprintf(`{"userId": "other", "activity": %q, "op": "status"}`, g.Activities[0].Name)) // opens the connection
			for _, activity := range g.Activities {
				if activity.Unlimited {
					continue
				}
				limit := activity.Limit.Read(0, 0, nil).Limit
				testkit.InOneWindow(t, time.Minute, 15*time.Second)
				all, times := fmt.Sprintf(`{"userId": %q, "activity": %q, "count": %d}`, canary, activity.Name, limit), 1
				if activity.Limit.Queues() { // one place per call
					testkit.InOneWindow(t, 10*time.Second, 8*time.Second)
					all, times = event(activity.Name), int(limit)
				}
				var a answer
				for range times {
					if a, _ = ask(t, i, all); !a.Allowed {
						t.Errorf("%s: %+v", activity.Name, a)
					}
				}
				if a.ActivityCount != limit {
					t.Errorf("%s %d times: %+v", activity.Name, limit, a)
				}
				if a, _ := ask(t, i, event(activity.Name)); a.Allowed || a.Message != g.Message {
					t.Errorf("%s once more: %+v", activity.Name, a)
				}
			}
		})
	}
}

func TestErrorTypes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	i := r.start(t, "posts-guard", "ON_LIMIT=error", "ON_OUTAGE=deny")
	testkit.InOneWindow(t, time.Minute, 15*time.Second)
	if a, _ := ask(t, i, `{"userId": "`+canary+`", "activity": "create_post", "count": 10}`); a.Reason != "ok" {
		t.Errorf("%+v", a)
	}
	want := func(payload, errorType, message string) {
		t.Helper()
		if got := i.Invoke(t, payload); got.ErrorType != errorType || got.ErrorMessage != message {
			t.Errorf("%s is answered %+v, want %s: %s", payload, got, errorType, message)
		}
	}
	want(event("create_post"), "RateLimitExceeded", "Rate limit exceeded: Too many requests in a short period")
	var names []string
	for _, a := range cricket.Posts.Activities {
		names = append(names, a.Name)
	}
	// The caller sees a user id in the wrong field, but the log does not have
	// it.
	want(`{"userId": "create_post", "activity": "`+canary+`"}`, "ValidationError",
		`activity is "`+canary+`", want one of posts-guard's: `+strings.Join(names, ", "))
	want(`{"`+canary+`": "create_post"}`, "ValidationError",
		`event has the unknown field "`+canary+`", want only userId, activity, op, count, partial, limit, tier, roles, requestId, at, clear, readyAt, subjects, job`)
	want("{\"userId\": \"u\xff\", \"activity\": \"create_post\"}", "ValidationError", "userId is not UTF-8") // raw bytes
	r.proxy.Fail(math.MaxInt, dynamotest.Throttle)
	want(event("update_post"), "Unavailable", "the table is throttled")
	if n := strings.Count(i.Logs(), "invalid request"); n != 3 {
		t.Errorf("%d lines of log on 3 invalid requests:\n%s", n, i.Logs())
	}
}

func TestEnvironmentThatCannotBeRead(t *testing.T) {
	binary := lambdatest.Build(t, "./functions/posts-guard")
	for setting, says := range map[string]string{
		"MODE=of":               `MODE is "of", want enforce or shadow or off`,
		"ON_OUTAGE=Allow":       `ON_OUTAGE is "Allow", want allow or deny`,
		"ON_LIMIT=exception":    `ON_LIMIT is "exception", want answer or error`,
		"DECISION_TIMEOUT=fast": `DECISION_TIMEOUT is "fast", want a duration such as 250ms, at most 5s`,
		"DECISION_TIMEOUT=6s":   `DECISION_TIMEOUT is "6s"`,
		"DECISION_TIMEOUT=0s":   `DECISION_TIMEOUT is "0s"`,
		"METRICS=none":          `METRICS is "none", want activity or guard or off`,
		"TABLE_NAME=rate limit": `TABLE_NAME is "rate limit"`,
	} {
		exit := lambdatest.Start(t, binary, setting).Exit(t)
		if exit.Code != 1 || !strings.Contains(exit.Logs, says) {
			t.Errorf("%s: %+v, want status 1 and %s", setting, exit, says)
		}
	}
	// Variables that cleanup does not read do not stop it.
	lambdatest.Start(t, lambdatest.Build(t, "./functions/cleanup"), "MODE=of", "ON_OUTAGE=Allow", "ON_LIMIT=exception", "DECISION_TIMEOUT=fast", "METRICS=none").Ready(t)
	exit := lambdatest.Start(t, lambdatest.Build(t, "./functions/cleanup"), "TABLE_NAME=a/b").Exit(t)
	if exit.Code != 1 || !strings.Contains(exit.Logs, `cleanup: TABLE_NAME is "a/b"`) {
		t.Errorf("cleanup with a name that no table has: %+v, want status 1", exit)
	}
}

// On AWS, DynamoDB is asked over TLS. A guard uses HTTP/1.1, even if the server
// offers HTTP/2. It sends a request only if it can verify the server's identity.
func TestADecisionOverTLS(t *testing.T) {
	t.Parallel()
	testkit.Retry(t, func(t testing.TB) { // a handshake must end before the attempt does
		r := newRig(t)
		plain := testkit.Must(url.Parse(r.proxy.URL()))(t)
		table := httputil.NewSingleHostReverseProxy(plain)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if q.Proto != "HTTP/1.1" {
				t.Errorf("a request with %s, want HTTP/1.1", q.Proto)
			}
			table.ServeHTTP(w, q)
		}))
		server.EnableHTTP2 = true
		server.Config.ErrorLog = log.New(io.Discard, "", 0) // of the caller who does not know the authority
		server.StartTLS()
		t.Cleanup(server.Close)
		authority := filepath.Join(t.TempDir(), "ca.pem")
		testkit.OK(t, os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))

		i := r.start(t, "posts-guard", "AWS_ENDPOINT_URL_DYNAMODB="+server.URL, "AWS_CA_BUNDLE="+authority)
		if a, _ := ask(t, i, event("create_post")); a.Reason != "ok" || a.ActivityCount != 1 {
			t.Errorf("%+v, want a counted action\n%s", a, i.Logs())
		}
		if counts := r.proxy.Counts(); counts["UpdateItem"] != 1 {
			t.Errorf("requests %v, want one UpdateItem", counts)
		}

		i = r.start(t, "posts-guard", "AWS_ENDPOINT_URL_DYNAMODB="+server.URL, "DECISION_TIMEOUT=2s")
		if a, _ := ask(t, i, event("create_post")); a.Reason != "unavailable" || !strings.Contains(i.Logs(), "certificate") {
			t.Errorf("an unknown certificate: %+v, want unavailable, and the cause in the log\n%s", a, i.Logs())
		}
		if counts := r.proxy.Counts(); counts["UpdateItem"] != 1 {
			t.Errorf("requests %v, want none to an unknown server", counts)
		}
	})
}

// operating.md has a query that groups the outages in the log by their cause, and
// lists the causes. A cause must not contain what differs each time, such as the
// id of a request.
func TestTheCausesOfOutagesCanBeCounted(t *testing.T) {
	t.Parallel()
	document := testkit.Must(os.ReadFile("../../docs/operating.md"))(t)
	query := regexp.MustCompile("`filter message = \"table unavailable\" \\| parse error /(.+)/ \\| stats count\\(\\) by cause`").FindSubmatch(document)
	if query == nil {
		t.Fatal("docs/operating.md has no query for the causes of outages")
	}
	cause := regexp.MustCompile(string(query[1]))
	for fault, want := range map[dynamotest.Fault]string{
		dynamotest.Throttle: "the table is throttled", dynamotest.AccessDenied: "access to the table is denied", dynamotest.HangBefore: "the table did not answer in time",
	} {
		if !strings.Contains(string(document), "| "+want+" | ") {
			t.Errorf("docs/operating.md does not list %q", want)
		}
		r := newRig(t)
		i := r.start(t, "posts-guard")
		r.proxy.Fail(math.MaxInt, fault)
		for user := range 3 {
			i.Invoke(t, fmt.Sprintf(`{"userId": "u%d", "activity": "create_post"}`, user))
		}
		i.Stop()
		lines := 0
		for line := range strings.Lines(i.Logs()) {
			var entry struct{ Msg, Message, Error string }
			if json.Unmarshal([]byte(line), &entry) != nil || entry.Msg+entry.Message != "table unavailable" {
				continue
			}
			lines++
			if got := cause.FindStringSubmatch(entry.Error); got == nil || got[1] != want {
				t.Errorf("%s: the cause is %q, want %s: %s", fault, got, want, line)
			}
		}
		if lines == 0 {
			t.Errorf("%s: no outage in the log:\n%s", fault, i.Logs())
		}
	}
}
