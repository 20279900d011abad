package clients_test

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A trial is one situation in which an example of docs/calling.md runs.
type trial struct {
	name   string
	before string // fields of an event that is sent first, in addition to userId and activity
	user   string // empty means a new user
	lose   bool   // whether the first answer gets lost
	absent bool   // whether no server listens at the endpoint
	times  int    // how often the example runs with the same requestId

	status         int    // wanted of the last run
	stdout, stderr string // wanted: the beginning of stdout, a part of stderr
	counted        int64  // wanted at the end
}

var trials = []trial{
	{name: "allowed", times: 1, stdout: "201 created\n", counted: 1},
	{name: "refused", before: `,"count":10`, times: 1, stdout: "429 ", counted: 10},
	{name: "a mistake in the event", user: strings.Repeat("u", 129), times: 1, status: 1, stderr: "ValidationError"},
	{name: "a repeat with the same id", times: 2, stdout: "201 created\n", counted: 1},
	{name: "a lost answer", lose: true, times: 1, stdout: "201 created\n", counted: 1},
	{name: "no server", absent: true, times: 1, stdout: "201 created\n", stderr: "onnect"},
}

// Each example is run exactly as docs/calling.md shows it.
func TestExamplesInCallingDoWhatTheDocumentPromises(t *testing.T) {
	document, err := os.ReadFile(filepath.Join(root, "docs", "calling.md"))
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)\n```[a-z]+\n((?:#|//) (post\\.[a-z]+)\n.*?)\n```\n").FindAllStringSubmatch(string(document), -1)
	if fences := strings.Count(string(document), "\n```"); len(examples) != 4 || fences != 2*len(examples) {
		t.Fatalf("docs/calling.md has %d examples and %d fences, want 4 and 8", len(examples), fences)
	}
	endpoint := serve(t)
	for _, example := range examples {
		source, file := example[1]+"\n", example[2]
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			app := install(t, file, source)
			for _, tr := range trials {
				t.Run(tr.name, func(t *testing.T) { tr.run(t, endpoint, app) })
			}
		})
	}
}

// run runs app in the situation of the trial and checks the outcome.
func (tr trial) run(t *testing.T, endpoint string, app program) {
	var last end
	var counted int64
	inOneMinute(func() {
		user, request := tr.user, rand.Text()
		if user == "" {
			user = rand.Text()
		}
		if tr.before != "" {
			askPosts(t, endpoint, user, tr.before)
		}
		called := endpoint
		switch {
		case tr.lose:
			called = losing(t, endpoint)
		case tr.absent:
			called = "http://127.0.0.1:1"
		}
		for range tr.times {
			last = finish(t, app.command(t, called, user, request))
		}
		if tr.user == "" {
			counted = askPosts(t, endpoint, user, `,"op":"status"`)
		}
	})
	if last.status != tr.status || !strings.HasPrefix(last.stdout, tr.stdout) || !strings.Contains(last.stderr, tr.stderr) {
		t.Errorf("status %d, stdout %q and stderr %q, want %d, %q and %q", last.status, last.stdout, last.stderr, tr.status, tr.stdout, tr.stderr)
	}
	if tr.stderr == "" && strings.Contains(last.stderr, "posts-guard") {
		t.Errorf("the example logs a problem: %s", last.stderr)
	}
	if tr.before != "" && !strings.Contains(last.stdout, "Rate limit exceeded: Too many requests in a short period") {
		t.Errorf("stdout %q, want the guard's message in it", last.stdout)
	}
	if counted != tr.counted {
		t.Errorf("%d counted, want %d", counted, tr.counted)
	}
}

// inOneMinute calls try and repeats it until it runs within one minute of the
// clock. Windows of a minute begin and end with such minutes.
func inOneMinute(try func()) {
	for {
		began := time.Now().Truncate(time.Minute)
		try()
		if time.Now().Truncate(time.Minute).Equal(began) {
			return
		}
	}
}

// askPosts invokes posts-guard for create_post and returns its activityCount.
// further has more fields of the event, each after a comma.
func askPosts(t *testing.T, endpoint, user, further string) int64 {
	t.Helper()
	event := `{"userId":"` + user + `","activity":"create_post"` + further + `}`
	o := byGo(t, endpoint, 1, []call{{"posts-guard", json.RawMessage(event)}})[0]
	var answer struct{ ActivityCount int64 }
	if err := json.Unmarshal(o.Payload, &answer); err != nil || o.FunctionError != "" {
		t.Fatalf("%s: %v", event, o)
	}
	return answer.ActivityCount
}

// losing returns the URL of a server that forwards requests to endpoint. It drops
// the first answer, so the client must time out and send its request again.
func losing(t *testing.T, endpoint string) string {
	t.Helper()
	to, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	through := httputil.NewSingleHostReverseProxy(to)
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) > 1 {
			through.ServeHTTP(w, r)
			return
		}
		through.ServeHTTP(httptest.NewRecorder(), r)
		<-r.Context().Done()
	}))
	t.Cleanup(func() {
		server.Close()
		if got := requests.Load(); got < 2 {
			t.Errorf("the client sent %d requests, want at least 2", got)
		}
	})
	return server.URL
}
