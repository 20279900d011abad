package lambdatest_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

func TestBuildCompilesAPackageOnce(t *testing.T) {
	t.Parallel()
	first := probe(t)
	before, err := os.Stat(first)
	if err != nil {
		t.Fatal(err)
	}
	second := lambdatest.Build(t, "github.com/cric-talk/guards/internal/testkit/lambdatest/testdata/probe")
	if third := probe(t); third != first || second == "" {
		t.Errorf("Build returned %s, %s and %s, want the first and the last to be equal", first, second, third)
	}
	if after, err := os.Stat(first); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the binary was built again: %v, %v", after.ModTime(), err)
	}
	a, errA := os.ReadFile(first)
	b, errB := os.ReadFile(second)
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Errorf("a path and an import path of one package give different binaries: %v, %v", errA, errB)
	}
}
