package command

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

func TestServeLetsExactlyTheLimitThrough(t *testing.T) {
	t.Setenv("DECISION_TIMEOUT", "5s") // the longest, for a slow machine
	t.Setenv("ON_OUTAGE", "deny")      // a decision from memory would start its own count
	t.Run("memory", func(t *testing.T) { sixtyOf(t, 200) })
	t.Run("dynamodb", func(t *testing.T) {
		endpoint := dynamotest.Endpoint(t)
		credentials(t)
		testkit.Retry(t, func(t testing.TB) { // a busy machine can take DynamoDB Local longer than 5 s
			t.Helper()
			sixtyOf(t, 200, "--store", "dynamodb", "--endpoint", endpoint, "--region", "us-east-1",
				"--table", dynamotest.Table(t), "--create-table") // the table exists already
		})
	})
}

// sixtyOf sends so many comments of one user at once. 60 of them must pass.
func sixtyOf(t testing.TB, calls int, args ...string) {
	t.Helper()
	began := time.Now() // in 2023, DynamoDB Local would delete the item: --create-table turns TTL on
	endpoint, _ := serveAt(t, func() time.Time { return began }, args...)
	const atOnce = 16
	next := make(chan string, calls)
	for i := range calls {
		next <- fmt.Sprintf(`{"userId": "u1", "activity": "add_comment", "requestId": "r%d"}`, i)
	}
	close(next)
	var allowed, unknown atomic.Int64
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for request := range next {
				switch body := post(t, invocations(endpoint, "comments-guard"), request).body; {
				case strings.HasPrefix(body, `{"allowed":true`):
					allowed.Add(1)
				case strings.Contains(body, `"errorType":"Unavailable"`):
					unknown.Add(1) // its clock stands, so the guard's circuit breaker stays open
				}
			}
		})
	}
	wg.Wait()
	switch {
	case unknown.Load() > 0:
		t.Errorf("%d calls got no decision: this machine is too busy to judge", unknown.Load())
	case allowed.Load() != 60:
		t.Errorf("%d of %d calls allowed, want 60", allowed.Load(), calls)
	}
}

// serve reads the variables that the deployed functions read.
func TestServeReadsTheFunctionsVariables(t *testing.T) {
	ask := func(endpoint, more string) response {
		return post(t, invocations(endpoint, "posts-guard"), `{"userId": "u1", "activity": "create_post"`+more+`}`)
	}
	for setting, want := range map[string]string{ // the answer to the eleventh request
		"MODE=enforce":      `{"allowed":false,"reason":"limited",`,
		"MODE=shadow":       `{"allowed":true,"reason":"shadow",`,
		"MODE=off":          `{"allowed":true,"reason":"unlimited",`,
		"ON_LIMIT=error":    `{"errorMessage":"Rate limit exceeded: Too many requests in a short period","errorType":"RateLimitExceeded"}`,
		"BYPASS_ROLES=boss": `{"allowed":false,"reason":"limited",`,
	} {
		t.Run(setting, func(t *testing.T) {
			name, value, _ := strings.Cut(setting, "=")
			t.Setenv(name, value)
			endpoint, log := serve(t)
			ask(endpoint, `, "count": 10`)
			if r := ask(endpoint, ""); !strings.HasPrefix(r.body, want) {
				t.Errorf("%s, want %s", r.body, want)
			}
			boss := `"reason":"bypassed"`
			if r := ask(endpoint, `, "roles": ["boss"]`); strings.Contains(r.body, boss) != (value == "boss") {
				t.Errorf("the role boss: %s", r.body)
			}
			if !strings.Contains(log.String(), ", counting in memory, "+setting+"; press Ctrl-C to stop\n") {
				t.Errorf("serve does not report that %s is set:\n%s", setting, log)
			}
		})
	}
}

// The table becomes unavailable after serve has started.
func TestServeFollowsOnOutage(t *testing.T) {
	credentials(t)
	t.Setenv("DECISION_TIMEOUT", "5s")
	for onOutage, want := range map[string]string{
		"allow": `{"allowed":true,"reason":"unavailable",`,
		"deny":  `{"errorMessage":"access to the table is denied","errorType":"Unavailable"}`,
	} {
		t.Run(onOutage, func(t *testing.T) {
			t.Setenv("ON_OUTAGE", onOutage)
			p := dynamotest.NewProxy(t)
			endpoint, _ := serve(t, "--store", "dynamodb", "--endpoint", p.URL(), "--region", "us-east-1", "--table", dynamotest.Table(t))
			p.Fail(math.MaxInt, dynamotest.AccessDenied)
			if r := post(t, invocations(endpoint, "posts-guard"), `{"userId": "u1", "activity": "create_post"}`); !strings.HasPrefix(r.body, want) {
				t.Errorf("%s, want %s", r.body, want)
			}
		})
	}
}

func TestServeCleanup(t *testing.T) {
	endpoint, _ := serve(t)
	post(t, invocations(endpoint, "posts-guard"), `{"userId": "u1", "activity": "create_post"}`)
	for payload, want := range map[string]string{
		`{}`:               `{"scanned":1,"stale":0,"deleted":0,"users":1,"finished":true,`,
		`{"userId": "u2"}`: `{"scanned":0,"stale":0,"deleted":0,"users":0,"finished":true,`,
	} {
		if r := post(t, invocations(endpoint, "cleanup"), payload); !strings.HasPrefix(r.body, want) {
			t.Errorf("%s: %s, want %s", payload, r.body, want)
		}
	}
	if r := post(t, invocations(endpoint, "cleanup"), `{"userId": "u1"}`); !strings.HasPrefix(r.body, `{"scanned":1,"stale":1,"deleted":1,"users":1,`) {
		t.Error(r.body)
	}
}
