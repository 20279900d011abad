package agentd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

// nowhere has no table, so a decision is an outage, which memory decides.
var nowhere = []string{"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:1", "GUARDS_DECISION_TIMEOUT=200ms"}

// start starts the real program with these variables, as a sidecar has it.
func start(t *testing.T, env ...string) *lambdatest.Process {
	t.Helper()
	return startBinary(t, lambdatest.Build(t, "./cmd/guards-agent"), env...)
}

// startBinary is start for another binary.
func startBinary(t *testing.T, binary string, env ...string) *lambdatest.Process {
	t.Helper()
	dir := t.TempDir()
	return lambdatest.StartProcess(t, binary, dir, append([]string{"HOME=" + dir, "AWS_EC2_METADATA_DISABLED=true"}, env...))
}

// A caller asks an agent as a client does.
type caller struct {
	http    *http.Client
	address string // HOST:PORT, or unix:/PATH
	token   string
}

func newCaller(address, token string) *caller {
	network, at := "tcp", address
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, at = "unix", path
	}
	return &caller{&http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, at)
		},
	}}, address, token}
}

// ask sends an event, and returns the status and the body.
func (c *caller) ask(ctx context.Context, event string) (status int, body []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/", strings.NewReader(event))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Guards-Token", c.token)
	response, err := c.http.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.Header.Get("Guards-Agent") != "1" {
		return 0, nil, fmt.Errorf("no header Guards-Agent in %v", response.Header)
	}
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, err
}

// decide sends an event, which must be decided.
func (c *caller) decide(t *testing.T, event string) (d guards.Decision) {
	t.Helper()
	status, body, err := c.ask(t.Context(), event)
	if err != nil || status != 200 && status != 429 {
		t.Fatalf("%s: %d %s, %v", event, status, body, err)
	}
	testkit.OK(t, json.Unmarshal(body, &d))
	return d
}

// listening waits until something accepts connections.
func (c *caller) listening(t *testing.T) {
	t.Helper()
	for range 500 {
		if conn, err := c.http.Transport.(*http.Transport).DialContext(t.Context(), "", ""); err == nil {
			_ = conn.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("nobody listens on %s", c.address)
}

// health runs guards-agent health with these variables.
func health(t *testing.T, env ...string) (status int, wrote string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), lambdatest.Build(t, "./cmd/guards-agent"), "health")
	cmd.Env = append([]string{}, env...)
	var b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &b
	_ = cmd.Run() // the state has the result
	return cmd.ProcessState.ExitCode(), b.String()
}

const check = `{"userId":"canary-user-4711","activity":"create_post"}`
