package planted_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
//
// A run of all bugs takes an hour. If it is stopped, or a bug is not caught, the next one runs
// only the others. Delete its list to begin again.
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
	h := hunt{proofs: names("PLANTED_BY")}
	var found atomic.Int64
	whole := len(h.proofs) == 0 && len(bugs) == len(load(t))
	done := list[[]string]{file: "caught.json"}
	if whole {
		done.read(t)
	}
	rest := slices.DeleteFunc(slices.Clone(bugs), func(b planted.Bug) bool { return done.has[b.Name] != nil })
	onEach(rest, planted.Runner{Root: root, Long: os.Getenv("PLANTED_LONG") != "", Known: caughtBefore(t)}, func(runner *planted.Runner, i int) {
		row, caught := h.hunt(t, runner, rest[i])
		fmt.Printf("%3d/%d  %s\n", i+1, len(rest), strings.Join(row, "  |  "))
		if caught {
			found.Add(1)
		}
		if caught && whole {
			done.add(t, rest[i].Name, row)
		}
	})
	fmt.Printf("%d of %d planted bugs are caught\n", len(bugs)-len(rest)+int(found.Load()), len(bugs))
	if !whole || t.Failed() {
		return
	}
	var rows [][]string
	for _, b := range bugs {
		rows = append(rows, done.has[b.Name])
	}
	prove.Save(t, "planted", findings.Result{
		Figures: []findings.Figure{
			{What: "planted bugs", Value: strconv.Itoa(len(bugs))},
			{What: "caught by a test", Value: strconv.Itoa(len(rows))},
		},
		Tables: []findings.Table{{Title: "Each planted bug, and the first test that fails", Head: []string{"patch", "the mistake", "caught by", "after"}, Rows: rows}},
	})
	if err := os.Remove(done.file); err != nil {
		t.Error(err)
	}
}

// A list is what a long run knows of each bug, by its name. It is saved after each bug, so the
// next run continues one that was stopped.
type list[T any] struct {
	file string

	mu  sync.Mutex
	has map[string]T
}

func (l *list[T]) read(t *testing.T) {
	t.Helper()
	l.has = make(map[string]T)
	saved, err := os.ReadFile(l.file)
	if err == nil {
		err = json.Unmarshal(saved, &l.has)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

func (l *list[T]) add(t *testing.T, bug string, is T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.has[bug] = is
	text, err := json.MarshalIndent(l.has, "", "\t")
	if err := cmp.Or(err, os.WriteFile(l.file, append(text, '\n'), 0o600)); err != nil {
		t.Error(err)
	}
}

// Which tests of the folders that a bug names catch it, and not only the first one. It tells
// what a test is good for that nothing else catches. Delete an entry of the list to run that bug again.
func TestWhichTestsCatchEachBug(t *testing.T) {
	if os.Getenv("PLANTED_ALL") == "" {
		t.Skip("make planted ALL=1 runs this test")
	}
	catches := list[[]string]{file: "catches.json"}
	catches.read(t)
	root, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	bugs := slices.DeleteFunc(selected(t, names("PLANTED_NAME")), func(b planted.Bug) bool { return catches.has[b.Name] != nil })
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
		catches.add(t, b.Name, found)
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

// hunt runs the tests on one bug. It returns its row of the table: patch, mistake, test, time. A
// bug that no test catches is an error. If only proofs run, that holds for the bugs that name one
// of the proofs.
func (h *hunt) hunt(t *testing.T, runner *planted.Runner, b planted.Bug) (row []string, caught bool) {
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
		caught = true
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
	return []string{b.Name, b.What, by, o.Took.Round(100 * time.Millisecond).String()}, caught
}
