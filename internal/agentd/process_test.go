package agentd_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// One line of log at the start, none for an allowed action, and neither the token nor a user in
// what the program writes.
func TestTheProgram(t *testing.T) {
	t.Parallel()
	address := testkit.FreeAddress(t)
	p := start(t, append(nowhere, "GUARDS_AGENT_ADDR="+address, "GUARDS_AGENT_TOKEN=s3cret-token", "GUARDS_METRICS=off", "TABLE_NAME=a b", "MODE=of")...)
	c := newCaller(address, "s3cret-token")
	c.listening(t)
	if d := c.decide(t, check); !d.Allowed || d.Reason != guards.Unavailable {
		t.Errorf("%+v", d)
	}
	if status, body, err := newCaller(address, "local").ask(t.Context(), check); status != 403 || strings.Contains(string(body), "s3cret") {
		t.Errorf("%d %s, %v", status, body, err)
	}
	if status, wrote := health(t, "GUARDS_AGENT_ADDR="+address, "GUARDS_AGENT_TOKEN=s3cret-token"); status != 0 || wrote != "" {
		t.Errorf("health: %d %s", status, wrote)
	}
	p.Signal(t, syscall.SIGINT)
	exit := p.Exit(t)
	lines := strings.Split(strings.TrimSpace(exit.Logs), "\n")
	if exit.Code != 0 || !strings.Contains(lines[0], `"message":"agent started","service":"guards-agent","address":"`+address+`","guards":8`) {
		t.Errorf("%+v", exit)
	}
	for _, line := range lines[1:] {
		if !strings.Contains(line, `"level":"WARN"`) { // of the outage
			t.Errorf("a line too many: %s", line)
		}
	}
	if strings.Contains(exit.Logs, "s3cret") || strings.Contains(exit.Logs, "canary-user") {
		t.Errorf("a secret in the log: %s", exit.Logs)
	}
	if status, wrote := health(t, "GUARDS_AGENT_ADDR="+address); status != 1 || !strings.HasPrefix(wrote, "guards-agent: no agent answers on "+address) {
		t.Errorf("health of nothing: %d %s", status, wrote)
	}
}

