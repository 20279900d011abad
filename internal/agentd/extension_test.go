package agentd_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

// extension starts an extension with these variables, and waits until it has registered.
func extension(t *testing.T, env ...string) *lambdatest.Extension {
	t.Helper()
	e := lambdatest.StartExtension(t, lambdatest.Build(t, "./cmd/guards-agent"), nil, env...)
	e.Wait(t)
	return e
}

// The agent listens before it registers, registers for SHUTDOWN alone, and asks AWS nothing
// before the first check. At SHUTDOWN it writes the last metrics and ends.
func TestAnExtension(t *testing.T) {
	t.Parallel()
	proxy, address := dynamotest.NewProxy(t), testkit.FreeAddress(t)
	env := []string{ // the app's own variables are set, too, and wrong for a guard
		"TABLE_NAME=of-the-app", "MODE=off", "POWERTOOLS_METRICS_NAMESPACE=App", "POWERTOOLS_SERVICE_NAME=app", "METRICS=off",
		"GUARDS_TABLE_NAME=" + dynamotest.Table(t), "GUARDS_DECISION_TIMEOUT=5s", "GUARDS_AGENT_ADDR=" + address, "AWS_ENDPOINT_URL_DYNAMODB=" + proxy.URL(),
	}
	c := newCaller(address, "local")
	var before string
	e := lambdatest.StartExtension(t, lambdatest.Build(t, "./cmd/guards-agent"), func() {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if before = fmt.Sprint(err); err == nil {
			_ = conn.Close()
		}
	}, env...)
	if name, events := e.Wait(t); name != "guards-agent" || !slices.Equal(events, []string{"SHUTDOWN"}) || before != "<nil>" {
		t.Errorf("it registers as %s for %v; before, a connection was %v", name, events, before)
	}
	if status, wrote := health(t, "GUARDS_AGENT_ADDR="+address); status != 0 {
		t.Errorf("health: %d %s", status, wrote)
	}
	time.Sleep(300 * time.Millisecond)
	if got := proxy.Counts(); len(got) != 0 {
		t.Errorf("before the first check it has sent %v", got)
	}
	testkit.InOneWindow(t, time.Minute, 10*time.Second)
	for n := range 11 {
		if d := c.decide(t, check); d.Allowed != (n < 10) || d.Limit != 10 {
			t.Errorf("%d: %+v", n, d)
		}
	}
	exit := e.Shutdown(t)
	if exit.Code != 0 || !strings.Contains(exit.Logs, `"Namespace":"Guards"`) || !strings.Contains(exit.Logs, `"Refused":1`) ||
		strings.Contains(exit.Logs, "canary-user") || strings.Count(exit.Logs, `"level":"INFO","message":"agent started"`) != 1 {
		t.Errorf("%d: %s", exit.Code, exit.Logs)
	}
}

// No fault of the agent ends the app's function. A check fails with the mistake.
func TestMistakesInLambda(t *testing.T) {
	t.Parallel()
	for env, want := range map[string]string{
		"GUARDS_MODE=of":                  `GUARDS_MODE is \"of\", want enforce or shadow or off`,
		"GUARDS_TABLE_NAME=a/b":           `GUARDS_TABLE_NAME is \"a/b\", want`,
		"GUARDS_AGENT_TOKEN=local":        "GUARDS_AGENT_TOKEN is the word that clients without a token send",
		"GUARDS_AGENT_SOCKET_MODE=7777":   `GUARDS_AGENT_SOCKET_MODE is \"7777\"`,
		"AWS_REGION= AWS_DEFAULT_REGION=": "no AWS region is set",
	} {
		address := testkit.FreeAddress(t)
		e := extension(t, append(strings.Fields(env), "GUARDS_AGENT_ADDR="+address)...)
		status, body, err := newCaller(address, "local").ask(t.Context(), check)
		if err != nil || status != 500 || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d %s, %v, want %s", env, status, body, err, want)
		}
		if status, wrote := health(t, "GUARDS_AGENT_ADDR="+address); status != 1 || !strings.Contains(wrote, "the agent answers 503: ") {
			t.Errorf("health: %d %s", status, wrote)
		}
		if log := e.Logs(); !e.Alive() || strings.Count(log, "\n") != 1 || !strings.Contains(log, `"level":"ERROR"`) {
			t.Errorf("%s: %s", env, log)
		}
	}
}

