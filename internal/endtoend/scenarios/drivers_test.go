package scenarios_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
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
	{"Go", goDriver, "AWS_REGION"},
	{"TypeScript", typeScriptDriver, "AWS_REGION"},
	{"Python", pythonDriver, "AWS_DEFAULT_REGION"},
}

// asyncPython has the same functions as Python's ordinary client, but sends its
// requests in another way.
var asyncPython = client{"AsyncGuards", func(t *testing.T) []string {
	t.Helper()
	return append(pythonDriver(t), "--async")
}, "AWS_DEFAULT_REGION"}

func goDriver(t *testing.T) []string {
	t.Helper()
	return []string{lambdatest.Build(t, "./internal/endtoend/scenarios/testdata/driver")}
}

func typeScriptDriver(t *testing.T) []string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("testdata", "driver.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	return node(t, source)
}

// node returns a command that runs a program. Node looks for modules next to the
// program, so the program is in a folder with a link to the installed package. It
// finds the list of this repository's activities there, too.
func node(t testing.TB, source []byte) []string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(testkit.Package(t, "typescript", "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		testkit.Skip(t, "Node is not installed")
	}
	list := fileOf(t, filepath.Join(root, "activities", "activities.json"))
	for name, content := range map[string][]byte{
		"program.mjs": source, "activities.js": slices.Concat([]byte("export const activities = "), list), "package.json": []byte(`{"type": "module"}`),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{node, filepath.Join(dir, "program.mjs")}
}

func pythonDriver(t *testing.T) []string {
	t.Helper()
	python := testkit.Package(t, "python", filepath.Join("venv", "bin", "python"))
	program, err := filepath.Abs(filepath.Join("testdata", "driver.py"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		testkit.Skip(t, err.Error())
	}
	return []string{python, program}
}

// A driver is a running driver.
type driver struct {
	in      io.WriteCloser
	out     *bufio.Scanner
	log     *buffer
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
	d := &driver{log: new(buffer)}
	cmd.Stderr = d.log
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
			t.Logf("the driver ended with %v and wrote:\n%s", err, d.log)
		}
	})
	return d
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

// needResolver skips the test if the machine can't tell that a host does not
// exist, for example because no name server can be reached.
func needResolver(t *testing.T) {
	t.Helper()
	_, err := net.DefaultResolver.LookupHost(t.Context(), absentHost)
	if absent, ok := errors.AsType[*net.DNSError](err); !ok || !absent.IsNotFound {
		t.Skipf("the resolver does not know that %s does not exist: %v", absentHost, err)
	}
}

// do sends a command and returns its result.
func (d *driver) do(t *testing.T, command map[string]any) result {
	t.Helper()
	r, err := d.ask(command)
	if err != nil {
		t.Fatalf("%v: %v\n%s", command, err, d.log)
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

// A buffer collects what a driver logs. The test may read it at the same time.
type buffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}
