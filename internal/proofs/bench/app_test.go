//go:build unix

package bench_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/proofs/bench"
	"github.com/cric-talk/guards/internal/proofs/findings"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

// The ways to a decision, as the page names them.
const (
	nothing      = "nothing" // the language alone
	byInvoke     = "Invoke"
	byURL        = "Function URL"
	byPort       = "agent, by its port"
	bySocket     = "agent, by a socket"
	asyncInvoke  = "Invoke, AsyncGuards"
	asyncPort    = "agent, by its port, AsyncGuards"
	byLimiter    = "limiter"
	byBareInvoke = "the SDK's bare Invoke"
	byFormer     = "the former client" // which used the SDK: see FORMER_COMMIT in the Makefile
	byFlexible   = "rate-limiter-flexible 11.4.0"
	byZae        = "zae-limiter 0.17.0"
)

// An app is a program that asks for its users by one way, and what that costs it.
type app struct {
	language, way string
	command       []string
	users         int // calls in a round; 0: it does not ask

	starts, firsts []Cost // of new processes: up to the first client, and up to the first answer
	calls, waits   []Cost // the table answers at once, or in 4 ms
	cold           Cost   // of the first calls of the process
	resident       int64  // bytes, after the calls
}

func (a *app) name() string { return a.language + ": " + a.way }

// own reports whether the way is one of this project.
func (a *app) own() bool {
	return !slices.Contains([]string{byBareInvoke, byFormer, byFlexible, byZae}, a.way)
}

// times returns the spread of the CPU for a call, as a multiple of another way's.
func (a *app) times(way string, apps []*app) findings.Spread {
	return Ratio(a.calls, find(apps, a.language, way).calls, CPU)
}

const (
	startRounds  = 15
	callRounds   = 40
	waitedRounds = 20
	waitedCalls  = 20 // in a round, with a table that takes its time
	firstCalls   = 3  // of a process, times those in a round
)

var languages = []string{"Go", "TypeScript", "Python"}

// warmRounds are the rounds before those that count. Node.js has compiled what it calls often after
// some thousands of calls.
var warmRounds = map[string]int{"Go": 6, "TypeScript": 60, "Python": 6}

// What an app pays for asking: CPU, time and memory of its process, and the start of a new one.
// The servers that answer have processes of their own.
func TestApp(t *testing.T) {
	rounds(t)
	busy, err := os.ReadFile("/proc/loadavg") // Linux has it
	if err != nil {
		t.Skip(err)
	}
	load, _, _ := strings.Cut(string(busy), " ")
	at := startServers(t)
	apps := at.apps(t)
	for _, language := range languages {
		measureCalls(t, at, slices.DeleteFunc(slices.Clone(apps), func(a *app) bool { return a.language != language }), warmRounds[language])
	}
	measureStarts(t, apps)
	Save(t, "app", findings.Result{
		Figures: []findings.Figure{{What: "load of the machine by other work when this began (1 is a busy core)", Value: load}},
		Goals:   appGoals(apps),
		Tables:  []findings.Table{startTable(apps), callTable(apps), memoryTable(apps)},
		Charts: []findings.Chart{
			chart(apps, "app-cpu", "CPU of the app for a call, in ms", "%.2f ms", func(a *app) float64 { return Of(a.calls, cpuMs).Median }),
			chart(apps, "app-start", "CPU of loading and the first client in a new process, in ms", "%.1f ms", func(a *app) float64 {
				return Over(a.starts, find(apps, a.language, nothing).starts, cpuMs).Median
			}),
		},
	})
}

func cpuMs(c Cost) float64  { return c.CPU / 1000 }
func wallMs(c Cost) float64 { return c.Wall / 1000 }

// find returns the app of a language and a way. Nil: there is none.
func find(apps []*app, language, way string) *app {
	for _, a := range apps {
		if a.language == language && a.way == way {
			return a
		}
	}
	return nil
}

// measureCalls measures the calls of the apps of one language, in turns after some rounds that do
// not count, and then the memory of their processes. Rounds are short, and the other languages wait
// for their own turns, because an idle Node.js forgets compiled code.
func measureCalls(t *testing.T, at *servers, apps []*app, warm int) {
	t.Helper()
	var asking []*app
	var programs []running
	var turns []turn
	for _, a := range apps {
		if a.users == 0 {
			continue
		}
		p, n := launch(t, a.command...), firstCalls*a.users
		first := p.ask(job{"first", n, 1})
		a.cold = Cost{CPU: first.CPU / float64(n), Wall: first.Wall / float64(n)}
		asking, programs, turns = append(asking, a), append(programs, p), append(turns, turn{a.name(), p.ask, a.users, 1})
	}
	inTurns(t, "warm", warm, turns)
	called := inTurns(t, "call", callRounds, turns)
	at.answerLate(t, 4*time.Millisecond)
	for i := range turns {
		turns[i].users = min(turns[i].users, waitedCalls)
	}
	waited := inTurns(t, "wait", waitedRounds, turns)
	at.answerLate(t, 0)
	for i, a := range asking {
		resident, err := lambdatest.MemoryOf(programs[i].pid)
		if err != nil {
			t.Fatal(err)
		}
		a.calls, a.waits, a.resident = called[i], waited[i], resident
		programs[i].stop()
	}
}

