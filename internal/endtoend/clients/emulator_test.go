package clients_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

// timeline lists events of one user within a minute, and how each answer begins.
// perform replaces USER.
var timeline = []struct{ event, answer string }{
	{`{"userId":"USER","activity":"create_post"}`, `{"allowed":true,"reason":"ok"`},
	{`{"userId":"USER","activity":"create_post","requestId":"r1"}`, `{"allowed":true,"reason":"ok"`},
	{`{"userId":"USER","activity":"create_post","requestId":"r1"}`, `{"allowed":true,"reason":"duplicate"`},
	{`{"userId":"USER","activity":"create_post","op":"status"}`, `{"allowed":true,"reason":"ok"`},
	{`{"userId":"USER","activity":"create_post","count":9,"partial":true}`, `{"allowed":true,"reason":"ok"`},
	{`{"userId":"USER","activity":"create_post"}`, `{"allowed":false,"reason":"limited"`},
	{`{"userId":"USER","activity":"like"}`, `{"allowed":true,"reason":"unlimited"`},
	{`{"userId":"USER","activity":"create_post","op":"reset"}`, `{"allowed":true,"reason":"ok"`},
	{`{"userId":"USER","activity":"create_post","teir":"premium"}`, `{"errorMessage":"event has the unknown field`},
	{`{"userId":"USER é","activity":"like"}`, `{"errorMessage":"userId has`},
	{`[]`, `{"errorMessage":"event is`},
}

// The emulator runs the binary that is deployed.
func TestRuntimeEmulatorAndServeGiveTheSameAnswers(t *testing.T) {
	testkit.Clients.Need(t)
	t.Parallel()
	emulated := emulate(t) + "/2015-03-31/functions/function/invocations"
	served := serve(t, inTable(t)...) + "/2015-03-31/functions/posts-guard/invocations"
	testkit.Retry(t, func(t testing.TB) { // a minute can end, and with it the window
		user := rand.Text()
		byEmulator, byServe := perform(t, emulated, user), perform(t, served, user)
		for i, step := range timeline {
			if byEmulator[i] != byServe[i] || !strings.HasPrefix(byServe[i], step.answer) {
				t.Errorf("event %s: the emulator answers\n%s\nand guards serve answers\n%s\nwant both %s...", step.event, byEmulator[i], byServe[i], step.answer)
			}
		}
	})
}

// emulate runs posts-guard in AWS's runtime emulator and returns its URL.
func emulate(t *testing.T) string {
	t.Helper()
	// The emulator needs fixed ports. They are free on a random loopback address.
	host := fmt.Sprintf("127.%d.%d.%d", 1+mathrand.IntN(254), mathrand.IntN(256), 1+mathrand.IntN(254))
	cmd := command(t, testkit.RuntimeEmulator(t), "--log-level", "error", "--runtime-interface-emulator-address", host+":8080",
		"--runtime-api-address", host+":9001", lambdatest.Build(t, "./functions/posts-guard"))
	cmd.Env = append(cmd.Env, "TABLE_NAME="+dynamotest.Table(t), "DECISION_TIMEOUT=5s")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	stop := start(t, cmd)
	t.Cleanup(func() {
		if status := stop(); status != 0 {
			t.Errorf("the emulator exited with status %d", status)
		}
		if t.Failed() {
			t.Logf("the emulator wrote:\n%s", &log)
		}
	})
	for range 1000 { // 10 s
		if conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", host+":8080"); err == nil {
			_ = conn.Close()
			return "http://" + host + ":8080"
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the emulator does not listen after 10 s")
	return ""
}

var (
	clock     = regexp.MustCompile(`"(at|resetAt|waitTime|windowKey)":[1-9][0-9]*`)
	generated = regexp.MustCompile(`"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"`)
)

// perform sends the timeline's events for one user. It returns the answers, with
// times and generated ids replaced by constants.
func perform(t testing.TB, invocations, user string) (answers []string) {
	t.Helper()
	for _, step := range timeline {
		got := testkit.Send(t, http.MethodPost, invocations, strings.ReplaceAll(step.event, "USER", user))
		if got.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", step.event, got.Status)
		}
		answers = append(answers, generated.ReplaceAllString(clock.ReplaceAllString(got.Text, `"$1":1`), `"ID"`))
	}
	return answers
}
