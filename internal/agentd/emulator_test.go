package agentd_test

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

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
	program, err := os.ReadFile(lambdatest.Build(t, "./cmd/guards-agent"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(opt, "extensions"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(opt, "extensions", "guards-agent"), program, 0o755); err != nil {
		t.Fatal(err)
	}
	app := lambdatest.Build(t, "./internal/agentd/testdata/app")
	for setting, want := range map[string][]string{
		"GUARDS_METRICS=activity": {`"allowed":true,"reason":"ok"`, `"allowed":false,"reason":"limited"`},
		"GUARDS_MODE=of":          {`GUARDS_MODE is`, `GUARDS_MODE is`}, // the function lives
	} {
		address, agent := testkit.FreeAddress(t), testkit.FreeAddress(t)
		var log lines
		cmd := exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", `mount --bind "$0" /opt && exec "$@"`, opt, emulator, "--runtime-interface-emulator-address", address, app)
		cmd.Env = append(os.Environ(), "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=t", "AWS_SECRET_ACCESS_KEY=t", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=512",
			"AWS_ENDPOINT_URL_DYNAMODB="+endpoint, "GUARDS_TABLE_NAME="+table, "GUARDS_DECISION_TIMEOUT=5s", "GUARDS_AGENT_ADDR="+agent, "GUARDS_AGENT=http://"+agent, setting)
		cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &log, &log, 5*time.Second
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
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
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/2015-03-31/functions/function/invocations", strings.NewReader(`"u1"`))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
