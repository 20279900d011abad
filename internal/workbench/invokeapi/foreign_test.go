package invokeapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/workbench/invokeapi"
)

// A browser must not call a function for another website, whatever address the
// server has. The site could not read the answer, but cleanup would have
// deleted a user.
func TestAnotherWebsiteCallsNoFunction(t *testing.T) {
	const invoke = "/2015-03-31/functions/cleanup/invocations"
	for _, tt := range []struct {
		what, path string
		headers    []string
		want       int
	}{
		{"a backend", invoke, nil, 200},
		{"a backend that names this machine as a container does", invoke, []string{"Host", "host.docker.internal:3001"}, 200},
		{"a page of this server", invoke, []string{"Host", "localhost:3001", "Origin", "http://localhost:3001"}, 200},
		{"another site", invoke, []string{"Origin", "http://evil.example"}, 403},
		{"another site, by the form of a Function URL", "/cleanup", []string{"Origin", "http://evil.example"}, 403},
		{"another site, as a browser marks it", invoke, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"a page without an origin, such as a file", invoke, []string{"Origin", "null"}, 403},
		{"a site that points its name to this machine", invoke, []string{"Host", "evil.example:3001", "Origin", "http://evil.example:3001", "Sec-Fetch-Site", "same-origin"}, 403},
		{"a site that points its name to this machine, in an old browser", "/cleanup", []string{"Host", "evil.example:3001", "Origin", "http://evil.example:3001"}, 403},
	} {
		function := &recorder{}
		var seen invokeapi.Invocation
		server := &invokeapi.Server{
			Functions: map[string]invokeapi.Function{"cleanup": {Handler: function, Timeout: time.Second, URL: true}},
			Observe:   func(i invokeapi.Invocation) { seen = i },
		}
		r := httptest.NewRequest(http.MethodPost, "http://192.168.1.5:3001"+tt.path, strings.NewReader(`{"userId":"u1"}`))
		for i := 0; i < len(tt.headers); i += 2 {
			if tt.headers[i] == "Host" {
				r.Host = tt.headers[i+1]
			}
			r.Header.Set(tt.headers[i], tt.headers[i+1])
		}
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		if w.Code != tt.want || (function.event != nil) != (tt.want == 200) {
			t.Errorf("%s: status %d, called with %q, want %d", tt.what, w.Code, function.event, tt.want)
		}
		if tt.want == 403 && (seen.Status != 403 || strings.Contains(w.Body.String(), "<")) {
			t.Errorf("%s: observed as %+v, answered %s", tt.what, seen, w.Body)
		}
	}
}
