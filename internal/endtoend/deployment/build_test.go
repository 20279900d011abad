package deployment_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

// The same sources give the same binary and the same zip in any directory and at
// any time. So a running function can be traced to its commit, and deploying an
// unchanged commit changes nothing.
func TestTemplateBuildIsReproducible(t *testing.T) {
	if os.Getenv("TEMPLATE_TOOLS") == "" {
		t.Skip("make template runs this test, which needs SAM")
	}
	const function = "CleanupFunction"
	here, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	var zips [][]byte
	for _, dir := range []string{here, testkit.Copy(t)} {
		artifacts, zip := t.TempDir(), filepath.Join(t.TempDir(), "function")
		run(t, nil, "make", "-C", dir, "build-"+function, "ARTIFACTS_DIR="+artifacts)
		run(t, nil, ".cache/venv/bin/python", "-c",
			"import sys; from samcli.lib.package.utils import make_zip; make_zip(*sys.argv[1:])", zip, artifacts)
		b, err := os.ReadFile(zip + ".zip")
		if err != nil {
			t.Fatal(err)
		}
		zips = append(zips, b)
	}
	if !bytes.Equal(zips[0], zips[1]) || len(zips[0]) < 1<<20 {
		t.Errorf("two builds of the same sources give different zips of %d and %d bytes", len(zips[0]), len(zips[1]))
	}
}
