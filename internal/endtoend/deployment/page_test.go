//go:build unix

package deployment_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
)

// A newcomer has the files of a release in an empty folder, and the programs of their app. None of these is Go.
type newcomer struct {
	dir string
	env []string
}

// The files of a release are enough for a refusal by the command, by guards serve, by a stack on the emulator, and by the agent
// beside that stack. PATH has no other programs than those that newNewcomer lists.
func TestAProjectWithoutGoIsDeployed(t *testing.T) {
	if os.Getenv("RECORDER_ADDRESS") == "" {
		t.Skip("make deployment runs this test, which needs the emulator and the packages of the clients")
	}
	t.Parallel()
	n := newNewcomer(t, release(t))
	n.wants(t, 0, `^$`, "! command -v go")
	n.wants(t, 0, ``, "mkdir bin app && mv app.* app && tar -xzf guards_0.1.0_*.tar.gz --strip-components=1 -C bin")
	n.wants(t, 0, `^guards v0\.1\.0 \(commit `, "guards version")
	n.wants(t, 0, `next: cd my-guards && guards check upload_photo --user u1 --times 6`,
		"guards init my-guards --page json --guard photos-guard --activity upload_photo --limit 'log 5/1h'")
	n.wants(t, 1, `6 +refused +5/5 used`, "cd my-guards && guards check upload_photo --user u1 --times 6")
	n.wants(t, 0, `nothing is stale`, "cd my-guards && make test")
	n.wants(t, 0, ``, "cd app && npm install --silent --offline --no-audit --no-fund ../*.tgz")
	n.wants(t, 0, ``, "cd app && python3 -m venv python && python/bin/pip install --quiet --disable-pip-version-check --no-index ../*.whl")

	const full = "(allowed ){5}limited"
	serve := n.start(t, `console for development is at (http://\S+)/;`, "cd my-guards && exec guards serve --addr 127.0.0.1:0")
	n.asks(t, full, "u1", "AWS_ENDPOINT_URL_LAMBDA="+serve)

	archive := "ARCHIVE=file://" + n.dir + "/guards_0.1.0_generic.zip"
	n.wants(t, 0, `Build Succeeded`, "cd my-guards && make dist "+archive+" && sam build")
	n.fetched(t, "emulator", "venv")
	stack := n.start(t, `export AWS_ENDPOINT_URL=(\S+)`, "cd my-guards && KEEP=1 exec make deploy-local "+archive)
	n.asks(t, full, "u2", "AWS_ENDPOINT_URL_LAMBDA="+stack)

	agent := "dist/agent-" + runtime.GOARCH + "/extensions/guards-agent"
	n.wants(t, 0, `^guards-agent v0\.1\.0\n$`, "cd my-guards && "+agent+" version")
	address := n.start(t, `"address":"(\S+?)"`, "cd my-guards && GUARDS_PAGE=limits.json GUARDS_AGENT_ADDR=127.0.0.1:0 GUARDS_DECISION_TIMEOUT=5s AWS_ENDPOINT_URL="+stack+" exec "+agent)
	n.wants(t, 0, `"version":"v0\.1\.0"`, "curl -fsS http://"+address+"/health")
	n.wants(t, 0, `"op":"status".*"version":"v0\.1\.0"`, "curl -fsS -H 'Guards-Token: local' -H 'Content-Type: application/json' http://"+address+
		` -d '{"userId": "u2", "activity": "upload_photo", "op": "status"}'`)
	n.asks(t, full, "u3", "GUARDS_AGENT=http://"+address)
	n.asks(t, "(limited ){5}limited", "u2", "GUARDS_AGENT=http://"+address) // the guard and the agent count in the same items
}

// release builds the files of a release from a copy of this checkout with a tag, and returns their folder.
func release(t *testing.T) string {
	t.Helper()
	source := testkit.Copy(t)
	for _, command := range []string{
		"git init --quiet && git add . && git -c user.name=test -c user.email=test@localhost commit --quiet --message=test && git tag v0.1.0",
		"make --silent -j2 generic GENERIC_VCS=true",
		"go run ./internal/endtoend/deployment/testdata/release",
	} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
		cmd.Dir = source
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
	return filepath.Join(source, "dist", "release")
}

