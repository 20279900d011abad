package lambdafn_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/dynamotest"
	"github.com/cric-talk/guards/internal/lambdatest"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/ratelimit"
)

const canary = "canary-user-4711"

// A rig is a table behind a proxy, for functions as they are deployed.
type rig struct {
	proxy *dynamotest.Proxy
	table string
}

func newRig(t testing.TB) rig {
	t.Helper()
	return rig{dynamotest.NewProxy(t), dynamotest.Table(t)}
}

// start starts an instance of a function on the rig's table. At its end no user
// id may stand in its log.
func (r rig) start(t testing.TB, function string, env ...string) *lambdatest.Instance {
	t.Helper()
	env = append([]string{
		"TABLE_NAME=" + r.table, "AWS_ENDPOINT_URL_DYNAMODB=" + r.proxy.URL(),
		"DECISION_TIMEOUT=5s", // a busy machine is no outage
	}, env...)
	i := lambdatest.Start(t, lambdatest.Build(t, "./functions/"+function), env...)
	t.Cleanup(func() {
		if strings.Contains(i.Logs(), canary) {
			t.Errorf("a user id in the log of %s:\n%s", function, i.Logs())
		}
		checkMetrics(t, i.Logs())
	})
	return i
}

type answer struct {
	Allowed       bool
	Reason        string
	Activity      string
	Limit         int64
	ActivityCount int64
	Message       string
	At            int64
	RequestID     string
}

func ask(t testing.TB, i *lambdatest.Instance, payload string) (a answer, errorType string) {
	t.Helper()
	r := i.Invoke(t, payload)
	if r.ErrorType == "" {
		if err := json.Unmarshal(r.Payload, &a); err != nil {
			t.Fatalf("%v: %s", err, r.Payload)
		}
	}
	return a, r.ErrorType
}

func event(activity string) string {
	return fmt.Sprintf(`{"userId": %q, "activity": %q}`, canary, activity)
}

// inOneMinute waits for a minute that still has time for a test that counts in
// it: the functions' clock is the real one.
func inOneMinute(t testing.TB, needs time.Duration) {
	t.Helper()
	within(t, time.Minute, needs)
}

func within(t testing.TB, window, needs time.Duration) {
	t.Helper()
	now := time.Now()
	if left := now.Truncate(window).Add(window).Sub(now); left < needs {
		time.Sleep(left)
	}
}

func TestExactlyTheLimitFromTwoProcesses(t *testing.T) {
	r := newRig(t)
	instances := []*lambdatest.Instance{r.start(t, "posts-guard"), r.start(t, "posts-guard")}
	inOneMinute(t, 10*time.Second)
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
	if requests["UpdateItem"] > callers || requests["GetItem"] > len(instances) || len(requests) != 2 {
		t.Errorf("requests %v, want at most one UpdateItem for each decision, and one GetItem of the live limits by each instance", requests)
	}
	t.Logf("requests %v for %d decisions, %v write units", requests, callers, r.proxy.WriteUnits())

	r.proxy.ResetCounts()
	for _, activity := range []string{"like", "view"} {
		if a, _ := ask(t, instances[0], event(activity)); !a.Allowed || a.Reason != "unlimited" {
			t.Errorf("%s: %+v", activity, a)
		}
	}
	if requests := r.proxy.Counts(); len(requests) != 0 {
		t.Errorf("%v for what is unlimited", requests)
	}
}

