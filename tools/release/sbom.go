package release

import (
	"bytes"
	"runtime/debug"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// sbom returns a software bill of materials: Go's version and the modules that
// are linked into programs. The go command stores both in each program, so the
// list can't differ from what was built.
func sbom(archive string, from origin, programs []*debug.BuildInfo) ([]byte, error) {
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: from.date.Format(time.RFC3339),
		Component: &cyclonedx.Component{
			BOMRef: archive, Type: cyclonedx.ComponentTypeApplication, Name: archive, Version: from.version,
			PackageURL: purl("github.com/cric-talk/guards", "v"+from.version),
			Licenses:   &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}},
		},
	}
	components := []cyclonedx.Component{{
		BOMRef: "go", Type: cyclonedx.ComponentTypeLibrary, Name: "std", Version: programs[0].GoVersion, PackageURL: purl("std", programs[0].GoVersion),
	}}
	for _, m := range modules(programs) {
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
