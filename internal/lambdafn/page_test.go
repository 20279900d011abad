package lambdafn_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

// onPage returns GUARDS_PAGE with a page of JSON.
func onPage(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "limits.json")
	testkit.OK(t, os.WriteFile(file, []byte(text), 0o600))
	return "GUARDS_PAGE=" + file
}

// cricketPage returns GUARDS_PAGE with the page of this repository.
func cricketPage(t *testing.T) string {
	t.Helper()
	text := testkit.Must(os.ReadFile("../pagefile/testdata/limits.json"))(t)
	return onPage(t, string(text))
}

// The program that is the same for every project answers as the function of a project in Go. The
// table is away, so that no test needs one: both decide from memory, and by the same limits.
func TestAGenericGuardAnswersAsItsOwnFunction(t *testing.T) {
	t.Parallel()
	away := []string{"AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:1", "DECISION_TIMEOUT=100ms"}
	own := lambdatest.Start(t, lambdatest.Build(t, "./functions/posts-guard"), away...)
	generic := lambdatest.Start(t, lambdatest.Build(t, "./cmd/generic/guard"), append(away, "GUARD_NAME=posts-guard", cricketPage(t))...)
	for _, event := range []string{
		`{"userId": "u1", "activity": "like", "requestId": "r1"}`, `{"userId": "u1", "activity": "pin"}`, `{"userId": "u1", "activity": "like", "teir": 1}`, `{}`, `null`,
		`{"userId": "u1", "activity": "create_post", "roles": ["admin"], "requestId": "r1"}`,
	} {
		a, b := own.Invoke(t, event), generic.Invoke(t, event)
		if string(a.Payload) != string(b.Payload) || a.ErrorType != b.ErrorType || len(a.Payload) == 0 {
			t.Errorf("%s: %s by its own function, %s by the generic one", event, a.Payload, b.Payload)
		}
	}
	testkit.InOneWindow(t, time.Minute, 20*time.Second)
	for _, tier := range []string{"", "premium"} {
		for n := range 21 {
			event := fmt.Sprintf(`{"userId": "u2%s", "activity": "create_post", "tier": %q}`, tier, tier)
			a, _ := ask(t, own, event)
			b, errorType := ask(t, generic, event)
			a.At, a.RequestID, a.WaitTime = b.At, b.RequestID, b.WaitTime
			if a != b || errorType != "" || n == 20 && b.Allowed {
				t.Errorf("%s, %d: %+v by its own function, %+v by the generic one", event, n, a, b)
			}
		}
	}
	if log := generic.Logs(); !strings.Contains(log, `"service":"posts-guard"`) {
		t.Errorf("the log names no guard:\n%s", log)
	}
}

// Each mistake ends the function, by its name.
func TestMistakesOfAGenericFunction(t *testing.T) {
	t.Parallel()
	const (
		guard, jobs, cleanup, delayed = "guard", "jobs-guard", "cleanup", "delayed-jobs"
		name                          = "GUARD_NAME=posts-guard"
	)
	right := cricketPage(t)
	wrong := onPage(t, "{\"guards\": [{\"name\": \"posts-guard\", \"message\": 1, \"activities\": [\n{\"name\": \"b\", \"limt\": \"5/1m\"}]}]}")
	mistakes := []string{":1: posts-guard: message is a number, want a text\n", `:2: posts-guard, activity "b": unknown field "limt"`}
	for _, tt := range []struct {
		program string
		env     []string
		says    []string
	}{
		{guard, []string{right}, []string{"guard: GUARD_NAME is not set, want the name of a guard, such as photos-guard"}},
		{guard, []string{right, "GUARD_NAME="}, []string{"GUARD_NAME is not set"}},
		{guard, []string{right, "GUARD_NAME=post-guard"}, []string{`post-guard: GUARD_NAME is "post-guard", want one of posts-guard, comments-guard, rooms-guard`}},
		{guard, []string{right, "GUARD_NAME=jobs-guard"}, []string{"jobs-guard: jobs-guard has a DelayedQueue: its function needs the program jobs-guard"}},
		{guard, []string{right, name, "MODE=of"}, []string{`MODE is "of"`}},
		{guard, []string{name}, []string{"posts-guard: there is no page of limits, want /", "/limits.json or /opt/guards/limits.json, or another file in GUARDS_PAGE"}},
		{guard, nil, []string{"there is no page of limits", "GUARD_NAME is not set"}},
		{guard, []string{"GUARDS_PAGE=/no/such.json", name}, []string{`posts-guard: GUARDS_PAGE is "/no/such.json", and there is no such file`}},
		{guard, []string{wrong, name}, mistakes},
		{guard, []string{wrong}, append(mistakes, "GUARD_NAME is not set")},
		{guard, []string{onPage(t, strings.Replace(`{"guards": [{"name": "a-guard", "message": "m", "activities": [{"name": "b", "limit": "X"}, {"name": "C", "unlimited": true}]}]}`, "X", "ten", 1)), "GUARD_NAME=a-guard"},
			[]string{`a-guard, activity "b": limit is "ten"`, `a-guard, activity "C": name contains 'C'`}},
		{jobs, []string{right}, []string{"GUARD_NAME is not set"}},
		{jobs, []string{wrong, name}, mistakes},
		{cleanup, []string{wrong}, mistakes},
		{cleanup, nil, []string{"cleanup: there is no page of limits"}},
		{delayed, []string{wrong}, mistakes},
		{delayed, []string{right}, []string{`delayed-jobs: DELAYED_QUEUE_URL is ""`}},
	} {
		exit := lambdatest.Start(t, lambdatest.Build(t, "./cmd/generic/"+tt.program), tt.env...).Exit(t)
		for _, says := range tt.says {
			if exit.Code != 1 || !strings.Contains(exit.Logs, says) {
				t.Errorf("%s with %q: %+v, want status 1 and %s", tt.program, tt.env, exit, says)
			}
		}
	}
	lambdatest.Start(t, lambdatest.Build(t, "./cmd/generic/cleanup"), right).Ready(t)
	lambdatest.Start(t, lambdatest.Build(t, "./cmd/generic/jobs-guard"), right, "GUARD_NAME=jobs-guard").Ready(t)
	lambdatest.Start(t, lambdatest.Build(t, "./cmd/generic/delayed-jobs"), right, "DELAYED_QUEUE_URL=http://127.0.0.1:1/000000000000/q", "READY_QUEUE_URL=http://127.0.0.1:1/000000000000/r").Ready(t)
}
