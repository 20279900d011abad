package planted_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/proofs/findings"
	"github.com/cric-talk/guards/internal/proofs/planted"
	"github.com/cric-talk/guards/internal/proofs/prove"
)

// Each planted bug must be caught by a test. This takes minutes, so it runs only
// under make planted and make prove. The environment selects what runs:
//
//	PLANTED_NAME=a,b   only these bugs
//	PLANTED_BY=p,q     only the tests of these proofs, on every bug
//	PLANTED_LONG=1     with the proofs' long bounds
//	PLANTED_ALL=1      see TestWhichTestsCatchEachBug
func TestEachPlantedBugIsCaught(t *testing.T) {
	prove.Explain(t, "planted")
	if !prove.Long() && os.Getenv("PLANTED_RUN") == "" || os.Getenv("PLANTED_ALL") != "" {
		t.Skip("make planted runs this test")
	}
	root, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	bugs := selected(t, names("PLANTED_NAME"))
	h := hunt{proofs: names("PLANTED_BY"), rows: make([][]string, len(bugs))}
	onEach(bugs, planted.Runner{Root: root, Long: os.Getenv("PLANTED_LONG") != "", Known: caughtBefore(t)}, func(runner *planted.Runner, i int) {
		h.rows[i] = h.hunt(t, runner, bugs[i])
		fmt.Printf("%3d/%d  %s\n", i+1, len(bugs), strings.Join(h.rows[i], "  |  "))
	})
	caught := int(h.caught.Load())
	if len(h.proofs) == 0 && len(bugs) > 1 && !t.Failed() {
		prove.Save(t, "planted", findings.Result{
			Figures: []findings.Figure{
				{What: "planted bugs", Value: strconv.Itoa(len(bugs))},
				{What: "caught by a test", Value: strconv.Itoa(caught)},
			},
			Tables: []findings.Table{{Title: "Each planted bug, and the first test that fails", Head: []string{"patch", "the mistake", "caught by", "after"}, Rows: h.rows}},
		})
	}
	fmt.Printf("%d of %d planted bugs are caught\n", caught, len(bugs))
}

// Which tests of the folders that a bug names catch it, and not only the first one. It tells
// what a test is good for that nothing else catches. The list is saved after each bug, so the next run
// continues one that was stopped. Delete an entry, or the file, to run it again.
func TestWhichTestsCatchEachBug(t *testing.T) {
	if os.Getenv("PLANTED_ALL") == "" {
		t.Skip("make planted ALL=1 runs this test")
	}
	const list = "catches.json"
	catches := make(map[string][]string)
	if saved, err := os.ReadFile(list); err == nil {
		if err := json.Unmarshal(saved, &catches); err != nil {
			t.Fatal(err)
		}
	}
	root, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	bugs := slices.DeleteFunc(selected(t, names("PLANTED_NAME")), func(b planted.Bug) bool { return catches[b.Name] != nil })
	var saving sync.Mutex
	onEach(bugs, planted.Runner{Root: root, All: true}, func(runner *planted.Runner, i int) {
		b := bugs[i]
		o, err := runner.Run(t.Context(), b, b.Tests)
		if err != nil {
			t.Errorf("%s: %v", b.Name, err)
			return
		}
		found := []string{} // and not nil
		for _, folder := range b.Tests {
			broken, err := runner.Broken(t.Context(), folder)
			if err != nil {
				t.Error(err)
				return
			}
			for _, test := range o.All {
				in, name, _ := strings.Cut(test, " ")
				if in == folder && !strings.Contains(name, "/") && !slices.Contains(broken, test) {
					found = append(found, test)
				}
			}
		}
		fmt.Printf("%3d/%d  %s  %d tests  %s\n", i+1, len(bugs), b.Name, len(found), o.Took.Round(100*time.Millisecond))
		saving.Lock()
		defer saving.Unlock()
		catches[b.Name] = found
		text, err := json.MarshalIndent(catches, "", "\t")
		if err := cmp.Or(err, os.WriteFile(list, append(text, '\n'), 0o600)); err != nil {
			t.Error(err)
		}
	})
}

// onEach calls do for each bug, by its index, with a runner of this kind: while one compiles or waits,
// another one tests.
func onEach(bugs []planted.Bug, kind planted.Runner, do func(runner *planted.Runner, i int)) {
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.NumCPU() {
		runner := kind
		workers.Go(func() {
			for i := range next {
				do(&runner, i)
			}
		})
	}
	for i := range bugs {
		next <- i
	}
	close(next)
	workers.Wait()
}

// caughtBefore returns, by the name of a bug, the test that caught it in the saved run.
func caughtBefore(t *testing.T) map[string]string {
	t.Helper()
	saved, err := findings.Read(root+"/docs/reliability", "planted")
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]string)
	for _, row := range saved.Tables[0].Rows {
		known[row[0]] = row[2]
	}
	return known
}

// names reads a variable that holds words with commas or spaces between them.
func names(variable string) []string {
	return strings.Fields(strings.ReplaceAll(os.Getenv(variable), ",", " "))
}

// selected returns the bugs with these names, or all bugs if there are none.
func selected(t *testing.T, names []string) []planted.Bug {
	t.Helper()
	all := load(t)
	if len(names) == 0 {
		return all
	}
	var bugs []planted.Bug
	for _, name := range names {
		i := slices.IndexFunc(all, func(b planted.Bug) bool { return b.Name == name })
		if i < 0 {
			t.Fatalf("there is no patch %q in internal/proofs/planted/patches", name)
		}
		bugs = append(bugs, all[i])
	}
	return bugs
}

// A hunt runs tests on bugs, some of them at a time.
type hunt struct {
	proofs []string // only the tests of these proofs; empty: the tests that each bug names
	caught atomic.Int64
	rows   [][]string // of the table, one for each bug: patch, mistake, test, time
}

func (h *hunt) folders(b planted.Bug) (folders []string) {
	if len(h.proofs) == 0 {
		return b.Tests
	}
	for _, proof := range h.proofs {
		folders = append(folders, planted.Folder(proof))
	}
	return folders
}

// hunt runs the tests on one bug, and returns its row. A bug that no test catches is an error.
// If only proofs run, that holds for the bugs that name one of the proofs.
func (h *hunt) hunt(t *testing.T, runner *planted.Runner, b planted.Bug) (row []string) {
	t.Helper()
	o, err := runner.Run(t.Context(), b, h.folders(b))
	if o.Test != "" {
		passes, broken := runner.Passes(t.Context(), o.Test)
		if broken == nil && !passes {
			broken = fmt.Errorf("%s fails without the bug, too", o.Test)
		}
		err = cmp.Or(err, broken)
	}
	by := o.Test
	switch {
	case err != nil:
		by = "(no result)"
		t.Errorf("%s: %v", b.Name, err)
	case o.Test != "":
		h.caught.Add(1)
	case len(h.proofs) == 0:
		by = "nothing"
		t.Errorf("%s survives all tests in %v: %s", b.Name, b.Tests, b.What)
	default:
		by = "nothing"
		for _, proof := range b.Finds {
			if slices.Contains(h.proofs, proof) {
				t.Errorf("%s: %s shall find it, and does not: %s", b.Name, proof, b.What)
			}
		}
	}
	return []string{b.Name, b.What, by, o.Took.Round(100 * time.Millisecond).String()}
}
