package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/workbench/console"
)

// Another site must neither read the page nor make it act, even if its name
// points to this machine.
func TestTheConsoleRefusesOtherSites(t *testing.T) {
	r := start(t, 0, nil)
	here := testkit.Must(url.Parse(r.url))(t)
	const ask, jsonType = `{"function": "posts-guard", "event": {"userId": "u1", "activity": "create_post"}}`, "application/json"
	const event, invoke = `{"userId": "u1", "activity": "create_post"}`, "/2015-03-31/functions/posts-guard/invocations"
	local := "localhost:" + here.Port()
	for _, tt := range []struct {
		method, path, body string
		headers            []string
		want               int
	}{
		{"GET", "/", "", nil, 200},
		{"GET", "/", "", []string{"Host", local}, 200},
		{"GET", "/", "", []string{"Host", "[::1]:" + here.Port()}, 200},
		{"GET", "/", "", []string{"Host", "localhost"}, 403}, // another port
		{"GET", "/", "", []string{"Host", "127.0.0.1:1"}, 403},
		{"GET", "/", "", []string{"Host", "evil.example:" + here.Port()}, 403},
		{"GET", "/", "", []string{"Host", "localhost.evil.example:" + here.Port()}, 403},
		{"GET", "/", "", []string{"Host", "192.168.1.5:" + here.Port()}, 403},
		{"GET", "/console/events", "", []string{"Origin", "https://evil.example"}, 403},
		{"GET", "/console/console.js", "", []string{"Origin", "null"}, 403},

		{"POST", "/console/ask", ask, []string{"Origin", r.url, "Content-Type", jsonType}, 200},
		{"POST", "/console/ask", ask, []string{"Origin", r.url, "Content-Type", "application/json; charset=utf-8"}, 200},
		{"POST", "/console/ask", ask, []string{"Host", local, "Origin", "http://" + local, "Content-Type", jsonType}, 200},
		{"POST", "/console/ask", ask, []string{"Content-Type", jsonType}, 403},
		{"POST", "/console/ask", ask, []string{"Origin", "http://" + local, "Content-Type", jsonType}, 403},
		{"POST", "/console/ask", ask, []string{"Origin", "https://" + here.Host, "Content-Type", jsonType}, 403},
		{"POST", "/console/ask", ask, []string{"Host", "evil.example:" + here.Port(), "Origin", "http://evil.example:" + here.Port(), "Content-Type", jsonType}, 403},
		{"POST", "/console/ask", ask, []string{"Origin", r.url, "Content-Type", "text/plain"}, 415},
		{"POST", "/console/ask", `nonsense`, []string{"Origin", r.url, "Content-Type", jsonType}, 400},
		{"POST", "/console/ask", `{"function": "cleanup", "event": {}}`, []string{"Origin", r.url, "Content-Type", jsonType}, 404},
		{"POST", "/console/clock", `{"reset": true}`, []string{"Origin", "http://evil.example", "Content-Type", jsonType}, 403},
		{"DELETE", "/console/clock", "", nil, 404},
		{"GET", "/console/page.html", "", nil, 404},

		// Backends and SDKs send no Origin, whatever name they use for this machine. Package invokeapi has more cases.
		{"POST", invoke, event, nil, 200},
		{"POST", invoke, event, []string{"Host", "host.docker.internal:" + here.Port()}, 200},
		{"POST", "/posts-guard", event, []string{"Origin", r.url}, 200},
	} {
		got := r.send(tt.method, tt.path, tt.body, tt.headers...)
		if got.StatusCode != tt.want {
			t.Errorf("%s %s %q: %d %.100s, want status %d", tt.method, tt.path, tt.headers, got.StatusCode, got.Text, tt.want)
		}
		if tt.want == 403 && strings.Contains(got.Text, "<") {
			t.Errorf("%s %s %q: the answer has HTML: %s", tt.method, tt.path, tt.headers, got.Text)
		}
	}
}

func TestThePageHasAStrictPolicy(t *testing.T) {
	r := start(t, 0, nil)
	for _, path := range []string{"/", "/console/console.js", "/console/console.css", "/console/icon.svg"} {
		header := r.send(http.MethodGet, path, "").Header
		policy := header.Get("Content-Security-Policy")
		testkit.Contains(t, "the policy of "+path, policy, "default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "form-action 'none'", "base-uri 'none'")
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") || strings.Contains(policy, "http") { // so it works offline, too
			t.Errorf("%s: the policy %q is too weak", path, policy)
		}
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin",
			"Cross-Origin-Opener-Policy": "same-origin", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
		} {
			if got := header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
	}
}

func TestLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:3001": true, "127.1.2.3:1": true, "[::1]:3001": true, "[::ffff:127.0.0.1]:3001": true,
		"0.0.0.0:3001": false, "[::]:3001": false, "192.168.1.5:3001": false, "": false, "localhost:3001": false,
	} {
		if got := console.Loopback(address); got != want {
			t.Errorf("Loopback(%q) = %v, want %v", address, got, want)
		}
	}
}