// What is no request that a handler could get, net/http answers itself. None of its answers has
// the mark, and none is a success, so a client lets nobody through.
func TestWhatTheServerItselfAnswers(t *testing.T) {
	t.Parallel()
	address := testkit.FreeAddress(t)
	start(t, append(nowhere, "GUARDS_AGENT_ADDR="+address)...)
	newCaller(address, "").listening(t)
	post := func(header string) string {
		return "POST / HTTP/1.1\r\n" + header + "\r\nContent-Type: application/json\r\nGuards-Token: local\r\nContent-Length: " + strconv.Itoa(len(check)) + "\r\n\r\n" + check
	}
	for name, tt := range map[string]struct {
		request string
		status  int
		mark    string
	}{
		"no HTTP":             {"HELO\r\n\r\n", 400, ""},
		"no Host":             {post("Connection: close"), 400, ""},
		"two lengths":         {post("Host: localhost\r\nContent-Length: 1"), 400, ""},
		"a long header":       {post("Host: localhost\r\nX: " + strings.Repeat("x", 64<<10)), 431, ""},
		"an unknown Expect":   {post("Host: localhost\r\nExpect: luck"), 417, ""},
		"an unknown encoding": {post("Host: localhost\r\nTransfer-Encoding: luck"), 501, ""},
		"HTTP/3.0":            {"GET /health HTTP/3.0\r\nHost: localhost\r\n\r\n", 505, ""},
		"OPTIONS *":           {"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, "1"},
		"an event":            {post("Host: localhost"), 200, "1"},
	} {
		conn := testkit.Must(new(net.Dialer).DialContext(t.Context(), "tcp", address))(t)
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		_, _ = io.WriteString(conn, tt.request) // the server may close the connection before its end
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := response.Header.Get("Guards-Agent"); response.StatusCode != tt.status || got != tt.mark {
			t.Errorf("%s: %d with the mark %q, want %d with %q", name, response.StatusCode, got, tt.status, tt.mark)
		}
		_ = response.Body.Close()
		_ = conn.Close()
	}
}

// Outside Lambda, each mistake ends the program with status 1, all of them together.
func TestMistakesEndTheProgram(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	testkit.OK(t, os.WriteFile(file, nil, 0o600))
	taken := testkit.FreeAddress(t)
	l := testkit.Must(new(net.ListenConfig).Listen(t.Context(), "tcp", taken))(t)
	defer func() { _ = l.Close() }()
	for env, want := range map[string]string{
		"GUARDS_AGENT_ADDR=0.0.0.0:2774":       `guards-agent: GUARDS_AGENT_ADDR is "0.0.0.0:2774", which other machines can reach: set GUARDS_AGENT_TOKEN`,
		"GUARDS_AGENT_ADDR=:2774":              `guards-agent: GUARDS_AGENT_ADDR is ":2774", which other machines can reach: set GUARDS_AGENT_TOKEN`,
		"GUARDS_AGENT_ADDR=agent:2774":         `guards-agent: GUARDS_AGENT_ADDR is "agent:2774", which other machines can reach`,
		"GUARDS_AGENT_ADDR=127.0.0.1":          `guards-agent: GUARDS_AGENT_ADDR is "127.0.0.1", want HOST:PORT`,
		"GUARDS_AGENT_ADDR=127.0.0.1:99999":    `guards-agent: GUARDS_AGENT_ADDR is "127.0.0.1:99999", want HOST:PORT`,
		"GUARDS_AGENT_ADDR=unix:agent.sock":    `guards-agent: GUARDS_AGENT_ADDR is "unix:agent.sock", want the absolute path`,
		"GUARDS_AGENT_ADDR=unix:" + file:       "guards-agent: the agent can't listen on GUARDS_AGENT_ADDR, unix:" + file + ": " + file + " is a file and no socket",
		"GUARDS_AGENT_ADDR=" + taken:           "guards-agent: the agent can't listen on GUARDS_AGENT_ADDR, " + taken + ": listen tcp",
		"GUARDS_AGENT_TOKEN=a b":               "guards-agent: GUARDS_AGENT_TOKEN has a character that a header can't carry",
		"GUARDS_AGENT_TOKEN=local":             "guards-agent: GUARDS_AGENT_TOKEN is the word that clients without a token send",
		"GUARDS_AGENT_SOCKET_MODE=rw":          `guards-agent: GUARDS_AGENT_SOCKET_MODE is "rw", want an octal mode such as 0660`,
		"GUARDS_MODE=of GUARDS_TABLE_NAME=a/b": `guards-agent: GUARDS_MODE is "of", want enforce or shadow or off` + "\n" + `guards-agent: GUARDS_TABLE_NAME is "a/b", want`,
		"GUARDS_DECISION_TIMEOUT=6s":           `guards-agent: GUARDS_DECISION_TIMEOUT is "6s", want`,
		"AWS_REGION=":                          "guards-agent: no AWS region is set: set AWS_REGION",
	} {
		entries := append(append([]string{}, nowhere...), "GUARDS_AGENT_ADDR=127.0.0.1:0")
		fields := strings.Fields(env)
		if strings.HasSuffix(env, "a b") { // one entry with a space
			fields = []string{env}
		}
		exit := start(t, append(entries, fields...)...).Exit(t)
		if exit.Code != 1 || !strings.HasPrefix(exit.Logs, want) {
			t.Errorf("%s: %+v, want %s", env, exit, want)
		}
	}
}

// An agent replaces a socket if nobody answers on it, and no other file. The socket's mode is the
// one that is set, whatever the umask is.
func TestSockets(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agent.sock")
	env := slices.Concat(nowhere, []string{"GUARDS_AGENT_ADDR=unix:" + path, "GUARDS_METRICS=off"})
	c := newCaller("unix:"+path, "local")
	first := start(t, env...)
	c.listening(t)
	if at, err := os.Lstat(path); err != nil || at.Mode() != os.ModeSocket|0o600 {
		t.Errorf("%v, %v, want a socket of 0600", at.Mode(), err)
	}
	if d := c.decide(t, check); d.Reason != guards.Unavailable {
		t.Errorf("%+v", d)
	}
	if exit := start(t, env...).Exit(t); exit.Code != 1 || !strings.Contains(exit.Logs, "another program answers on "+path) {
		t.Errorf("a second agent: %+v", exit)
	}
	first.Signal(t, syscall.SIGKILL)
	first.Exit(t)
	second := start(t, append(env, "GUARDS_AGENT_SOCKET_MODE=0660")...)
	c.listening(t)
	if at, err := os.Lstat(path); err != nil || at.Mode() != os.ModeSocket|0o660 {
		t.Errorf("%v, %v, want a socket of 0660", at.Mode(), err)
	}
	if status, wrote := health(t, "GUARDS_AGENT_ADDR=unix:"+path); status != 0 {
		t.Errorf("health: %d %s", status, wrote)
	}
	c.http.CloseIdleConnections()
	second.Signal(t, syscall.SIGINT)
	second.Exit(t)
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the end: %v, want no file", err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// SIGTERM comes to the app and to its agent. 200 requests are under way then, and the app goes
// on for a while. All are answered. The agent ends two seconds after the last one.
func TestTheEnd(t *testing.T) {
	t.Parallel()
	proxy, table := dynamotest.NewProxy(t), dynamotest.Table(t)
	address := testkit.FreeAddress(t)
	p := start(t, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_ENDPOINT_URL_DYNAMODB="+proxy.URL(),
		"GUARDS_TABLE_NAME="+table, "GUARDS_DECISION_TIMEOUT=5s", "GUARDS_AGENT_ADDR="+address, "GUARDS_METRICS_NAMESPACE=Mine")
	c := newCaller(address, "local")
	c.listening(t)
	proxy.Do(func(string) dynamotest.Fault { time.Sleep(200 * time.Millisecond); return dynamotest.Pass })
	var lost, answered atomic.Int64
	ask := func() {
		if status, _, err := c.ask(t.Context(), check); err != nil || status != 200 && status != 429 {
			lost.Add(1)
			t.Errorf("%d, %v", status, err)
			return
		}
		answered.Add(1)
	}
	var all sync.WaitGroup
	for range 200 {
		all.Go(ask)
	}
	time.Sleep(100 * time.Millisecond)
	p.Signal(t, syscall.SIGTERM)
	all.Wait()
	for range 6 { // the app drains, with pauses below two seconds
		time.Sleep(time.Second)
		ask()
	}
	ended := time.Now()
	exit := p.Exit(t)
	took := time.Since(ended)
	if exit.Code != 0 || lost.Load() != 0 || answered.Load() != 206 || took < 1500*time.Millisecond || took > 10*time.Second {
		t.Errorf("%d: %d answers, %d lost; it ended after %v", exit.Code, answered.Load(), lost.Load(), took)
	}
	if !strings.Contains(exit.Logs, `"Namespace":"Mine"`) || !strings.Contains(exit.Logs, `"Guard":"posts-guard"`) {
		t.Errorf("no metrics in %s", exit.Logs)
	}
}

// A request that never ends costs no metrics: the agent writes the last ones anyway.
func TestTheEndWithARequestThatNeverEnds(t *testing.T) {
	t.Parallel()
	address := testkit.FreeAddress(t)
	p := start(t, append(nowhere, "GUARDS_AGENT_ADDR="+address)...)
	c := newCaller(address, "local")
	c.listening(t)
	for range 2 { // the metrics of the first decision are written at once, and those of the second one wait
		c.decide(t, `{"userId": "u1", "activity": "create_post", "roles": ["admin"]}`) // needs no table
	}
	conn := testkit.Must(net.Dial("tcp", address))(t)
	defer func() { _ = conn.Close() }()
	testkit.Must(io.WriteString(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nGuards-Token: local\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"))(t)
	time.Sleep(100 * time.Millisecond)
	p.Signal(t, syscall.SIGINT)
	if log := p.Exit(t).Logs; strings.Count(log, `"Bypassed":1`) != 2 {
		t.Errorf("not all metrics are in %s", log)
	}
}
