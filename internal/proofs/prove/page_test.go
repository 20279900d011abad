package prove

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/proofs/findings"

	"github.com/cric-talk/guards/internal/testkit"
)

func TestThePageShowsTheSavedFigures(t *testing.T) {
	root, err := testkit.Root()
	if err != nil {
		t.Fatal(err)
	}
	want, err := page(root)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(pageFile(root))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Error("docs/reliability.md does not show the saved figures: run go run ./internal/proofs/prove/run -page")
	}
}

// The page says of each figure whether it is older than its code, and a release
// asks Stale.
func TestFiguresOlderThanTheirCodeAreNamed(t *testing.T) {
	root, err := testkit.Root()
	if err != nil {
		t.Fatal(err)
	}
	stale, err := Stale()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range Parts {
		shown, err := section(root, p.Name)
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Contains(shown, "has changed since") || strings.Contains(shown, "has not run")
		if said != slices.Contains(stale, p.Name) {
			t.Errorf("the page says that the figures of %s are old: %v, and Stale returns %v", p.Name, said, stale)
		}
		s := findings.Saved{Sources: "of other code"}
		if older, err := s.Older(root, p.Sources); err != nil || !older {
			t.Errorf("figures of other code are those of %s: %v, %v", p.Name, !older, err)
		}
		if s.Sources, err = findings.Hash(root, p.Sources); err != nil {
			t.Fatal(err)
		}
		if older, err := s.Older(root, p.Sources); err != nil || older {
			t.Errorf("figures of today's code are not those of %s: %v, %v", p.Name, !older, err)
		}
	}
}