// If it can't listen, it writes one line, registers and waits.
func TestATakenPortInLambda(t *testing.T) {
	t.Parallel()
	address := testkit.FreeAddress(t)
	l := testkit.Must(new(net.ListenConfig).Listen(t.Context(), "tcp", address))(t)
	defer func() { _ = l.Close() }()
	e := extension(t, "GUARDS_AGENT_ADDR="+address)
	if log := e.Logs(); strings.Count(log, "\n") != 1 || !strings.Contains(log, `"level":"ERROR","message":"the app gets no answer","service":"guards-agent","error":"the agent can't listen on GUARDS_AGENT_ADDR, `+address) {
		t.Error(log)
	}
	if exit := e.Shutdown(t); exit.Code != 0 {
		t.Errorf("%d: %s", exit.Code, exit.Logs)
	}
}

// A function and its agent run under AWS's own runtime emulator. The test needs root on Linux,
// because the emulator looks for extensions in /opt alone.
func TestUnderTheRuntimeEmulator(t *testing.T) {
	testkit.Clients.Need(t)
	if os.Getuid() != 0 {
		t.Skip("only root can put an extension into /opt of a process")
	}
	emulator := testkit.RuntimeEmulator(t)
	endpoint, table := dynamotest.Endpoint(t), dynamotest.Table(t)
	opt := t.TempDir()
	program := testkit.Must(os.ReadFile(lambdatest.Build(t, "./cmd/guards-agent")))(t)
	testkit.OK(t, os.Mkdir(filepath.Join(opt, "extensions"), 0o755))
	testkit.OK(t, os.WriteFile(filepath.Join(opt, "extensions", "guards-agent"), program, 0o755))
	app := lambdatest.Build(t, "./internal/agentd/testdata/app")
	for setting, want := range map[string][]string{
		"GUARDS_METRICS=activity": {`"allowed":true`, `"allowed":false,"reason":"limited"`}, // on a slow machine, a second attempt finds the first one
		"GUARDS_MODE=of":          {`GUARDS_MODE is`, `GUARDS_MODE is`},                     // the function lives
	} {
		address, agent := testkit.FreeAddress(t), testkit.FreeAddress(t)
		var log testkit.Stream
		cmd := exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", `mount --bind "$0" /opt && exec "$@"`, opt, emulator, "--runtime-interface-emulator-address", address, app)
		cmd.Env = append(os.Environ(), "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=t", "AWS_SECRET_ACCESS_KEY=t", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=512",
			"AWS_ENDPOINT_URL_DYNAMODB="+endpoint, "GUARDS_TABLE_NAME="+table, "GUARDS_DECISION_TIMEOUT=5s", "GUARDS_AGENT_ADDR="+agent, "GUARDS_AGENT=http://"+agent, setting)
		cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &log, &log, 5*time.Second
		testkit.OK(t, cmd.Start())
		newCaller(address, "").listening(t)
		for _, part := range want {
			if got := invoke(t, address); !strings.Contains(got, part) {
				t.Errorf("%s: %s, want %s", setting, got, part)
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		if got := log.String(); !strings.Contains(got, "guards-agent") || !strings.Contains(got, "subscribed to [SHUTDOWN]") {
			t.Errorf("%s: %s", setting, got)
		}
	}
}

// invoke invokes the emulator's function.
func invoke(t *testing.T, address string) string {
	t.Helper()
	return testkit.Send(t, http.MethodPost, "http://"+address+"/2015-03-31/functions/function/invocations", `"u1"`).Text
}
