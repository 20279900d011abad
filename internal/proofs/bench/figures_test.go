//go:build unix

package bench_test

import (
	"archive/zip"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards"
	. "github.com/cric-talk/guards/internal/proofs/bench"
	"github.com/cric-talk/guards/internal/proofs/bench/cputime"
	"github.com/cric-talk/guards/internal/proofs/findings"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

// quickTable starts a table that answers at once, in a process of its own. It
// returns its URL.
func quickTable(t testing.TB) string {
	t.Helper()
	cmd := exec.Command(lambdatest.Build(t, "./internal/proofs/bench/table"))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(url)
}

// rounds returns how many rounds a measurement has. Without BENCH, the folder for
// the results, nothing is measured.
func rounds(t *testing.T) int {
	t.Helper()
	if os.Getenv("BENCH") == "" {
		t.Skip("make bench measures this")
	}
	return 20
}

// The CPU of a decision, compared with a bare UpdateItem of the SDK's client, and
// the CPU of a refusal that asks nobody. On DynamoDB Local, where the process waits for
// each answer as it does for AWS, a decision about a user and a room is compared with one
// about the user alone.
func TestDecision(t *testing.T) {
	n := rounds(t)
	endpoint := quickTable(t)
	ask, next, numbered := asking(t, newGuardOf(t, endpoint, "rateLimit", taking("10/1m max 100"))), users(), usersWith(`,"limit":20`)
	kept := newGuard(t, dynamotest.Endpoint(t), dynamotest.Table(t))
	again, refused := asking(t, kept), next()
	for !again(refused, "limited") {
		continue
	}
	cases := []Case{
		{Name: "bare UpdateItem of the SDK", Do: bare(t, dynamotest.Config(endpoint), "rateLimit")},
		{Name: "decision", Do: func() { ask(next(), "ok") }},
		{Name: "refusal from memory", Do: func() {
			for !again(refused, "limited") { // a new window has begun
				continue
			}
		}},
		{Name: "decision by the Go client with a limiter", Do: asksLocally(t, endpoint, "rateLimit")},
		{Name: "decision by a number that the caller gives", Do: func() { ask(numbered(), "ok") }},
	}
	one := asking(t, kept)
	of := func(limit guards.Limit) func(event []byte, reason string) bool {
		return asking(t, newGuardOf(t, dynamotest.Endpoint(t), dynamotest.Table(t), inRooms(limit)))
	}
	both, inRoom := of("10/1m"), inNewRooms(next)
	prepaid := of("20000/1m prepaid")
	waiting := []Case{
		{Name: "decision on DynamoDB Local", Do: func() { one(next(), "ok") }},
		{Name: "decision about a user and a room there", Do: func() { both(inRoom(), "ok") }},
		{Name: "decision about a user and a hot, prepaid room there", Do: func() {
			prepaid(fmt.Appendf(bytes.TrimSuffix(next(), []byte("}")), `,"subjects":{"room":"r1"}}`), "ok")
		}},
	}
	costs, waited := Alternate(n, 1000, cases), Alternate(n, 500, waiting)
	cases, costs = append(cases, waiting...), append(costs, waited...)
	table := findings.Table{Title: "In one process", Head: []string{"case", "µs of CPU", "µs in all", "allocations", "bytes"}}
	chart := findings.Chart{Name: "decision", Title: "CPU of a decision, in µs"}
	for i, c := range cases {
		cpu := Of(costs[i], CPU)
		table.Rows = append(table.Rows, []string{
			c.Name, cpu.String(), Of(costs[i], Wall).String(),
			fmt.Sprintf("%.0f", Of(costs[i], Allocs).Median), fmt.Sprintf("%.0f", Of(costs[i], Bytes).Median),
		})
		chart.Bars = append(chart.Bars, findings.Bar{Label: c.Name, Value: cpu.Median, Text: fmt.Sprintf("%.0f µs", cpu.Median), Own: i > 0})
	}
	Save(t, "decision", findings.Result{
		Tables: []findings.Table{table},
		Charts: []findings.Chart{chart},
		Goals: []findings.Goal{
			{What: DecisionCPU, Spread: Ratio(costs[1], costs[0], CPU), Most: 0.75},
			{What: "CPU of a decision by the Go client with a limiter, times one of a function's handler", Spread: Ratio(costs[3], costs[1], CPU), Most: 1.1},
			{What: "CPU of a decision by a number that the caller gives, times one without", Spread: Ratio(costs[4], costs[1], CPU), Most: 1.02},
			{What: "allocations of a decision", Spread: Of(costs[1], Allocs), Most: 200},
			{What: RefusalCPU, Spread: Of(costs[2], CPU), Most: 15},
			{What: "allocations of a refusal from memory", Spread: Of(costs[2], Allocs), Most: 33},
			{What: "CPU of a decision about a user and a room, times one about the user", Spread: Ratio(waited[1], waited[0], CPU), Most: 2},
			{What: "CPU of a decision about a user and a hot, prepaid room, times one about the user", Spread: Ratio(waited[2], waited[0], CPU), Most: 1.3},
		},
	})
}

// The CPU of the deployed binary for each invocation, compared with a function
// that only makes an UpdateItem.
func TestFunction(t *testing.T) {
	n := rounds(t)
	endpoint := quickTable(t)
	start := func(pkg string) *lambdatest.Instance {
		i := lambdatest.Start(t, lambdatest.Build(t, pkg), "TABLE_NAME=rateLimit", "AWS_ENDPOINT_URL_DYNAMODB="+endpoint)
		i.Ready(t)
		return i
	}
	next := users()
	function := func(name string, i *lambdatest.Instance) Case {
		return Case{
			Name: name,
			Do: func() {
				if r := i.Invoke(t, string(next())); !strings.Contains(string(r.Payload), `"allowed":true`) {
					t.Fatalf("%s: %+v", name, r)
				}
			},
			CPU: func() time.Duration {
				used, err := cputime.Of(i.PID())
				if err != nil {
					t.Fatal(err)
				}
				return used
			},
		}
	}
	cases := []Case{
		function("a function that only updates", start("./internal/proofs/bench/testdata/update")),
		function("posts-guard", start("./functions/posts-guard")),
	}
	costs := Alternate(n, 2000, cases)
	table := findings.Table{Title: "An invocation of the deployed binary", Head: []string{"function", "µs of CPU", "µs in all"}}
	for i, c := range cases {
		table.Rows = append(table.Rows, []string{c.Name, Of(costs[i], CPU).String(), Of(costs[i], Wall).String()})
	}
	Save(t, "function", findings.Result{
		Tables: []findings.Table{table},
		Goals: []findings.Goal{
			{What: "CPU of an invocation, times a function that only updates", Spread: Ratio(costs[1], costs[0], CPU), Most: 0.95},
		},
	})
}

// The time from the start of a process to its first request for work, compared
// with a function that only has a client. Both register for SIGTERM, because a
// guard must, to write its last metrics.
func TestStart(t *testing.T) {
	n := 10 * rounds(t) // a start takes a few milliseconds
	programs := []struct {
		name, pkg string
		env       []string
	}{
		{"a function that only updates", "./internal/proofs/bench/testdata/update", nil},
		{"the same, registered for SIGTERM", "./internal/proofs/bench/testdata/update", []string{"SIGTERM=true"}},
		{"posts-guard", "./functions/posts-guard", nil},
	}
	starts := make([][]Cost, len(programs))
	for range n {
		for i, p := range programs {
			instance := lambdatest.Start(t, lambdatest.Build(t, p.pkg), p.env...)
			starts[i] = append(starts[i], Cost{Wall: float64(instance.Ready(t).Microseconds())})
			instance.Stop()
		}
	}
	bare, guard := zipped(t, programs[0].pkg), zipped(t, programs[2].pkg)
	table := findings.Table{Title: "From the start of the process until it asks for work", Head: []string{"program", "ms", "bytes of the zipped binary"}}
	for i, size := range []int{bare, bare, guard} {
		table.Rows = append(table.Rows, []string{programs[i].name, fmt.Sprintf("%.1f", Of(starts[i], Wall).Median/1000), fmt.Sprint(size)})
	}
	Save(t, "start", findings.Result{
		Tables: []findings.Table{table},
		Goals: []findings.Goal{
			{What: "start, times a function that only updates and registers for SIGTERM", Spread: Ratio(starts[2], starts[1], Wall), Most: 1.1},
			// 4.04 MB was the size when decisions still used the SDK's client. The time zones of calendars add
			// 0.1 MB, and lockouts and numbers of callers as much again.
			{What: "MB of the zipped binary", Spread: Of([]Cost{{Bytes: float64(guard) / 1e6}}, Bytes), Most: 4.26},
		},
	})
}

// zipped returns the size of a function's binary for Lambda in a zip file, in bytes.
func zipped(t *testing.T, pkg string) int {
	t.Helper()
	folder := t.TempDir()
	build := exec.Command("go", slices.Concat([]string{"build", "-o", filepath.Join(folder, "bootstrap")}, lambdatest.Flags, []string{pkg})...)
	build.Dir = "../../.."
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=arm64")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var zipped bytes.Buffer
	z := zip.NewWriter(&zipped)
	if err := errors.Join(z.AddFS(os.DirFS(folder)), z.Close()); err != nil {
		t.Fatal(err)
	}
	return zipped.Len()
}