// measureStarts measures new processes of all apps, in turns.
func measureStarts(t *testing.T, apps []*app) {
	t.Helper()
	for round := range startRounds + 1 {
		for _, a := range apps {
			start, first := runOnce(t, a, "start"), runOnce(t, a, "call")
			if round > 0 { // the first round fills the caches of files
				a.starts, a.firsts = append(a.starts, start), append(a.firsts, first)
			}
		}
	}
}

// runOnce runs the program of an app up to what only names: see [running].
func runOnce(t *testing.T, a *app, only string) Cost {
	t.Helper()
	cmd := exec.Command(a.command[0], a.command[1:]...)
	cmd.Env = append(environment(t), "ONLY="+only)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(began)
	if err != nil {
		t.Fatalf("%s: %v: %s", a.name(), err, out)
	}
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return Cost{CPU: float64(used.Microseconds()), Wall: float64(took.Microseconds())}
}

// appGoals returns the goals of TypeScript and Python.
func appGoals(apps []*app) (goals []findings.Goal) {
	for _, most := range []struct {
		language             string
		start, invoke, agent float64 // ms, at most
	}{{"TypeScript", 15, 0.35, 0.3}, {"Python", 70, 0.45, 0.3}} {
		alone, former := find(apps, most.language, nothing), find(apps, most.language, byFormer)
		for _, way := range []string{byInvoke, byPort} {
			a := find(apps, most.language, way)
			goals = append(goals,
				findings.Goal{What: a.name() + ": ms of loading and the first client", Spread: Over(a.starts, alone.starts, wallMs), Most: most.start},
				findings.Goal{What: a.name() + ": ms of CPU for loading and the first client", Spread: Over(a.starts, alone.starts, cpuMs), Most: most.start})
		}
		for _, way := range []string{byInvoke, byPort, bySocket} {
			a, cpu := find(apps, most.language, way), most.agent
			if way == byInvoke {
				cpu = most.invoke
			}
			goals = append(goals, findings.Goal{What: a.name() + ": ms of CPU for a call", Spread: Of(a.calls, cpuMs), Most: cpu})
			if former != nil {
				goals = append(goals, findings.Goal{What: a.name() + ": CPU for a call, times the former client's", Spread: a.times(byFormer, apps), Most: 0.33})
			}
		}
	}
	return goals
}

func startTable(apps []*app) findings.Table {
	table := findings.Table{
		Title: "A new process, above the start of the language alone",
		Head:  []string{"way", "ms of loading and the first client", "ms of CPU for it", "ms with the first call"},
	}
	for _, a := range apps {
		if a.way == nothing {
			table.Rows = append(table.Rows, []string{a.language + " alone, in all", Of(a.starts, wallMs).String(), Of(a.starts, cpuMs).String(), ""})
			continue
		}
		alone := find(apps, a.language, nothing)
		table.Rows = append(table.Rows, []string{
			a.name(), Over(a.starts, alone.starts, wallMs).String(), Over(a.starts, alone.starts, cpuMs).String(), Over(a.firsts, alone.starts, wallMs).String(),
		})
	}
	return table
}

func callTable(apps []*app) findings.Table {
	table := findings.Table{
		Title: "Calls, one after the other",
		Head: []string{
			"way", "ms of CPU", "times the SDK's bare Invoke", "times the former client", "ms of CPU, first calls of the process",
			"ms from the app's line to the answer, with a table that answers in 4 ms", "ms of CPU then",
		},
	}
	for _, a := range apps {
		if a.calls == nil || a.way == nothing {
			continue
		}
		before := ""
		if find(apps, a.language, byFormer) != nil {
			before = a.times(byFormer, apps).String()
		}
		table.Rows = append(table.Rows, []string{
			a.name(), Of(a.calls, cpuMs).String(), a.times(byBareInvoke, apps).String(), before, fmt.Sprintf("%.3g", cpuMs(a.cold)),
			Of(a.waits, wallMs).String(), Of(a.waits, cpuMs).String(),
		})
	}
	return table
}

func memoryTable(apps []*app) findings.Table {
	table := findings.Table{Title: "Resident memory of the app's process after these calls, in MB", Head: append([]string{"way"}, languages...)}
	for _, way := range []string{nothing, byInvoke, byURL, byPort, bySocket, asyncInvoke, asyncPort, byBareInvoke, byFormer, byLimiter, byFlexible, byZae} {
		row := []string{way}
		for _, language := range languages {
			cell := ""
			if a := find(apps, language, way); a != nil && a.resident > 0 {
				cell = fmt.Sprint(a.resident >> 20)
			}
			row = append(row, cell)
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}

// chart returns a picture of a figure of all ways.
func chart(apps []*app, name, title, format string, figure func(*app) float64) findings.Chart {
	c := findings.Chart{Name: name, Title: title}
	for _, a := range apps {
		if a.way != nothing {
			c.Bars = append(c.Bars, findings.Bar{Label: a.name(), Value: figure(a), Text: fmt.Sprintf(format, figure(a)), Own: a.own()})
		}
	}
	return c
}
