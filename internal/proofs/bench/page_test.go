//go:build unix

package bench

import (
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

func TestThePagesShowTheSavedResults(t *testing.T) {
	root, err := testkit.Root()
	if err != nil {
		t.Fatal(err)
	}
	if err := page.Shown(root); err != nil {
		t.Errorf("%v: run go run ./internal/proofs/bench/run -page", err)
	}
}