// newNewcomer copies the files of a release, and the packages of the clients, into an empty folder.
func newNewcomer(t *testing.T, release string) newcomer {
	t.Helper()
	n := newcomer{dir: t.TempDir()}
	root := testkit.Must(testkit.Root())(t)
	packages := filepath.Join(root, ".cache", "packages")
	for _, pattern := range []string{release + "/*", packages + "/typescript/*.tgz", packages + "/python/*.whl", "testdata/app.*"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no file is like %s, %v", pattern, err)
		}
		for _, file := range files {
			testkit.OK(t, os.WriteFile(filepath.Join(n.dir, filepath.Base(file)), testkit.Must(os.ReadFile(file))(t), 0o600))
		}
	}
	tools := t.TempDir()
	for name := range strings.FieldsSeq("bash cat cp curl dirname env grep gzip head make mkdir mktemp mv node npm rm sed seq sh sleep sort tail tar touch tr uname uniq unzip python3") {
		file, err := exec.LookPath(name)
		if name == "python3" { // what is found first can be a script that needs more programs
			var out []byte
			out, err = exec.CommandContext(t.Context(), name, "-c", "import sys; print(getattr(sys, '_base_executable', sys.executable))").Output()
			file = strings.TrimSpace(string(out))
		}
		testkit.OK(t, err)
		testkit.OK(t, os.WriteFile(filepath.Join(tools, name), []byte("#!/bin/sh\nexec '"+file+"' \"$@\"\n"), 0o700))
	}
	testkit.OK(t, os.Symlink(filepath.Join(root, ".cache", "venv", "bin", "sam"), filepath.Join(tools, "sam")))
	n.env = []string{
		"PATH=" + filepath.Join(n.dir, "bin") + ":" + tools, "HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir(), "SAM_CLI_TELEMETRY=0",
		"AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
	}
	return n
}

// fetched gives the project what make deploy-local would fetch: the emulator and SAM of this checkout. It also gives the functions
// more time for a decision, because one small machine starts all of them.
func (n newcomer) fetched(t *testing.T, names ...string) {
	t.Helper()
	root := testkit.Must(testkit.Root())(t)
	for _, name := range names {
		testkit.OK(t, os.Symlink(filepath.Join(root, ".cache", name), filepath.Join(n.dir, "my-guards", ".cache", name)))
	}
	settings := filepath.Join(n.dir, "my-guards", "samconfig.toml")
	text := testkit.Must(os.ReadFile(settings))(t)
	testkit.OK(t, os.WriteFile(settings, append(text, "parameter_overrides = \"DecisionTimeout=5s\"\n"...), 0o600))
}

func (n newcomer) command(t *testing.T, line string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", line)
	cmd.Dir, cmd.Env = n.dir, slices.Concat(n.env, env)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// wants runs a command that must end with this status and print this.
func (n newcomer) wants(t *testing.T, status int, pattern, line string, env ...string) {
	t.Helper()
	cmd := n.command(t, line, env...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != status || !regexp.MustCompile(pattern).Match(out) {
		t.Fatalf("%s: %v, want the status %d, and a line like %s:\n%s", line, err, status, pattern, out)
	}
}

// asks runs the app in both languages. It asks for six uploads each of two users.
func (n newcomer) asks(t *testing.T, answers, user, at string) {
	t.Helper()
	n.wants(t, 0, "^"+answers+"\n$", "cd my-guards && node ../app/app.mjs "+user, at)
	n.wants(t, 0, "^"+answers+"\n$", "cd my-guards && PYTHONPATH=activities ../app/python/bin/python ../app/app.py "+user+"py", at)
}

// start starts a command, which runs until the test ends. It returns what the first group of the pattern finds in the output.
func (n newcomer) start(t *testing.T, pattern, line string) string {
	t.Helper()
	cmd := n.command(t, line)
	out := testkit.Must(cmd.StdoutPipe())(t)
	cmd.Stderr = cmd.Stdout
	testkit.OK(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Cancel()
		_ = cmd.Wait()
	})
	var printed strings.Builder
	found, lines := regexp.MustCompile(pattern), bufio.NewScanner(out)
	for lines.Scan() {
		if match := found.FindStringSubmatch(lines.Text()); match != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }() // so that it never waits for a reader
			return match[1]
		}
		printed.WriteString(lines.Text() + "\n")
	}
	t.Fatalf("%s ended without a line like %s:\n%s", line, pattern, &printed)
	return ""
}
