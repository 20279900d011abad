//go:build unix

package bench_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

// Servers answer the apps. Each has a process of its own, so that the CPU of an app is its own alone.
type servers struct {
	table         string // of the guards; it answers at once, or late
	serve         string // guards serve, which answers for Lambda
	agent, socket string // agents
	dynamo        *dynamotest.Proxy
	name          string // the table of other libraries, behind dynamo
	late          atomic.Int64
}

// startServers starts the guards that answer for Lambda and two agents. Their table, as the
// limiter's, is bench/table. Other libraries ask DynamoDB Local.
func startServers(t *testing.T) *servers {
	t.Helper()
	at := &servers{table: quickTable(t), dynamo: dynamotest.NewProxy(t), name: dynamotest.Table(t)}
	at.dynamo.Do(func(string) dynamotest.Fault {
		time.Sleep(time.Duration(at.late.Load()))
		return dynamotest.Pass
	})
	at.agent, at.socket = testkit.FreeAddress(t), filepath.Join(t.TempDir(), "agent.sock")
	agent, serve := lambdatest.Build(t, "./cmd/guards-agent"), testkit.FreeAddress(t)
	variables := func(more ...string) []string {
		return slices.Concat(environment(t), []string{"AWS_ENDPOINT_URL_DYNAMODB=" + at.table}, more)
	}
	serveBeside(t, "tcp", at.agent, variables("GUARDS_AGENT_ADDR="+at.agent), agent)
	serveBeside(t, "unix", at.socket, variables("GUARDS_AGENT_ADDR=unix:"+at.socket), agent)
	serveBeside(t, "tcp", serve, variables(), lambdatest.Build(t, "./cmd/guards"), "serve", "--store=dynamodb", "--addr="+serve)
	at.serve, at.agent, at.socket = "http://"+serve, "http://"+at.agent, "unix:"+at.socket
	return at
}

// answerLate makes both tables answer so much later.
func (at *servers) answerLate(t *testing.T, d time.Duration) {
	t.Helper()
	at.late.Store(int64(d))
	if r := testkit.Send(t, http.MethodPut, at.table, d.String()); r.StatusCode != http.StatusOK {
		t.Fatal(r.Status)
	}
}

// apps returns the apps, by language.
func (at *servers) apps(t *testing.T) (all []*app) {
	t.Helper()
	ways := []struct{ way, argument, address string }{
		{byInvoke, "invoke", at.serve}, {byURL, "url", at.serve}, {byPort, "agent", at.agent}, {bySocket, "agent", at.socket},
		{byBareInvoke, "sdk", at.serve},
	}
	add := func(language string, program ...string) {
		for _, w := range ways {
			all = append(all, &app{language: language, way: w.way, command: append(slices.Clone(program), w.argument, w.address), users: 100})
		}
	}
	alone := func(language string, users int, command ...string) {
		all = append(all, &app{language: language, way: nothing, command: command, users: users})
	}
	folder, peers := appFolder(t, testkit.Package(t, "typescript", "node_modules")), peersFolder(t)
	goApp, script := lambdatest.Build(t, "./internal/proofs/bench/app"), filepath.Join(folder, "app.mjs")
	alone("Go", 0, lambdatest.Build(t, "./internal/proofs/bench/testdata/nothing"))
	add("Go", goApp)
	all = append(all, &app{language: "Go", way: byLimiter, command: []string{goApp, "limiter", at.table, "rateLimit"}, users: 100})
	alone("TypeScript", 1, "node", script, "none", "")
	add("TypeScript", "node", script)
	former := formerFolder(t)
	if former != "" {
		old := filepath.Join(appFolder(t, filepath.Join(former, "node_modules")), "app.mjs")
		all = append(all, &app{language: "TypeScript", way: byFormer, command: []string{"node", old, "invoke", at.serve}, users: 100})
	}
	all = append(all, &app{
		language: "TypeScript", way: byFlexible, users: 50,
		command: []string{"node", filepath.Join(peers, "flexible.mjs"), at.dynamo.URL(), at.name + "-flexible"},
	})
	python, script := testkit.Package(t, "python", "venv/bin/python"), filepath.Join(folder, "app.py")
	alone("Python", 1, python, script, "none", "")
	add("Python", python, script)
	all = append(all,
		&app{language: "Python", way: asyncInvoke, command: []string{python, script, "async-invoke", at.serve}, users: 100},
		&app{language: "Python", way: asyncPort, command: []string{python, script, "async-agent", at.agent}, users: 100})
	if former != "" {
		old := filepath.Join(former, "venv/bin/python")
		all = append(all, &app{language: "Python", way: byFormer, command: []string{old, script, "invoke", at.serve}, users: 100})
	}
	all = append(all, &app{
		language: "Python", way: byZae, users: 10,
		command: []string{filepath.Join(peers, "venv/bin/python"), filepath.Join(peers, "zae.py"), at.dynamo.URL(), at.name + "-zae"},
	})
	return all
}

// appFolder returns a folder with the app in JavaScript and in Python, and what it loads. The client
// for JavaScript is in modules.
func appFolder(t *testing.T, modules string) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"internal/proofs/bench/app/app.mjs", "internal/proofs/bench/app/app.py", "activities/activities.json", "activities/activities.py"} {
		content, err := os.ReadFile(filepath.Join(root(t), name))
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, filepath.Base(name)), content, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(modules, filepath.Join(folder, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return folder
}

// formerFolder returns the folder with the former clients; empty if they are not there.
func formerFolder(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(root(t), ".cache", "former")
	if _, err := os.Stat(filepath.Join(folder, "installed")); err != nil {
		t.Log("the former clients are not measured: make bench PART=app builds them, but not in a shallow clone")
		return ""
	}
	return folder
}

// peersFolder returns the folder with the other projects.
func peersFolder(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(root(t), ".cache", "peers")
	if _, err := os.Stat(filepath.Join(folder, "installed")); err != nil {
		t.Skip("make bench-peers and make bench PART=app fetch the other projects, and measure this")
	}
	return folder
}

func root(t *testing.T) string {
	t.Helper()
	folder, err := testkit.Root()
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// serveBeside starts a server, and waits until it accepts connections. It is killed at the end of
// the test.
func serveBeside(t *testing.T, network, address string, variables []string, command ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = variables, log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			_ = conn.Close()
			return
		}
		if ctx.Err() != nil {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("%s does not listen: %s", cmd, text)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
