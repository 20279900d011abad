package testkit

import (
	"archive/zip"
	"go/build"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Zones returns the names of all time zones that Go brings along, sorted.
func Zones(t *testing.T) (names []string) {
	t.Helper()
	archive, err := zip.OpenReader(filepath.Join(build.Default.GOROOT, "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = archive.Close() }()
	for _, f := range archive.File {
		if !strings.HasSuffix(f.Name, "/") {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return names
}
