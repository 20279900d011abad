package scenarios_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/agentd"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

// A client is one of the clients, with the program that drives it.
type client struct {
	name           string
	command        func(t *testing.T) []string // starts the driver
	regionVariable string                      // the one that its SDK reads
}

var clients = []client{
	{"Go", func(t *testing.T) []string {
		t.Helper()
		return []string{lambdatest.Build(t, "./internal/endtoend/scenarios/testdata/driver")}
	}, "AWS_REGION"},
	{"TypeScript", byScript("mjs"), "AWS_REGION"},
	{"Python", byScript("py"), "AWS_DEFAULT_REGION"},
}

// asyncPython has the same functions as Python's ordinary client, but sends its
// requests in another way.
var asyncPython = client{"AsyncGuards", byScript("py", "--async"), "AWS_DEFAULT_REGION"}

func byScript(language string, args ...string) func(t *testing.T) []string {
	return func(t *testing.T) []string {
		t.Helper()
		return append(app(t, language, fileOf(t, filepath.Join("testdata", "driver."+language))), args...)
	}
}

// A driver is a running driver.
type driver struct {
	in      io.WriteCloser
	out     *bufio.Scanner
	log     string // the file that it logs to
	process *os.Process
	killed  bool // by the test
}

// A result is what a driver prints for a command.
type result struct {
	OK      bool
	Answer  map[string]any
	Error   *struct{ Class, Message string }
	Results []result
	Ms      int64
}

// environment returns the variables of a program that reaches Lambda at
// endpoint.
func environment(t testing.TB, endpoint string) map[string]string {
	t.Helper()
	return map[string]string{
		"HOME": t.TempDir(), "PATH": "/usr/bin:/bin", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_REGION": region, "AWS_DEFAULT_REGION": region, "AWS_ENDPOINT_URL_LAMBDA": endpoint,
		"AWS_ACCESS_KEY_ID": credentials.AccessKeyID, "AWS_SECRET_ACCESS_KEY": credentials.SecretAccessKey,
	}
}

