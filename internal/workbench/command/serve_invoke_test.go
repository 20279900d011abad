package command

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/cric-talk/guards/internal/testkit"
)

// SDKs rely on everything that this test checks.
func TestServeSpeaksTheInvokeAPI(t *testing.T) {
	endpoint, log := serve(t)
	for _, name := range []string{
		"posts-guard", "posts-guard:live", "posts-guard:$LATEST", "function:posts-guard", "123456789012:function:posts-guard",
		"arn:aws:lambda:eu-west-1:123456789012:function:posts-guard", "arn:aws:lambda:eu-west-1:123456789012:function:posts-guard:live",
	} {
		r := post(t, invocations(endpoint, name), like)
		if r.StatusCode != 200 || r.Header.Get("X-Amz-Executed-Version") != "$LATEST" || r.Header.Get("X-Amz-Function-Error") != "" ||
			r.Header.Get("X-Amzn-RequestId") == "" || !strings.HasPrefix(r.Text, `{"allowed":true,"reason":"unlimited"`) {
			t.Errorf("%s: %s %v %s", name, r.Status, r.Header, r.Text)
		}
	}

	r := post(t, invocations(endpoint, "posts-guard"), `{"activity": "like"}`)
	if r.Wants(t, 200, `{"errorMessage":"userId is missing`, `"errorType":"ValidationError"}`); r.Header.Get("X-Amz-Function-Error") != "Unhandled" {
		t.Errorf("no userId: %v", r)
	}
	post(t, invocations(endpoint, "posts-guard"), "").Wants(t, 200, "userId is missing") // as {}

	for _, tt := range []struct {
		what, name, body string
		headers          []string
		status           int
		kind, message    string
	}{
		{"unknown function", "pots-guard", like, nil, 404, "ResourceNotFoundException", "Function not found: arn:aws:lambda:us-east-1:123456789012:function:pots-guard"},
		{"not a name", "a b", like, nil, 400, "InvalidParameterValueException", "not a function's name, name:alias or ARN"},
		{"not JSON", "posts-guard", "{", nil, 400, "InvalidRequestContentException", "Could not parse request body into json"},
		{"too large", "posts-guard", strings.Repeat(" ", 6<<20+1), nil, 413, "RequestTooLargeException", "payload is too large"},
		{"unknown type", "posts-guard", like, []string{"X-Amz-Invocation-Type", "Later"}, 400, "InvalidParameterValueException", "Later"},
	} {
		r := post(t, invocations(endpoint, tt.name), tt.body, tt.headers...)
		if r.StatusCode != tt.status || r.Header.Get("X-Amzn-Errortype") != tt.kind || !strings.HasPrefix(r.Text, `{"Type":"User","Message":"`) || !strings.Contains(r.Text, tt.message) {
			t.Errorf("%s: %s %v %.200s", tt.what, r.Status, r.Header, r.Text)
		}
	}

	post(t, invocations(endpoint, "posts-guard"), like, "X-Amz-Invocation-Type", "DryRun").Wants(t, 204)
	if !strings.Contains(log.String(), "check like: allowed, unlimited\n") {
		t.Errorf("the log has no line about the invocation:\n%s", log)
	}
}

func TestServeInvokesEventsAndReturnsTheLogsTail(t *testing.T) {
	endpoint, _ := serve(t)
	ten := `{"userId": "canary-user-4711", "activity": "create_post", "count": 10}`
	post(t, invocations(endpoint, "posts-guard"), ten, "X-Amz-Invocation-Type", "Event").Wants(t, 202)
	status := strings.Replace(ten, `"count": 10`, `"op": "status"`, 1)
	until(t, "the event is not counted", func() bool { // it is handled in the background
		return strings.Contains(post(t, invocations(endpoint, "posts-guard"), status).Text, `"activityCount":10`)
	})
	r := post(t, invocations(endpoint, "posts-guard"), ten, "X-Amz-Log-Type", "Tail")
	tail, err := base64.StdEncoding.DecodeString(r.Header.Get("X-Amz-Log-Result"))
	if err != nil || len(tail) > 4096 || !strings.Contains(string(tail), `"msg":"refused"`) || strings.Contains(string(tail), "canary") ||
		!strings.HasPrefix(string(tail), "START RequestId: "+r.Header.Get("X-Amzn-RequestId")) || !strings.Contains(string(tail), "REPORT RequestId: ") {
		t.Errorf("the tail of the log (%v):\n%s", err, tail)
	}
}

// serve gives each function the timeout that template.yaml gives it.
func TestServeUsesTheTimeoutsOfTheTemplate(t *testing.T) {
	var template struct {
		Globals   map[string]map[string]any `yaml:"Globals"`
		Resources map[string]struct {
			Properties map[string]any `yaml:"Properties"`
		} `yaml:"Resources"`
	}
	testkit.OK(t, yaml.Unmarshal([]byte(source(t, "template.yaml")), &template))
	want := fmt.Sprint(template.Globals["Function"]["Timeout"], template.Resources["CleanupFunction"].Properties["Timeout"])
	if got := fmt.Sprint(guardTimeout.Seconds(), cleanupTimeout.Seconds()); got != want {
		t.Errorf("serve gives guards and cleanup %s s, template.yaml %s s", got, want)
	}
}
