package agentd_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/agentd"
	"github.com/cric-talk/guards/internal/testkit"
)

// wrong is a page with two mistakes.
var wrong = []guards.Guard{{Name: "g-guard", Message: "m", Activities: []guards.Activity{{Name: "a"}, {Name: "b", Limit: "ten"}}}}

// lines collects what an agent in this process writes.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Mistakes in the limits end the program with all of them. In Lambda they are what each check
// is told, and the function lives.
func TestMistakesInTheLimits(t *testing.T) {
	address := testkit.FreeAddress(t)
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_LAMBDA_RUNTIME_API", "")
	t.Setenv("GUARDS_AGENT_ADDR", address)
	var out, errs lines
	if status := agentd.Run(func() ([]guards.Guard, error) { return wrong, nil }, nil, &out, &errs); status != 1 || strings.Count(errs.String(), "\nguards-agent: ") != 1 || !strings.Contains(errs.String(), `"ten"`) {
		t.Errorf("%d: %s%s, want two mistakes", status, &out, &errs)
	}

	over, waits := make(chan struct{}), make(chan struct{})
	failures := 2 // of the API, which are repeated
	mux := http.NewServeMux()
	mux.HandleFunc("POST /2020-01-01/extension/register", func(w http.ResponseWriter, _ *http.Request) {
		if failures--; failures >= 0 {
			w.WriteHeader(http.StatusInternalServerError)
		}
		w.Header().Set("Lambda-Extension-Identifier", "e1")
	})
	mux.HandleFunc("GET /2020-01-01/extension/event/next", func(w http.ResponseWriter, _ *http.Request) {
		close(waits)
		<-over
		_, _ = w.Write([]byte(`{"eventType":"SHUTDOWN"}`))
	})
	api := httptest.NewServer(mux)
	defer api.Close()
	t.Setenv("AWS_LAMBDA_RUNTIME_API", strings.TrimPrefix(api.URL, "http://"))
	ended := make(chan int, 1)
	go func() { ended <- agentd.Run(func() ([]guards.Guard, error) { return wrong, nil }, nil, &out, &errs) }()
	<-waits
	status, body, err := newCaller(address, "local").ask(t.Context(), check)
	if err != nil || status != 500 || !strings.Contains(string(body), `\"ten\"`) || !strings.Contains(string(body), "it has no limit") {
		t.Errorf("%d %s, %v", status, body, err)
	}
	close(over)
	if status := <-ended; status != 0 || !strings.Contains(out.String(), `"level":"ERROR"`) {
		t.Errorf("%d: %s", status, &out)
	}
}

func TestArguments(t *testing.T) {
	var out, errs lines
	if status := agentd.Run(nil, []string{"--help"}, &out, &errs); status != 0 || !strings.Contains(out.String(), "guards-agent health") {
		t.Errorf("%d: %s", status, &out)
	}
	var version lines
	if status := agentd.Run(nil, []string{"version"}, &version, &errs); status != 0 || !strings.HasPrefix(version.String(), "guards-agent ") {
		t.Errorf("%d: %s", status, &version)
	}
	if status := agentd.Run(nil, []string{"sreve"}, &out, &errs); status != 2 || !strings.HasPrefix(errs.String(), `guards-agent: unknown arguments "sreve"`) {
		t.Errorf("%d: %s", status, &errs)
	}
}
