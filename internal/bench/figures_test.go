//go:build unix

package bench_test

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/bench"
	"github.com/cric-talk/guards/internal/dynamotest"
	"github.com/cric-talk/guards/internal/lambdatest"
)

// quickTable starts a table that answers at once, in a process of its own. It
// returns its URL.
func quickTable(t testing.TB) string {
	t.Helper()
	cmd := exec.Command(lambdatest.Build(t, "./internal/bench/table"))
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

// rounds returns how many rounds a measurement has. Only make bench measures.
func rounds(t *testing.T) int {
	t.Helper()
	if os.Getenv("BENCH") == "" {
		t.Skip("make bench measures this")
	}
	return 20
}

func report(t *testing.T, goals []Goal) {
	t.Helper()
	for _, g := range goals {
		t.Log(g)
		if !g.Reached() {
			t.Errorf("missed: %s", g)
		}
	}
}

// The CPU of a decision, compared with a bare UpdateItem of the SDK's client, and
// the CPU of a refusal that asks nobody.
func TestDecision(t *testing.T) {
	n := rounds(t)
	endpoint := quickTable(t)
	h := newGuard(t, endpoint, "rateLimit")
	ask, next := asking(t, h), users()
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
	}
	costs := Alternate(n, 1000, cases)
	for i, c := range cases {
		t.Logf("%-28s %s µs CPU, %s µs in all, %.0f allocations, %.0f bytes", c.Name,
			Of(costs[i], CPU), Of(costs[i], Wall), Of(costs[i], Allocs).Median, Of(costs[i], Bytes).Median)
	}
	report(t, []Goal{
		{What: "CPU of a decision, times a bare UpdateItem", Spread: Ratio(costs[1], costs[0], CPU), Most: 0.75},
		{What: "allocations of a decision", Spread: Of(costs[1], Allocs), Most: 300},
		{What: "CPU of a refusal from memory, in µs", Spread: Of(costs[2], CPU), Most: 15},
		{What: "allocations of a refusal from memory", Spread: Of(costs[2], Allocs), Most: 40},
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
				used, err := CPUOf(i.PID())
				if err != nil {
					t.Fatal(err)
				}
				return used
			},
		}
	}
	cases := []Case{
		function("a function that only updates", start("./internal/bench/testdata/update")),
		function("posts-guard", start("./functions/posts-guard")),
	}
	costs := Alternate(n, 2000, cases)
	for i, c := range cases {
		t.Logf("%-28s %s µs CPU, %s µs in all", c.Name, Of(costs[i], CPU), Of(costs[i], Wall))
	}
	report(t, []Goal{
		{What: "CPU of an invocation, times a function that only updates", Spread: Ratio(costs[1], costs[0], CPU), Most: 0.95},
	})
}

// The time from the start of a process to its first request for work, compared
// with a function that only has a client.
func TestStart(t *testing.T) {
	n := rounds(t)
	var starts [2][]Cost
	for range n {
		for i, pkg := range []string{"./internal/bench/testdata/update", "./functions/posts-guard"} {
			instance := lambdatest.Start(t, lambdatest.Build(t, pkg))
			starts[i] = append(starts[i], Cost{Wall: float64(instance.Ready(t).Microseconds())})
			instance.Stop()
		}
	}
	t.Logf("start of a function that only updates: %s µs, of posts-guard: %s µs", Of(starts[0], Wall), Of(starts[1], Wall))
	report(t, []Goal{{What: "start, times a function that only updates", Spread: Ratio(starts[1], starts[0], Wall), Most: 1.1}})
}
