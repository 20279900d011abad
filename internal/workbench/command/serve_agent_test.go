package command

import (
	"strings"
	"testing"
)

// A request with Guards-Token is answered as an agent answers it, and counts with all others.
// One without it is answered as before.
func TestServeAnswersAsAnAgent(t *testing.T) {
	endpoint, log := serve(t)
	const event = `{"userId": "u1", "activity": "create_post", "count": 5}`
	headers := []string{"Guards-Token", "local", "Content-Type", "application/json"}
	for n, address := range []string{endpoint + "/posts-guard", endpoint + "/"} {
		r := post(t, address, event, headers...)
		if r.StatusCode != 200 || r.Header.Get("Guards-Agent") != "1" || r.Header.Get("RateLimit") == "" || !strings.HasPrefix(r.Text, `{"allowed":true,"reason":"ok"`) {
			t.Errorf("%d: %s %v %s", n, r.Status, r.Header, r.Text)
		}
	}
	if r := post(t, endpoint+"/posts-guard", event, headers...); r.StatusCode != 429 || r.Header.Get("Guards-Agent") != "1" || r.Header.Get("Retry-After") == "" {
		t.Errorf("the eleventh: %s %v %s", r.Status, r.Header, r.Text)
	}
	if r := post(t, endpoint+"/posts-guard", event); r.StatusCode != 429 || r.Header.Get("Guards-Agent") != "" {
		t.Errorf("without a token: %s %v %s", r.Status, r.Header, r.Text)
	}
	for _, wrong := range [][]string{{"Guards-Token", "other"}, append(headers, "Origin", endpoint)} {
		if r := post(t, endpoint+"/posts-guard", event, wrong...); r.StatusCode != 403 || r.Header.Get("Guards-Agent") != "1" {
			t.Errorf("%v: %s %s", wrong, r.Status, r.Text)
		}
	}
	if n := strings.Count(log.String(), "create_post"); n != 4 {
		t.Errorf("%d lines about the requests, want 4:\n%s", n, log)
	}
}

// Serve accepts the same token as an agent.
func TestServeHasTheTokenOfAnAgent(t *testing.T) {
	t.Setenv("GUARDS_AGENT_TOKEN", "secret-1")
	endpoint, log := serve(t)
	for token, want := range map[string]int{"secret-1": 200, "local": 403} {
		if r := post(t, endpoint+"/posts-guard", like, "Guards-Token", token, "Content-Type", "application/json"); r.StatusCode != want {
			t.Errorf("%s: %s %s", token, r.Status, r.Text)
		}
	}
	if strings.Contains(log.String(), "secret-1") {
		t.Errorf("the log has the token:\n%s", log)
	}
}
