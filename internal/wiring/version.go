package wiring

import (
	"runtime/debug"
	"strings"
	"sync"
)

// Version returns the release of Guards in this program, such as v0.1.0. It is empty in a program that was built without one:
// make build, make agent and SAM leave it out of what they build from a checkout, so that the same code stays the same.
var Version = sync.OnceValue(func() string {
	info, _ := debug.ReadBuildInfo()
	return versionOf(info)
})

func versionOf(info *debug.BuildInfo) string {
	const module = "github.com/cric-talk/guards"
	if info == nil {
		return ""
	}
	for _, m := range append(info.Deps, &info.Main) { // a project has Guards as a dependency
		if m.Path != module {
			continue
		}
		if m.Replace != nil { // a checkout
			m = m.Replace
		}
		return strings.TrimSuffix(m.Version, "(devel)")
	}
	return ""
}
