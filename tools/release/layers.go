package release

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
)

// A layer is the agent for functions of one architecture.
type layer struct {
	resource string // in the template
	archive  string // its name in the archive of a release
	goarch   string
}

// layers are the layers of the template.
var layers = []layer{{"AgentLayerArm64", "layers/guards-agent-arm64.zip", "arm64"}, {"AgentLayerX86", "layers/guards-agent-x86.zip", "amd64"}}

// layerOf returns the layer that is a resource of the template.
func layerOf(resource string) (layer, bool) {
	for _, l := range layers {
		if l.resource == resource {
			return l, true
		}
	}
	return layer{}, false
}

// layer packs the agent as Lambda wants it: a program in the folder extensions, and no other
// file there.
func (r *Release) layer(l layer) ([]byte, *debug.BuildInfo, error) {
	content, info, err := r.built(l.goarch, "agent-"+l.goarch, "extensions", "guards-agent")
	if err != nil {
		return nil, nil, err
	}
	archive, err := zipped([]file{{name: "extensions/guards-agent", mode: 0o755, content: content}}, epoch)
	return archive, info, err
}

// built reads a program among the functions, which must be built for an architecture.
func (r *Release) built(goarch string, file ...string) ([]byte, *debug.BuildInfo, error) {
	at := filepath.Join(r.Functions, filepath.Join(file...))
	info, err := buildinfo.ReadFile(at)
	if err != nil {
		return nil, nil, err
	}
	if err := builtFor(info, at, goarch); err != nil {
		return nil, nil, err
	}
	content, err := os.ReadFile(at)
	return content, info, err
}

// builtFor returns an error if a program is for another architecture than the template says.
// Lambda does not look.
func builtFor(info *debug.BuildInfo, built, goarch string) error {
	for _, s := range info.Settings {
		if s.Key == "GOARCH" && s.Value != goarch {
			return fmt.Errorf("%s is built for %s, but the template says %s", built, s.Value, goarch)
		}
	}
	return nil
}
