//go:build unix

package bench_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/cric-talk/guards/internal/proofs/bench"
	"github.com/cric-talk/guards/internal/proofs/findings"
)

// shares maps functions of Go, by the beginning of their names, to parts of a
// decision. A function without an entry belongs to the part of its caller.
var shares = []struct{ function, share string }{
	{"runtime.gcBgMarkWorker", "garbage collection"},
	{"runtime.bgsweep", "garbage collection"},
	{"runtime.bgscavenge", "garbage collection"},
	{"runtime.schedule", "Go's scheduler"},
	{"runtime.mcall", "Go's scheduler"},
	{"runtime.mstart", "Go's scheduler"},
	{"runtime.sysmon", "Go's scheduler"},
	{"github.com/cric-talk/guards/internal/ratelimit/dynamostore/dynamohttp.(*Client).sign", "signature"},
	{"github.com/cric-talk/guards/internal/ratelimit/dynamostore/dynamohttp.mac", "signature"},
	{"github.com/cric-talk/guards/internal/ratelimit/dynamostore/dynamohttp.hexSHA256", "signature"},
	{"net/http.", "HTTP and the network"},
	{"net/textproto.", "HTTP and the network"},
	{"net.", "HTTP and the network"},
	{"internal/poll.", "HTTP and the network"},
	{"github.com/cric-talk/guards/internal/ratelimit/dynamostore/dynamohttp.", "the lean client itself"},
	{"github.com/cric-talk/guards/internal/ratelimit/dynamostore.", "JSON of the update and the item"},
	{"github.com/cric-talk/guards/internal/policy.", "policy"},
	{"github.com/cric-talk/guards/internal/input.", "decoding the event"},
	{"github.com/cric-talk/guards/internal/metrics.", "metrics and log"},
	{"log/slog.", "metrics and log"},
	{"github.com/cric-talk/guards/internal/ratelimit.", "limiter, memory and ids"},
	{"github.com/cric-talk/guards/internal/retry.", "limiter, memory and ids"},
	{"github.com/cric-talk/guards/internal/live.", "live limits"},
	{"github.com/cric-talk/guards/internal/guard.", "guard: rules and answer"},
}

// shareOf returns what a sample belongs to. Functions are the functions of its
// stack, the innermost first.
func shareOf(functions []string) string {
	for _, function := range functions {
		for _, s := range shares {
			if strings.HasPrefix(function, s.function) {
				return s.share
			}
		}
	}
	return "other"
}

// Where the CPU time and the allocations of a decision go.
func TestProfile(t *testing.T) {
	rounds(t)
	h := newGuard(t, quickTable(t), "rateLimit")
	ask, next := asking(t, h), users()
	run := func(n int) {
		for range n {
			ask(next(), "ok")
		}
	}
	run(2000)
	const n = 50_000
	cpu := profile(t, "cpu", "-unit=us", func(file *os.File) {
		if err := pprof.StartCPUProfile(file); err != nil {
			t.Fatal(err)
		}
		run(n)
		pprof.StopCPUProfile()
	})
	const counted = 5000
	runtime.MemProfileRate = 1
	before := profile(t, "before", "-sample_index=alloc_objects", writeAllocs(t))
	run(counted)
	after := profile(t, "after", "-sample_index=alloc_objects", writeAllocs(t))
	runtime.MemProfileRate = 512 << 10

	list := findings.Table{Title: "Where a decision's time goes", Head: []string{"where", "µs of CPU", "allocations"}}
	names := slices.SortedFunc(maps.Keys(cpu), func(a, b string) int { return cmp.Compare(cpu[b], cpu[a]) })
	for _, name := range names {
		allocations := (after[name] - before[name]) / counted
		list.Rows = append(list.Rows, []string{name, fmt.Sprintf("%.1f", cpu[name]/n), fmt.Sprintf("%.0f", allocations)})
	}
	Save(t, "profile", findings.Result{Tables: []findings.Table{list}})
}

func writeAllocs(t *testing.T) func(*os.File) {
	return func(file *os.File) {
		t.Helper()
		runtime.GC() // the profile shows the last collection
		if err := pprof.Lookup("allocs").WriteTo(file, 0); err != nil {
			t.Fatal(err)
		}
	}
}

// profile returns the sum of a profile's samples for each share.
func profile(t *testing.T, name, option string, write func(*os.File)) map[string]float64 {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	write(file)
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	traces, err := exec.Command("go", "tool", "pprof", "-traces", option, path).Output()
	if err != nil {
		t.Fatal(err)
	}
	sums := make(map[string]float64)
	for block := range strings.SplitSeq(string(traces), "-----------+-------------------------------------------------------\n") {
		value, functions := sample(block)
		if value > 0 {
			sums[shareOf(functions)] += value
		}
	}
	return sums
}

// line is one of go tool pprof -traces: a value and the innermost function of a stack, or
// the next function of that stack. Others are labels, such as "bytes: 64B".
//
//	10000us   internal/poll.ignoringEINTRIO
//	          internal/poll.(*FD).Write
var line = regexp.MustCompile(`(?m)^ *(\d+)?(?:us)? {3,}([^\s:]+)(?: .*)?$`)

// sample returns the value and the stack of one block.
func sample(block string) (value float64, functions []string) {
	for _, found := range line.FindAllStringSubmatch(block, -1) {
		if found[1] != "" {
			value, _ = strconv.ParseFloat(found[1], 64) // digits
		}
		functions = append(functions, found[2])
	}
	return value, functions
}
