//go:build unix

package bench_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/liveedit/dynamoedit"
	. "github.com/cric-talk/guards/internal/proofs/bench"
	"github.com/cric-talk/guards/internal/proofs/bench/cputime"
	"github.com/cric-talk/guards/internal/proofs/findings"
	"github.com/cric-talk/guards/internal/testkit/cricket"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

// A peer is a limiter in processes of its own. Start returns a func that asks it.
type peer struct {
	name  string
	start func(t *testing.T, endpoint, table string) func(job) outcome
}

// Other limiters on DynamoDB, and this one as it is deployed and as a library.
func TestPeers(t *testing.T) {
	rounds(t)
	modules := peersFolder(t)
	costs := findings.Table{
		Title: "DynamoDB requests and write units of a decision",
		Head:  []string{"limiter", "a user's first", "second", "refused", "refused again at once", "refused in a new process"},
	}
	speed := findings.Table{
		Title: "Decisions of new users",
		Head:  []string{"limiter", "a second, 1 caller", "a second, 8 callers", "ms of CPU for each, 1 caller", "ms of CPU for each, 8 callers"},
	}
	requests, cpu := findings.Chart{Name: "peers-requests", Title: "DynamoDB requests for a decision"}, findings.Chart{Name: "peers-cpu", Title: "CPU for a decision, in ms"}
	peers := []peer{
		{"Guards", startGuards},
		{"Guards as a library", program(lambdatest.Build(t, "./internal/proofs/bench/app"), "limiter")},
		{"rate-limiter-flexible 11.4.0", program("node", filepath.Join(modules, "flexible.mjs"))},
		{"zae-limiter 0.17.0", program(filepath.Join(modules, "venv", "bin", "python"), filepath.Join(modules, "zae.py"))},
	}
	one, eight := speeds(t, peers, 1), speeds(t, peers, 8)
	rate := func(rounds []Cost) string { return fmt.Sprintf("%.0f", 1e6/Of(rounds, Wall).Median) }
	used := func(rounds []Cost) float64 { return Of(rounds, CPU).Median / 1000 }
	for i, p := range peers {
		row, mean := p.cost(t)
		costs.Rows = append(costs.Rows, append([]string{p.name}, row...))
		speed.Rows = append(speed.Rows, []string{
			p.name, rate(one[i]), rate(eight[i]), fmt.Sprintf("%.2f", used(one[i])), fmt.Sprintf("%.2f", used(eight[i])),
		})
		own := strings.HasPrefix(p.name, "Guards")
		requests.Bars = append(requests.Bars, findings.Bar{Label: p.name, Value: mean, Text: fmt.Sprintf("%.2f", mean), Own: own})
		cpu.Bars = append(cpu.Bars, findings.Bar{Label: p.name, Value: used(eight[i]), Text: fmt.Sprintf("%.2f ms", used(eight[i])), Own: own})
	}
	const slower = "decisions a second of rate-limiter-flexible, as a multiple of Guards as a library, "
	Save(t, "peers", findings.Result{
		Tables: []findings.Table{costs, speed},
		Charts: []findings.Chart{requests, cpu},
		Goals: []findings.Goal{
			{What: slower + "1 caller", Spread: Ratio(one[1], one[2], Wall), Most: 1},
			{What: slower + "8 callers", Spread: Ratio(eight[1], eight[2], Wall), Most: 1},
		},
	})
}

// cost returns the requests and write units of the kinds of decisions, and the
// mean of the requests.
func (p peer) cost(t *testing.T) (row []string, mean float64) {
	t.Helper()
	proxy, name := dynamotest.NewProxy(t), dynamotest.Table(t)
	const users = 50
	count := func(ask func(job) outcome, prefix string, allowed int) {
		proxy.ResetCounts()
		if got := ask(job{prefix, users, 1}); got.Allowed != allowed {
			t.Fatalf("%s: %d of %d allowed, want %d", p.name, got.Allowed, users, allowed)
		}
		total := 0
		for _, n := range proxy.Counts() {
			total += n
		}
		row = append(row, fmt.Sprintf("%.2f, %.2f units", float64(total)/users, proxy.WriteUnits()/users))
		mean += float64(total) / users / 5
	}
	ask := p.start(t, proxy.URL(), name)
	ask(job{"warm", 1, 1})
	for time.Now().Second() > 30 { // all of it belongs into one minute
		time.Sleep(time.Second)
	}
	for _, allowed := range []int{users, users, 0, 0} {
		count(ask, "u", allowed)
	}
	fresh := p.start(t, proxy.URL(), name)
	fresh(job{"fresh", 1, 1})
	count(fresh, "u", 0)
	return row, mean
}

// speeds measures new users, without a proxy. The peers take turns. The result has the rounds of
// each peer, and what a decision took in each round.
func speeds(t *testing.T, peers []peer, callers int) [][]Cost {
	t.Helper()
	const users = 400
	turns := make([]turn, len(peers))
	for i, p := range peers {
		turns[i] = turn{p.name, p.start(t, dynamotest.Endpoint(t), dynamotest.Table(t)), users, callers}
		turns[i].ask(job{"warm", 50 * callers, callers})
	}
	return inTurns(t, "u", 5, turns)
}

// program returns the start of a program whose last arguments are the endpoint and the table.
func program(command ...string) func(*testing.T, string, string) func(job) outcome {
	return func(t *testing.T, endpoint, table string) func(job) outcome {
		t.Helper()
		return launch(t, slices.Concat(command, []string{endpoint, table})...).ask
	}
}

// startGuards starts eight instances of comments-guard with a live limit. As on
// Lambda, an instance serves one caller at a time.
func startGuards(t *testing.T, endpoint, name string) func(job) outcome {
	t.Helper()
	settings := dynamoedit.New(dynamotest.Client(t, endpoint), name)
	err := liveedit.Edit(t.Context(), settings, cricket.All, liveedit.Change{At: time.Now(), By: "bench"}, func(s liveedit.Draft) (liveedit.Draft, error) {
		return s.Set("add_comment", "", "2/1m", ""), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	instances := make([]*lambdatest.Instance, 8)
	for i := range instances {
		instances[i] = lambdatest.Start(t, lambdatest.Build(t, "./functions/comments-guard"), "TABLE_NAME="+name, "AWS_ENDPOINT_URL_DYNAMODB="+endpoint)
		instances[i].Ready(t)
	}
	used := func() (sum time.Duration) {
		for _, i := range instances {
			cpu, err := cputime.Of(i.PID())
			if err != nil {
				t.Fatal(err)
			}
			sum += cpu
		}
		return sum
	}
	return func(j job) outcome {
		var next, allowed atomic.Int64
		var wg sync.WaitGroup
		began, before := time.Now(), used()
		for _, i := range instances[:j.Callers] {
			wg.Go(func() {
				for n := next.Add(1); n <= int64(j.Users); n = next.Add(1) {
					event := fmt.Sprintf(`{"userId":"%s%0*d","activity":"add_comment"}`, j.Prefix, 36-len(j.Prefix), n)
					r, err := i.Do(t.Context(), lambdatest.Invocation{Payload: []byte(event)})
					switch {
					case err != nil || r.ErrorType != "":
						t.Error(r, err)
						return
					case strings.Contains(string(r.Payload), `"allowed":true`):
						allowed.Add(1)
					}
				}
			})
		}
		wg.Wait()
		return outcome{int(allowed.Load()), float64(time.Since(began).Microseconds()), float64((used() - before).Microseconds())}
	}
}