func TestEveryGuardLimits(t *testing.T) {
	r := newRig(t)
	for _, g := range limits.All {
		t.Run(g.Name, func(t *testing.T) {
			i := r.start(t, g.Name)
			for _, activity := range g.Activities {
				if activity.Unlimited {
					continue
				}
				limit, _ := activity.Limit.Quota()
				inOneMinute(t, 5*time.Second)
				all, times := fmt.Sprintf(`{"userId": %q, "activity": %q, "count": %d}`, canary, activity.Name, limit), 1
				if _, ok := activity.Limit.(ratelimit.Reservoir); ok { // one place a call
					within(t, 10*time.Second, 4*time.Second)
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
	r := newRig(t)
	i := r.start(t, "posts-guard", "ON_LIMIT=error", "ON_OUTAGE=deny", "DECISION_TIMEOUT=1s")
	inOneMinute(t, 5*time.Second)
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
	// A user id in the wrong place is told to the caller, and not to the log.
	want(`{"userId": "create_post", "activity": "`+canary+`"}`, "ValidationError",
		`activity is "`+canary+`", want one of posts-guard's: create_post, update_post, delete_post, like, view`)
	want(`{"`+canary+`": "create_post"}`, "ValidationError",
		`event has the unknown field "`+canary+`", want only userId, activity, op, count, partial, tier, roles, requestId, at, readyAt, job`)
	want(`{"userId": "u1", "activity": "create_post", "teir": "premium"}`, "ValidationError",
		`event has the unknown field "teir", want only userId, activity, op, count, partial, tier, roles, requestId, at, readyAt, job`)
	want("{\"userId\": \"u\xff\", \"activity\": \"create_post\"}", "ValidationError", "userId is not UTF-8") // raw bytes
	want(``, "ValidationError", "event is empty, want a JSON object")
	want(strings.Repeat(" ", 70<<10), "ValidationError", "event is 71680 bytes long, want at most 65536")
	r.proxy.Fail(math.MaxInt, dynamotest.Throttle)
	want(event("update_post"), "Unavailable", "the table is throttled")
	if n := strings.Count(i.Logs(), "invalid request"); n != 6 {
		t.Errorf("%d lines of log on 6 invalid requests:\n%s", n, i.Logs())
	}
}

func TestLostAnswers(t *testing.T) {
	r := newRig(t)
	i := r.start(t, "posts-guard")
	inOneMinute(t, 10*time.Second)
	for n := range 6 {
		r.proxy.Fail(n, dynamotest.LoseResponse, "UpdateItem")
		a, errorType := ask(t, i, event("create_post"))
		if a.Reason != "ok" || a.ActivityCount != int64(n+1) || a.At == 0 {
			t.Errorf("answer lost %d times: %+v %s, want ok and %d counted", n, a, errorType, n+1)
		}
	}
}

// A table that refuses connections or never answers: one instance goes on by
// itself, from what it had seen, and never past the limit.
// slack is what a busy machine adds to a time-out; synctest has it exactly,
// where the limiter is tested.
const slack = 5 * time.Second

func TestOutage(t *testing.T) {
	for _, fault := range []dynamotest.Fault{dynamotest.Refuse, dynamotest.HangBefore, dynamotest.HangAfter} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			const timeout = time.Second
			r := newRig(t)
			i := r.start(t, "posts-guard", "DECISION_TIMEOUT="+timeout.String())
			ask(t, i, event("update_post")) // the first connection takes its time
			inOneMinute(t, 20*time.Second)
			for range 4 {
				if a, _ := ask(t, i, event("create_post")); a.Reason != "ok" {
					t.Fatalf("%+v", a)
				}
			}
			r.proxy.Fail(math.MaxInt, fault)
			allowed := 4
			for range 8 {
				began := time.Now()
				a, errorType := ask(t, i, event("create_post"))
				if took := time.Since(began); took > timeout+slack {
					t.Errorf("answered after %v", took)
				}
				if a.Reason != "unavailable" {
					t.Errorf("%+v %s, want unavailable", a, errorType)
				}
				if a.Allowed {
					allowed++
				}
			}
			if allowed != 10 {
				t.Errorf("%d allowed before and in the outage, want 10", allowed)
			}
		})
	}
}

func TestReceipt(t *testing.T) {
	r := newRig(t)
	i := r.start(t, "posts-guard")
	inOneMinute(t, 10*time.Second)
	a, _ := ask(t, i, event("create_post"))
	back := fmt.Sprintf(`{"userId": %q, "activity": "create_post", "op": "release", "at": %d, "requestId": %q}`, canary, a.At, a.RequestID)
	if other, _ := ask(t, i, event("create_post")); other.ActivityCount != 2 {
		t.Errorf("%+v", other)
	}
	for range 2 {
		if a, _ := ask(t, i, back); !a.Allowed || a.Reason != "ok" || a.ActivityCount != 1 {
			t.Errorf("release: %+v, want the other one left", a)
		}
	}
	again := fmt.Sprintf(`{"userId": %q, "activity": "create_post", "requestId": %q}`, canary, a.RequestID)
	for _, reason := range []string{"ok", "duplicate"} {
		if a, _ := ask(t, i, again); a.Reason != reason || a.ActivityCount != 2 {
			t.Errorf("the released id again: %+v, want %s", a, reason)
		}
	}
}

func TestEnvironmentThatCantBeRead(t *testing.T) {
	binary := lambdatest.Build(t, "./functions/posts-guard")
	for setting, says := range map[string]string{
		"MODE=of":               `MODE is "of", want enforce or shadow or off`,
		"ON_OUTAGE=Allow":       `ON_OUTAGE is "Allow", want allow or deny`,
		"ON_LIMIT=exception":    `ON_LIMIT is "exception", want answer or error`,
		"DECISION_TIMEOUT=fast": `DECISION_TIMEOUT is "fast", want a duration such as 250ms, at most 5s`,
		"DECISION_TIMEOUT=6s":   `DECISION_TIMEOUT is "6s"`,
		"DECISION_TIMEOUT=0s":   `DECISION_TIMEOUT is "0s"`,
		"TABLE_NAME=rate limit": `TABLE_NAME is "rate limit"`,
	} {
		exit := lambdatest.Start(t, binary, setting).Exit(t)
		if exit.Code != 1 || !strings.Contains(exit.Logs, says) {
			t.Errorf("%s: %+v, want status 1 and %s", setting, exit, says)
		}
	}
	// What cleanup doesn't read doesn't stop it.
	lambdatest.Start(t, lambdatest.Build(t, "./functions/cleanup"), "MODE=of").Ready(t)
	exit := lambdatest.Start(t, lambdatest.Build(t, "./functions/cleanup"), "TABLE_NAME=a/b").Exit(t)
	if exit.Code != 1 || !strings.Contains(exit.Logs, `cleanup: TABLE_NAME is "a/b"`) {
		t.Errorf("cleanup: %+v", exit)
	}
}

func TestModes(t *testing.T) {
	r := newRig(t)
	off := r.start(t, "posts-guard", "MODE=off", "BYPASS_ROLES=")
	if a, _ := ask(t, off, event("create_post")); a.Reason != "unlimited" || len(r.proxy.Counts()) > 0 {
		t.Errorf("off: %+v, requests %v", a, r.proxy.Counts())
	}
	shadow := r.start(t, "posts-guard", "MODE=shadow", "ON_OUTAGE=deny", "BYPASS_ROLES=root, staff")
	ask(t, shadow, event("like"))
	inOneMinute(t, 10*time.Second)
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

func TestCleanupFunction(t *testing.T) {
	r := newRig(t)
	client := dynamodb.NewFromConfig(dynamotest.Config(dynamotest.Endpoint(t)))
	put := func(user string, expires time.Time) {
		_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &r.table, Item: map[string]types.AttributeValue{
			"userId":         &types.AttributeValueMemberS{Value: user},
			"activityWindow": &types.AttributeValueMemberS{Value: "create_post#1"},
			"expiresAt":      &types.AttributeValueMemberN{Value: fmt.Sprint(expires.Unix())},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	put(canary, time.Now().Add(-time.Minute))
	put("other", time.Now().Add(time.Hour))
	i := r.start(t, "cleanup")
	for _, step := range []struct{ event, want string }{
		{`{"dryRun": true}`, `{"scanned":2,"stale":1,"deleted":0,"users":2,"finished":true,`},
		{`{}`, `{"scanned":2,"stale":1,"deleted":1,"users":2,"finished":true,`},
		{`{"version": "0", "detail-type": "Scheduled Event", "source": "aws.scheduler", "detail": {}}`, `{"scanned":1,"stale":0,"deleted":0,"users":1,"finished":true,`},
		{`{"userId": "other", "dryRun": true}`, `{"scanned":1,"stale":1,"deleted":0,"users":1,"finished":true,`},
		{`{"userId": "other"}`, `{"scanned":1,"stale":1,"deleted":1,"users":1,"finished":true,`},
	} {
		if got := i.Invoke(t, step.event); !strings.HasPrefix(string(got.Payload), step.want) {
			t.Errorf("%s: %s %+v, want %s", step.event, got.Payload, got, step.want)
		}
	}
	for payload, message := range map[string]string{
		`{"dryrun": true}`:      `event has the unknown field "dryrun", want only dryRun, userId`,
		`{"userId": " config"}`: "userId has U+0020 as character 1, want 1 to 128 printable ASCII characters without a space",
		`[]`:                    "event is an array, want a JSON object",
	} {
		if got := i.Invoke(t, payload); got.ErrorType != "ValidationError" || got.ErrorMessage != message {
			t.Errorf("%s is answered %+v, want a ValidationError: %s", payload, got, message)
		}
	}
	r.proxy.Fail(math.MaxInt, dynamotest.AccessDenied)
	if got := i.Invoke(t, `{}`); got.ErrorType != "Unavailable" || got.ErrorMessage != "access to the table is denied" {
		t.Errorf("%+v, want Unavailable", got)
	}
}

func TestCleanupStopsBeforeItsDeadline(t *testing.T) {
	r := newRig(t)
	slow := func(string) dynamotest.Fault {
		time.Sleep(100 * time.Millisecond) // 64 segments, 4 at once: at least 1.6 s
		return dynamotest.Pass
	}
	never := func(string) dynamotest.Fault { return dynamotest.HangBefore }
	throttled := func(string) dynamotest.Fault { return dynamotest.Throttle }
	i := r.start(t, "cleanup")
	for _, table := range []func(string) dynamotest.Fault{slow, never, throttled} {
		r.proxy.Do(table)
		for _, payload := range []string{`{}`, `{"userId": "` + canary + `"}`} {
			if payload != `{}` && table(``) == dynamotest.Pass {
				continue // one user is done in time
			}
			const deadline = 2 * time.Second
			got, err := i.Do(t.Context(), lambdatest.Invocation{Payload: []byte(payload), Timeout: deadline})
			a := struct{ Finished bool }{true}
			if err != nil || json.Unmarshal(got.Payload, &a) != nil || a.Finished || got.Duration > deadline {
				t.Errorf("%s: %s after %v, %v, want it unfinished before %v", payload, got.Payload, got.Duration, err, deadline)
			}
		}
	}
}

// BenchmarkStart compares a guard's start, up to its first request for work,
// with that of a function that does nothing else: in alternating runs, as the
// median of their differences.
func BenchmarkStart(b *testing.B) {
	bare := lambdatest.Build(b, "./internal/lambdafn/testdata/bare")
	posts := lambdatest.Build(b, "./functions/posts-guard")
	var guards, bares, more []float64
	for b.Loop() {
		bareStart := ready(b, bare)
		guardStart := ready(b, posts)
		bares = append(bares, bareStart)
		guards = append(guards, guardStart)
		more = append(more, guardStart-bareStart)
	}
	b.ReportMetric(median(bares), "bare-ms")
	b.ReportMetric(median(guards), "guard-ms")
	b.ReportMetric(median(more), "more-ms")
	b.ReportMetric(0, "ns/op") // of both, and their processes' end
}

func ready(b *testing.B, binary string) (ms float64) {
	i := lambdatest.Start(b, binary)
	defer i.Stop()
	return i.Ready(b).Seconds() * 1000
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
