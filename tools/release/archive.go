package release

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"io/fs"
	"maps"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// A file goes into an archive.
type file struct {
	name    string // with slashes
	mode    fs.FileMode
	content []byte
}

func sorted(files []file) []file {
	return slices.SortedFunc(slices.Values(files), func(a, b file) int { return strings.Compare(a.name, b.name) })
}

// tarball packs files as a .tar.gz. All of them get the same time.
func tarball(files []file, date time.Time) ([]byte, error) {
	var b bytes.Buffer
	compressed := gzip.NewWriter(&b)
	w := tar.NewWriter(compressed)
	for _, f := range sorted(files) {
		header := tar.Header{Name: f.name, Size: int64(len(f.content)), Mode: int64(f.mode), ModTime: date, Format: tar.FormatPAX}
		if err := w.WriteHeader(&header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := cmp.Or(w.Close(), compressed.Close())
	return b.Bytes(), err
}

// zipped packs files as a .zip. All of them get the same time.
func zipped(files []file, date time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range sorted(files) {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: date}
		if path.Ext(f.name) == ".zip" {
			header.Method = zip.Store // it is compressed already
		}
		header.SetMode(f.mode)
		entry, err := w.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := entry.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// sbom returns a software bill of materials: Go's version and the modules that
// are linked into programs. The go command stores both in each program, so the
// list can't differ from what was built.
func (r *Release) sbom(archive string, programs []*debug.BuildInfo) ([]byte, error) {
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: r.date.Format(time.RFC3339),
		Component: &cyclonedx.Component{
			BOMRef: archive, Type: cyclonedx.ComponentTypeApplication, Name: archive, Version: r.version,
			PackageURL: purl("github.com/cric-talk/guards", "v"+r.version),
			Licenses:   &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}},
		},
	}
	components := []cyclonedx.Component{{
		BOMRef: "go", Type: cyclonedx.ComponentTypeLibrary, Name: "std", Version: programs[0].GoVersion, PackageURL: purl("std", programs[0].GoVersion),
	}}
	modules := map[string]*debug.Module{} // each once, by path
	for _, p := range programs {
		for _, m := range p.Deps {
			modules[m.Path] = m
		}
	}
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		m := modules[path]
		components = append(components, cyclonedx.Component{
			BOMRef: purl(m.Path, m.Version), Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: purl(m.Path, m.Version),
		})
	}
	bom.Components = &components
	var b bytes.Buffer
	err := cyclonedx.NewBOMEncoder(&b, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return b.Bytes(), err
}

// purl returns the package URL of a module, which scanners look up.
func purl(path, version string) string { return "pkg:golang/" + path + "@" + version }
