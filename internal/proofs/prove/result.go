package prove

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cric-talk/guards/internal/proofs/findings"

	"github.com/cric-talk/guards/internal/testkit"
)

// Save saves the result of a part of the proof in internal/proofs/prove/figures, if the
// long bounds apply. Otherwise it only logs the figures. It fails the test if
// part has no entry in Parts, or if the test has failed already.
func Save(t testing.TB, part string, r findings.Result) {
	t.Helper()
	p, err := find(part)
	if err != nil {
		t.Fatal(err)
	}
	if t.Failed() {
		t.Fatalf("the proof %s failed, so its figures are not saved", part)
	}
	for _, f := range r.Figures {
		t.Logf("%s: %s", f.What, f.Value)
	}
	if !Long() || os.Getenv("PLANTED") != "" { // the figures of a planted bug are worth nothing
		return
	}
	root, err := testkit.Root()
	if err != nil {
		t.Fatal(err)
	}
	s := findings.New(r, "make prove PART="+part)
	if s.Sources, err = findings.Hash(root, p.Sources); err != nil {
		t.Fatal(err)
	}
	if err := findings.Write(p.file(root), s); err != nil {
		t.Fatal(err)
	}
}

func (p Part) file(root string) string {
	return filepath.Join(root, "internal", "proofs", "prove", "figures", p.Name+".json")
}
