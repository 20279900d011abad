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

// A trial is a user's way through an example of docs/calling.md.
type trial struct {
	what   string
	before string // asked of the guard first, beside userId and activity
	user   string // empty: a new one
	lose   bool   // the first answer is lost
	absent bool   // nothing listens where the guard should be
	times  int    // how often the example runs, with one requestId

	status         int    // of the last run
	stdout, stderr string // how the one begins, what the other has in it
	counted        int64  // in the end
}

var trials = []trial{
	{what: "allowed", times: 1, stdout: "201 created\n", counted: 1},
	{what: "refused", before: `,"count":10`, times: 1, stdout: "429 ", counted: 10},
	{what: "a mistake in the event", user: strings.Repeat("u", 129), times: 1, status: 1, stderr: "ValidationError"},
	{what: "asked again with the same id", times: 2, stdout: "201 created\n", counted: 1},
	{what: "the answer is lost", lose: true, times: 1, stdout: "201 created\n", counted: 1},
	{what: "nobody answers", absent: true, times: 1, stdout: "201 created\n", stderr: "onnect"},
}

// Each example of docs/calling.md does what the document says, as it stands
// there.
func TestExamplesOfCalling(t *testing.T) {
	document, err := os.ReadFile(filepath.Join(root, "docs", "calling.md"))
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)\n```[a-z]+\n((?:#|//) (post\\.[a-z]+)\n.*?)\n```\n").FindAllStringSubmatch(string(document), -1)
	if fences := strings.Count(string(document), "\n```"); len(examples) != 4 || fences != 2*len(examples) {
		t.Fatalf("docs/calling.md has %d examples in %d fences, want 4, each in two", len(examples), fences)
	}
	endpoint := serve(t)
	for _, example := range examples {
		source, file := example[1]+"\n", example[2]
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			app := install(t, file, source)
			for _, tr := range trials {
				t.Run(tr.what, func(t *testing.T) { tr.run(t, endpoint, app) })
			}
		})
	}
}

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
		t.Errorf("it ended with status %d and printed %q and %q, want %d, %q and %q", last.status, last.stdout, last.stderr, tr.status, tr.stdout, tr.stderr)
	}
	if tr.stderr == "" && strings.Contains(last.stderr, "posts-guard") {
		t.Errorf("it complains: %s", last.stderr)
	}
	if tr.before != "" && !strings.Contains(last.stdout, "Rate limit exceeded: Too many requests in a short period") {
		t.Errorf("it printed %q, want the guard's message", last.stdout)
	}
	if counted != tr.counted {
		t.Errorf("%d counted, want %d", counted, tr.counted)
	}
}

// inOneMinute has try done within a minute of the clock, since windows are such
// minutes: again, where the minute turned meanwhile.
func inOneMinute(try func()) {
	for {
		began := time.Now().Truncate(time.Minute)
		try()
		if time.Now().Truncate(time.Minute).Equal(began) {
			return
		}
	}
}

// askPosts asks posts-guard about create_post, and returns how many are counted.
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

// losing passes requests on to endpoint. The answer to the first does not
// arrive: the client gives it up, and must ask again.
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
			t.Errorf("the client asked %d times, want it to ask again", got)
		}
	})
	return server.URL
}
