package wiring

import (
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	guards := func(version string, replace *debug.Module) debug.Module {
		return debug.Module{Path: "github.com/cric-talk/guards", Version: version, Replace: replace}
	}
	released, checkout := guards("v0.1.0", nil), guards("v0.0.0", &debug.Module{Path: "../guards"})
	for name, tt := range map[string]struct {
		info *debug.BuildInfo
		want string
	}{
		"a program of a release":              {&debug.BuildInfo{Main: released}, "v0.1.0"},
		"a program of a checkout":             {&debug.BuildInfo{Main: guards("(devel)", nil)}, ""},
		"a project that requires a release":   {&debug.BuildInfo{Main: debug.Module{Path: "my-guards"}, Deps: []*debug.Module{{Path: "other"}, &released}}, "v0.1.0"},
		"a project that takes a checkout":     {&debug.BuildInfo{Main: debug.Module{Path: "my-guards"}, Deps: []*debug.Module{&checkout}}, ""},
		"a program that knows nothing of it":  {&debug.BuildInfo{}, ""},
		"a program without build information": {nil, ""},
	} {
		if got := versionOf(tt.info); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