// start starts a driver that reaches Lambda at endpoint. It sees nothing of the
// test's environment.
func (c client) start(t *testing.T, endpoint string, changes map[string]string) *driver {
	t.Helper()
	run := c.command(t)
	cmd := exec.Command(run[0], run[1:]...)
	variables := environment(t, endpoint)
	maps.Copy(variables, changes)
	for name, value := range variables {
		if source, ok := strings.CutPrefix(value, fromSource); ok {
			value = endpoint + "/credentials/" + source
		}
		if value == untrusted {
			value = withUnknownCertificate(t)
		}
		if value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	log := testkit.Must(os.Create(filepath.Join(t.TempDir(), "log")))(t)
	defer func() { _ = log.Close() }() // the process has its own descriptor
	d := &driver{log: log.Name()}
	cmd.Stderr = log
	d.in = testkit.Must(cmd.StdinPipe())(t)
	d.out = bufio.NewScanner(testkit.Must(cmd.StdoutPipe())(t))
	d.out.Buffer(nil, 4<<20)
	testkit.OK(t, cmd.Start())
	d.process = cmd.Process
	t.Cleanup(func() {
		_ = d.in.Close() // ends the driver
		if err := cmd.Wait(); (err != nil || t.Failed()) && !d.killed {
			t.Logf("the driver ended with %v and wrote:\n%s", err, d.logged())
		}
	})
	return d
}

// logged returns what the driver has logged.
func (d *driver) logged() string {
	text, err := os.ReadFile(d.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// untrusted, as the value of a variable, is the URL of a server with a
// certificate that no client trusts.
const untrusted = "untrusted"

func withUnknownCertificate(t *testing.T) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // every handshake fails
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

// absentHost is the name of no host: .invalid is reserved for such names.
const absentHost = "lambda.us-eest-1.invalid"

// do sends a command and returns its result.
func (d *driver) do(t *testing.T, command map[string]any) result {
	t.Helper()
	r, err := d.ask(command)
	if err != nil {
		t.Fatalf("%v: %v\n%s", command, err, d.logged())
	}
	return r
}

// ask sends a command and returns its result. A driver that was killed gives none.
func (d *driver) ask(command map[string]any) (r result, err error) {
	line, err := json.Marshal(command)
	if err != nil {
		return r, err
	}
	if _, err := d.in.Write(append(line, '\n')); err != nil {
		return r, err
	}
	late := time.AfterFunc(5*time.Minute, func() { _ = d.process.Kill() })
	defer late.Stop()
	if !d.out.Scan() {
		return r, fmt.Errorf("the driver gives no result: %w", d.out.Err())
	}
	if err := json.Unmarshal(d.out.Bytes(), &r); err != nil {
		return r, fmt.Errorf("%w in %s", err, d.out.Text())
	}
	return r, nil
}

// A yard is Lambda, and an agent at the same address, with guards that this repository's
// limits don't have: each has slots, something to settle, and something without a limit. A
// test calls each by the name of its own choice, and each has its own table.
type yard struct {
	url string

	mu    sync.Mutex
	posts map[string]*post
}

// A post is one guard of a yard.
type post struct {
	store   *memstore.Store
	mode    string
	fault   func(op string, n int) loss // of the nth request with this op, from 1; nil: none
	handler *guard.Handler
	agent   agentd.Handler
	ops     []string // that arrived
	left    int64    // what counted after the last release; -1 before
}

// A loss is what gets lost of a request.
type loss int

const (
	nothing loss = iota
	reply        // the guard decides, and the connection breaks before its answer
	all          // the connection breaks before the guard has the request
	slots        // u1's slots: the guard forgets them before it decides
)

func openYard(t testing.TB) *yard {
	t.Helper()
	y := &yard{posts: map[string]*post{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /2015-03-31/functions/{name}/invocations", y.serve)
	mux.HandleFunc("POST /{name}", func(w http.ResponseWriter, r *http.Request) {
		y.mu.Lock()
		p := y.posts[r.PathValue("name")]
		y.mu.Unlock()
		p.agent.ServeHTTP(w, r)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	y.url = server.URL
	return y
}

// post adds a guard.
func (y *yard) post(name string, p *post) *post {
	y.mu.Lock()
	defer y.mu.Unlock()
	p.store, p.left = new(memstore.Store), -1
	p.restart()
	p.agent.Add(limits.Guard{Name: name}, sentry{y, name})
	y.posts[name] = p
	return p
}

// A sentry is the guard of a name as an agent asks it.
type sentry struct {
	yard *yard
	name string
}

// Respond implements agentd.Guard.
func (s sentry) Respond(ctx context.Context, body []byte) (r guard.Response) {
	s.yard.decide(ctx, s.name, body, func(h *guard.Handler) []byte {
		r = h.Respond(ctx, body)
		return r.Body
	})
	return r
}

// restart makes a new instance of the guard, which knows nothing but its table.
func (p *post) restart() {
	p.handler = &guard.Handler{
		Guard: limits.Guard{Name: "yard-guard", Message: tooMany, Activities: []limits.Activity{
			{Name: "export", Limit: policy.Must("log 3/6s")},
			{Name: "complete", Limit: policy.Must("100000/1d"), Hold: true},
			{Name: "record", Limit: policy.Must("100/1d"), Subjects: []limits.Subject{{Name: "room", Limit: policy.Must("log 3/6s")}}},
			{Name: "view", Unlimited: true},
		}},
		Mode: p.mode, BypassRoles: []string{"admin"}, Limiter: &ratelimit.Limiter{Store: p.store, Memory: ratelimit.NewMemory(1 << 20)},
	}
}

// serve serves Lambda's Invoke API.
func (y *yard) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client gave up
	}
	answer := y.decide(r.Context(), r.PathValue("name"), body, func(h *guard.Handler) (answer []byte) {
		answer, err = h.Invoke(r.Context(), body)
		return answer
	})
	if err != nil {
		w.Header().Set("X-Amz-Function-Error", "Unhandled")
		answer, _ = json.Marshal(map[string]string{"errorType": "ValidationError", "errorMessage": err.Error()})
	}
	_, _ = w.Write(answer)
}

// decide notes a request to the guard of a name and lets it decide by ask, which returns the
// decision as JSON. It closes the connection if something gets lost.
func (y *yard) decide(ctx context.Context, name string, body []byte, ask func(*guard.Handler) []byte) []byte {
	var q request
	_ = json.Unmarshal(body, &q) // the guard names the mistake
	y.mu.Lock()
	p := y.posts[name]
	p.ops = append(p.ops, q.Op)
	handler, lost := p.handler, nothing
	if p.fault != nil {
		n := len(slices.DeleteFunc(slices.Clone(p.ops), func(op string) bool { return op != q.Op }))
		lost = p.fault(q.Op, n)
	}
	y.mu.Unlock()
	if lost == all {
		panic(http.ErrAbortHandler)
	}
	if lost == slots {
		if _, err := handler.Invoke(ctx, []byte(`{"userId":"u1","activity":"export","op":"reset"}`)); err != nil {
			panic(err)
		}
	}
	answer := ask(handler)
	var a struct{ ActivityCount int64 }
	if q.Op == "release" && json.Unmarshal(answer, &a) == nil {
		y.mu.Lock()
		p.left = a.ActivityCount
		y.mu.Unlock()
	}
	if lost == reply {
		panic(http.ErrAbortHandler)
	}
	return answer
}

// asked returns the requests that arrived at a guard, and what counted after the last
// release; -1 if there was none.
func (y *yard) asked(name string) (ops string, left int64) {
	y.mu.Lock()
	defer y.mu.Unlock()
	return strings.Join(y.posts[name].ops, " "), y.posts[name].left
}

// used returns how many slots of u1 count.
func (p *post) used(t testing.TB) int64 {
	t.Helper()
	return testkit.Must(p.handler.Decide(t.Context(), guard.Request{UserID: "u1", Activity: "export", Op: guards.Status}))(t).Decision.Used
}
