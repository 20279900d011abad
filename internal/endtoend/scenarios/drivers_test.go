package scenarios_test

import (
	"bufio"
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
	"strings"
	"testing"
	"time"

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
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }() // the process has its own descriptor
	d := &driver{log: log.Name()}
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if d.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	d.out = bufio.NewScanner(out)
	d.out.Buffer(nil, 4<<20)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
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
