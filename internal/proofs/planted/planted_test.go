package planted_test

import (
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/proofs/planted"
	"github.com/cric-talk/guards/internal/proofs/prove"
)

const root = "../../.."

func load(t *testing.T) []planted.Bug {
	t.Helper()
	bugs, err := planted.Load(os.DirFS("patches"))
	if err != nil {
		t.Fatal(err)
	}
	return bugs
}

// A patch that no longer fits is useless, and so is one that plants nothing.
func TestEachPatchFitsTodaysSource(t *testing.T) {
	bugs := load(t)
	if len(bugs) < 40 {
		t.Errorf("there are %d patches, want at least 40", len(bugs))
	}
	for _, b := range bugs {
		t.Run(b.Name, func(t *testing.T) {
			files, err := b.Apply(root)
			if err != nil {
				t.Fatal(err)
			}
			for name, content := range files {
				if strings.HasSuffix(name, "_test.go") {
					t.Errorf("it changes the test %s, want a mistake in the program", name)
				}
				if path.Ext(name) == ".go" {
					if _, err := parser.ParseFile(token.NewFileSet(), name, content, parser.SkipObjectResolution); err != nil {
						t.Error(err)
					}
				}
				before, err := os.ReadFile(filepath.Join(root, name))
				if err != nil || string(before) == content {
					t.Errorf("%s stays as it is: %v", name, err)
				}
			}
		})
	}
}

func TestEachPatchNamesTestsAndProofsThatExist(t *testing.T) {
	var proofs []string
	for _, p := range prove.Parts {
		proofs = append(proofs, p.Name)
	}
	for _, b := range load(t) {
		for _, folder := range b.Tests {
			pattern := "*_test.go"
			if strings.HasPrefix(folder, "clients/") {
				pattern = "test*/*"
			}
			if tests, err := filepath.Glob(filepath.Join(root, folder, pattern)); err != nil || len(tests) == 0 {
				t.Errorf("%s: %s has no tests (%v)", b.Name, folder, err)
			}
		}
		for _, proof := range b.Finds {
			if !slices.Contains(proofs, proof) {
				t.Errorf("%s: finds names %q, want one of %v", b.Name, proof, proofs)
			}
		}
	}
}

// The explorer runs the policies and the limiter. A mistake there is found by it,
// or the patch says why it lies beyond the explorer's bounds.
func TestTheExplorerFindsWhatLiesWithinItsBounds(t *testing.T) {
	explored := []string{"internal/policy", "internal/ratelimit"}
	for _, b := range load(t) {
		runs := slices.ContainsFunc(b.Changes, func(c planted.Change) bool { return slices.Contains(explored, path.Dir(c.File)) })
		switch found := slices.Contains(b.Finds, "explore"); {
		case runs && !found && b.Beyond == "":
			t.Errorf("%s: add explore to finds, or say in beyond why the explorer can't find it", b.Name)
		case b.Beyond != "" && (found || !runs):
			t.Errorf("%s: remove beyond: the explorer finds it, or does not run that code", b.Name)
		}
	}
}

// A fixed bug of the core that comes back is found by a proof, and not only by the
// test that was written for it.
func TestAProofFindsEachRevertedFix(t *testing.T) {
	proofs := []string{"explore", "simulate", "histories", "faults"}
	reverts := 0
	for _, b := range load(t) {
		if b.Reverts == "" {
			continue
		}
		reverts++
		if !slices.ContainsFunc(b.Finds, func(proof string) bool { return slices.Contains(proofs, proof) }) {
			t.Errorf("%s reverts a fix (%s), and finds names %v, want one of %v", b.Name, b.Reverts, b.Finds, proofs)
		}
	}
	if reverts < 18 {
		t.Errorf("%d patches revert a fix, want at least 18", reverts)
	}
}
