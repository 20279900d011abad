package deployment_test

import (
	"archive/zip"
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

// built returns the folder in which make builds a resource in a checkout, and SAM's zip of it.
func built(t *testing.T, checkout, resource string) (artifacts, packed string) {
	t.Helper()
	artifacts, name := t.TempDir(), filepath.Join(t.TempDir(), "packed")
	run(t, nil, "make", "-C", checkout, "build-"+resource, "ARTIFACTS_DIR="+artifacts)
	run(t, nil, ".cache/venv/bin/python", "-c", "import sys; from samcli.lib.package.utils import make_zip; make_zip(*sys.argv[1:])", name, artifacts)
	return artifacts, name + ".zip"
}

// A layer holds one program, for the processor that its name says, and SAM's zip keeps that it is a program. Lambda checks
// neither, and starts every file of the folder.
func TestTemplateLayersHoldOneProgram(t *testing.T) {
	if os.Getenv("TEMPLATE_TOOLS") == "" {
		t.Skip("make template runs this test, which needs SAM")
	}
	for layer, machine := range map[string]elf.Machine{"AgentLayerArm64": elf.EM_AARCH64, "AgentLayerX86": elf.EM_X86_64} {
		artifacts, packed := built(t, ".", layer)
		archive := testkit.Must(zip.OpenReader(packed))(t)
		defer archive.Close() //nolint:errcheck // it is only read
		if len(archive.File) != 1 || archive.File[0].Name != "extensions/guards-agent" || archive.File[0].Mode().Perm()&0o111 != 0o111 {
			t.Fatalf("%s has %d files; the first is %s of mode %v", layer, len(archive.File), archive.File[0].Name, archive.File[0].Mode())
		}
		program, err := elf.Open(filepath.Join(artifacts, "extensions", "guards-agent"))
		if err != nil || program.Machine != machine {
			t.Errorf("%s: %v, %v, want a program for %v", layer, program, err, machine)
		}
	}
}

// The same sources give the same binary and the same zip in any directory and at
// any time. So a running function can be traced to its commit, and deploying an
// unchanged commit changes nothing.
func TestTemplateBuildIsReproducible(t *testing.T) {
	if os.Getenv("TEMPLATE_TOOLS") == "" {
		t.Skip("make template runs this test, which needs SAM")
	}
	var zips [][]byte
	for _, dir := range []string{".", testkit.Copy(t)} {
		_, packed := built(t, dir, "CleanupFunction")
		zips = append(zips, testkit.Must(os.ReadFile(packed))(t))
	}
	if !bytes.Equal(zips[0], zips[1]) || len(zips[0]) < 1<<20 {
		t.Errorf("two builds of the same sources give different zips of %d and %d bytes", len(zips[0]), len(zips[1]))
	}
}
