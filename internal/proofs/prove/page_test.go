package prove

import (
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

func TestThePageShowsTheSavedFigures(t *testing.T) {
	root, err := testkit.Root()
	if err != nil {
		t.Fatal(err)
	}
	if err := page.Shown(root); err != nil {
		t.Errorf("%v: run go run ./internal/proofs/prove/run -page", err)
	}
}
