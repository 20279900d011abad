package rules_test

import (
	"os"
	"path"
	"testing"

	"github.com/cric-talk/guards/internal/workbench/scaffold"
	"github.com/cric-talk/guards/limits"
)

// Each sentence names a file and a line, and what to add there. guards new writes all of it.
func TestEachGuardHasAllItsPieces(t *testing.T) {
	missing, err := scaffold.Missing(read(t, "template.yaml"), limits.All)
	if err != nil {
		t.Fatal(err)
	}
	for _, sentence := range missing {
		t.Error(sentence)
	}
	for _, g := range limits.All {
		for file, how := range map[string]string{
			"main.go":    "write it as functions/posts-guard/main.go",
			"event.json": "write an event that the guard accepts, as functions/posts-guard/event.json",
		} {
			name := path.Join("functions", g.Name, file)
			if _, err := os.Stat(name); err != nil {
				t.Errorf("%s:1: %s has no such file: %s", name, g.Name, how)
			}
		}
	}
}
