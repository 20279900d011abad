//go:build unix

package bench

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/proofs/findings"
	"github.com/cric-talk/guards/internal/testkit"
)

// A Part is a part of docs/performance.md. One test or benchmark measures it.
type Part struct {
	Name  string
	Test  string // its name
	Peers bool   // other projects take part, which are fetched first. It runs only if it is named

	// Sources are the folders with the measured code. Nil: [findings.Asks].
	Sources []string

	// Checked is set if make bench-check measures it. The others take long,
	// depend on the speed of DynamoDB Local, or measure clients and other projects that
	// make has to build and fetch first.
	Checked bool
}

// Parts are all parts, in the order of docs/performance.md.
var Parts = []Part{
	{Name: "decision", Test: "TestDecision", Checked: true},
	{Name: "app", Test: "TestApp", Peers: true, Sources: findings.Apps},
	{Name: "function", Test: "TestFunction", Checked: true},
	{Name: "start", Test: "TestStart", Checked: true},
	{Name: "profile", Test: "TestProfile"},
	{Name: "memory", Test: "TestMemorySizes"},
	{Name: "logs", Test: "TestLogs"},
	{Name: "rates", Test: "TestRates"},
	{Name: "prepaid", Test: "TestPrepaid"},
	{Name: "limits", Test: "TestLimits"},
	{Name: "replay", Test: "BenchmarkReplay"},
	{Name: "cleanup", Test: "TestCleanup"},
	{Name: "peers", Test: "TestPeers", Peers: true},
}

// command returns the command that measures the part.
func (p Part) command() string {
	if p.Name == "peers" {
		return "make bench-peers"
	}
	return "make bench PART=" + p.Name
}

// Run runs the measurements with these names, or all that need no other project,
// and saves their results. It returns an error if one fails or misses a goal.
func Run(ctx context.Context, names []string) error {
	root, err := testkit.Root()
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := page.Part(name); err != nil {
			return err
		}
	}
	parts := slices.DeleteFunc(slices.Clone(Parts), func(p Part) bool {
		return len(names) == 0 && p.Peers || len(names) > 0 && !slices.Contains(names, p.Name)
	})
	return test(ctx, root, page.Folder(root), parts, os.Stdout)
}

// test runs parts with the code in root, and saves their results in to.
func test(ctx context.Context, root, to string, parts []Part, out io.Writer) error {
	var tests []string
	for _, p := range parts {
		tests = append(tests, p.Test)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	names := "^(" + strings.Join(tests, "|") + ")$"
	return findings.Run(ctx, root, out, []string{"BENCH=" + to}, "scripts/with-dynamodb",
		"go", "test", "-count=1", "-v", "-timeout=2h", "-run="+names, "-bench="+names, "-benchtime=5x", "./internal/proofs/bench")
}

// Save prints r and saves it in the folder that the variable BENCH names. It fails
// the test if a goal is missed. Without the variable, it does neither.
func Save(t testing.TB, part string, r findings.Result) {
	t.Helper()
	if folder := os.Getenv("BENCH"); folder != "" {
		page.Save(t, part, folder, r)
	}
}
