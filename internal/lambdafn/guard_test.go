package lambdafn_test

import (
	"encoding/json"
	"fmt"
	"math"
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

func TestModes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	off := r.start(t, "posts-guard", "MODE=off", "BYPASS_ROLES=")
	if a, _ := ask(t, off, event("create_post")); a.Reason != "unlimited" || len(r.proxy.Counts()) > 0 {
		t.Errorf("off: %+v, requests %v", a, r.proxy.Counts())
	}
	shadow := r.start(t, "posts-guard", "MODE=shadow", "ON_OUTAGE=deny", "BYPASS_ROLES=root, staff")
	ask(t, shadow, event("like"))
	testkit.InOneWindow(t, time.Minute, 20*time.Second)
	for n := range 11 {
		want := "ok"
		if n == 10 {
			want = "shadow"
		}
		if a, _ := ask(t, shadow, event("create_post")); !a.Allowed || a.Reason != want || a.Message != "" {
			t.Errorf("shadow, check %d: %+v, want %s", n+1, a, want)
		}
	}
	for role, want := range map[string]string{"staff": "bypassed", "admin": "shadow"} {
		if a, _ := ask(t, shadow, `{"userId": "`+canary+`", "activity": "create_post", "roles": ["`+role+`"]}`); a.Reason != want {
			t.Errorf("role %s: %+v, want %s", role, a, want)
		}
	}
	r.proxy.Fail(math.MaxInt, dynamotest.AccessDenied)
	if a, errorType := ask(t, shadow, event("update_post")); !a.Allowed || a.Reason != "unavailable" {
		t.Errorf("shadow in an outage: %+v %s, want it allowed", a, errorType)
	}
}
