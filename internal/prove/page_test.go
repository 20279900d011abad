package prove

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/cric-talk/guards/internal/findings"
)

func TestThePageShowsTheSavedFigures(t *testing.T) {
	root, err := findings.Root()
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
		t.Error("docs/reliability.md does not show the saved figures: run go run ./internal/prove/run -page")
	}
}

func TestNoFigureIsOlderThanItsCode(t *testing.T) {
	root, err := findings.Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range Parts {
		s, err := findings.Read[findings.Saved](p.file(root))
		if errors.Is(err, fs.ErrNotExist) {
			continue // the page says so
		}
		if err != nil {
			t.Fatal(err)
		}
		hash, err := p.hash(root)
		if err != nil {
			t.Fatal(err)
		}
		if s.Sources != hash {
			t.Errorf("the code in %v has changed since the figures of %s were measured: run make prove PART=%s", p.Sources, p.Name, p.Name)
		}
	}
}
