package examples_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

const root = "../../.."

// A process is a running program. Its output can be read while it runs.
type process struct {
	ended chan struct{} // closed when it has ended

	mu      sync.Mutex
	out     bytes.Buffer
	changed chan struct{} // closed at the next output
	cmd     *exec.Cmd
}

// start starts a program that is killed when the test ends. It sees nothing of
// the test's environment. An entry of env such as "AWS_REGION=" removes the
// variable.
func start(t testing.TB, env []string, name string, args ...string) *process {
	t.Helper()
	p := &process{ended: make(chan struct{}), changed: make(chan struct{}), cmd: exec.Command(name, args...)}
	p.cmd.Dir = root
	p.cmd.Env = []string{
		"HOME=" + t.TempDir(), // so that no real ~/.aws is read
		"PATH=" + os.Getenv("PATH"), "PYTHONDONTWRITEBYTECODE=1", "PORT=0", "AWS_EC2_METADATA_DISABLED=true",
		"DECISION_TIMEOUT=5s", // of guards serve, so that a busy machine does not look like an outage
		"AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
	}
	for _, set := range env {
		name, value, _ := strings.Cut(set, "=")
		p.cmd.Env = slices.DeleteFunc(p.cmd.Env, func(other string) bool { return strings.HasPrefix(other, name+"=") })
		if value != "" {
			p.cmd.Env = append(p.cmd.Env, set)
		}
	}
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.cmd.WaitDelay = 10 * time.Second
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // ProcessState holds the result
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.ended:
		case <-time.After(10 * time.Second):
			_ = p.cmd.Process.Kill()
			<-p.ended
		}
		if t.Failed() {
			t.Logf("%s wrote:\n%s", p.cmd, p)
		}
	})
	return p
}

// Write implements io.Writer for the process's output.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.changed)
	p.changed = make(chan struct{})
	return p.out.Write(b)
}

// String returns the output until now.
func (p *process) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

var listening = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// url waits until the process prints its URL, and returns it.
func (p *process) url(t testing.TB) string {
	t.Helper()
	url := p.printsURL(t)
	if url == "" {
		t.Fatalf("%s ended: %v", p.cmd, p.cmd.ProcessState)
	}
	return url
}

// printsURL returns an empty string if the process ends without a URL.
func (p *process) printsURL(t testing.TB) string {
	t.Helper()
	late := time.After(time.Minute)
	for {
		p.mu.Lock()
		found, changed := listening.FindString(p.out.String()), p.changed
		p.mu.Unlock()
		if found != "" {
			return found
		}
		select {
		case <-changed:
		case <-p.ended:
			return ""
		case <-late:
			t.Fatalf("%s printed no URL in a minute", p.cmd)
		}
	}
}

// tookForAnOutage reports whether an app logged an outage. A busy machine can
// look like one.
func (p *process) tookForAnOutage() bool { return strings.Contains(p.String(), "did not answer") }

// status waits until the process ends, and returns its exit status.
func (p *process) status(t testing.TB) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		t.Fatalf("%s still runs after a minute", p.cmd)
	}
	return p.cmd.ProcessState.ExitCode()
}

// serve runs guards serve and returns its URL.
func serve(t testing.TB) string {
	t.Helper()
	return start(t, nil, lambdatest.Build(t, "./cmd/guards"), "serve", "--addr", "127.0.0.1:0").url(t)
}

// A fault is what happens to requests on their way to the guards.
type fault int32

const (
	none    fault = iota
	lose          // the next answer gets lost; after it there is no fault
	away          // nobody answers: the connection breaks
	denied        // the app may not invoke the function
	unknown       // the function has another name
)

// A proxy stands between an app and guards serve.
type proxy struct {
	*httptest.Server
	fault    atomic.Int32
	requests atomic.Int64
}

func newProxy(t testing.TB, endpoint string) *proxy {
	t.Helper()
	to, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	p, through := new(proxy), httputil.NewSingleHostReverseProxy(to)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.requests.Add(1)
		switch {
		case p.fault.CompareAndSwap(int32(lose), int32(none)):
			through.ServeHTTP(httptest.NewRecorder(), r)
			<-r.Context().Done()
		case p.is(away):
			panic(http.ErrAbortHandler)
		case p.is(denied):
			w.Header().Set("X-Amzn-Errortype", "AccessDeniedException")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"Message":"User is not authorized to perform: lambda:InvokeFunction"}`)
		case p.is(unknown):
			r.URL.Path = "/2015-03-31/functions/pots-guard/invocations"
			fallthrough
		default:
			through.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *proxy) is(f fault) bool  { return fault(p.fault.Load()) == f }
func (p *proxy) set(f fault)      { p.fault.Store(int32(f)) }
func (p *proxy) endpoint() string { return "AWS_ENDPOINT_URL_LAMBDA=" + p.URL }

// ask asks posts-guard, and returns how many posts of the user are counted.
func ask(t testing.TB, endpoint, user, further string) int64 {
	t.Helper()
	event := `{"userId":"` + user + `","activity":"create_post"` + further + `}`
	response, err := http.Post(endpoint+"/2015-03-31/functions/posts-guard/invocations", "application/json", bytes.NewBufferString(event))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct{ ActivityCount *int64 }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.ActivityCount == nil {
		t.Fatalf("%s: no figures, %v", event, err)
	}
	return *answer.ActivityCount
}
