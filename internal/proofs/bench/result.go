//go:build unix

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cric-talk/guards/internal/proofs/findings"
	"github.com/cric-talk/guards/internal/testkit"
)

// A Part is a part of docs/performance.md. One test measures it.
type Part struct {
	Name  string
	Test  string // the name of the test
	Peers bool   // other projects take part, and make bench-peers fetches them

	// Checked is set if make bench-check measures it. The others take long, or
	// depend on the speed of DynamoDB Local.
	Checked bool
}

// Parts are all parts, in the order of docs/performance.md.
var Parts = []Part{
	{Name: "decision", Test: "TestDecision", Checked: true},
	{Name: "function", Test: "TestFunction", Checked: true},
	{Name: "start", Test: "TestStart", Checked: true},
	{Name: "profile", Test: "TestProfile"},
	{Name: "memory", Test: "TestMemorySizes"},
	{Name: "logs", Test: "TestLogs"},
	{Name: "rates", Test: "TestRates"},
	{Name: "prepaid", Test: "TestPrepaid"},
	{Name: "limits", Test: "TestLimits"},
	{Name: "replay", Test: "TestReplay"},
	{Name: "cleanup", Test: "TestCleanup"},
	{Name: "peers", Test: "TestPeers", Peers: true},
}

// command returns the command that measures the part.
func (p Part) command() string {
	if p.Peers {
		return "make bench-peers"
	}
	return "make bench PART=" + p.Name
}

func find(name string) (Part, error) {
	i := slices.IndexFunc(Parts, func(p Part) bool { return p.Name == name })
	if i < 0 {
		return Part{}, fmt.Errorf("there is no measurement %q", name)
	}
	return Parts[i], nil
}

// A Result is what a part has measured.
type Result struct {
	findings.Result

	Goals  []Goal  `json:"goals,omitempty"`
	Charts []Chart `json:"charts,omitempty"`
}

// saved is a saved result.
type saved struct {
	findings.Saved

	Goals  []Goal  `json:"goals,omitempty"`
	Charts []Chart `json:"charts,omitempty"`
}

// Markdown returns the goals, each beside its figure, and then the result.
func (s saved) Markdown() string {
	if len(s.Goals) > 0 {
		s.Tables = append([]findings.Table{goals(s.Goals)}, s.Tables...)
	}
	return s.Saved.Markdown()
}

// Save prints r and saves it in the folder that the variable BENCH names. It fails
// the test if a goal is missed.
func Save(t testing.TB, part string, r Result) {
	t.Helper()
	p, err := find(part)
	if err != nil {
		t.Fatal(err)
	}
	s := saved{Saved: findings.New(r.Result, p.command()), Goals: r.Goals, Charts: r.Charts}
	root, err := testkit.Root()
	if err == nil {
		s.Sources, err = findings.Hash(root, findings.Asks)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + s.Markdown())
	for _, g := range r.Goals {
		if !g.Reached() {
			t.Errorf("missed: %s", g)
		}
	}
	if err := findings.Write(file(os.Getenv("BENCH"), part), s); err != nil {
		t.Fatal(err)
	}
}

// goals returns a table with each goal beside its figure.
func goals(list []Goal) findings.Table {
	t := findings.Table{Title: "Goals", Head: []string{"figure", "median (middle half of the rounds)", "goal: at most", "met"}}
	for _, g := range list {
		met := "yes"
		if !g.Reached() {
			met = "no"
		}
		t.Rows = append(t.Rows, []string{g.What, g.Spread.String(), fmt.Sprint(g.Most), met})
	}
	return t
}

// file returns where the result of a part is saved.
func file(folder, part string) string { return filepath.Join(folder, part+".json") }
