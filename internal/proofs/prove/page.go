package prove

import (
	_ "embed"
	"os"
	"testing"

	"github.com/cric-talk/guards/internal/proofs/findings"
	"github.com/cric-talk/guards/internal/testkit"
)

//go:embed reliability.md.tmpl
var text string

// page is docs/reliability.md.
var page = func() findings.Page {
	p := findings.Page{File: "docs/reliability.md", Text: text}
	for _, part := range Parts {
		p.Parts = append(p.Parts, findings.Part{Name: part.Name, Command: "make prove PART=" + part.Name, Sources: part.Sources})
	}
	return p
}()

// WritePage writes docs/reliability.md from the saved figures.
func WritePage() error {
	root, err := testkit.Root()
	if err != nil {
		return err
	}
	return page.Write(root)
}

// Stale returns the names of the proofs whose figures are missing or older than
// their code.
func Stale() ([]string, error) {
	root, err := testkit.Root()
	if err != nil {
		return nil, err
	}
	return page.Stale(root)
}

// Save prints the result of a proof. If the long bounds apply, Save also saves it for
// the page. It fails the test if part has no entry in Parts, or if the test has failed
// already.
func Save(t testing.TB, part string, r findings.Result) {
	t.Helper()
	if t.Failed() {
		t.Fatalf("the proof %s failed, so its figures are not saved", part)
	}
	folder := ""
	if Long() && os.Getenv("PLANTED") == "" { // the figures of a planted bug are worth nothing
		root, err := testkit.Root()
		if err != nil {
			t.Fatal(err)
		}
		folder = page.Folder(root)
	}
	page.Save(t, part, folder, r)
}
