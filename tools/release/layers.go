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

// packed packs one program of a folder as Lambda wants it: a function's is bootstrap, and the agent's is
// in the folder extensions, with no other file there.
func (r *Release) packed(goarch, folder, name string) ([]byte, *debug.BuildInfo, error) {
	content, info, err := r.built(goarch, folder, name)
	if err != nil {
		return nil, nil, err
	}
	archive, err := zipped([]file{{name: name, mode: 0o755, content: content}}, epoch)
	return archive, info, err
}

// built reads a program in a folder among the functions. It must be built for the architecture that the
// template says, because Lambda does not look.
func (r *Release) built(goarch, folder, name string) ([]byte, *debug.BuildInfo, error) {
	at := filepath.Join(r.Functions, folder, filepath.FromSlash(name))
	info, err := buildinfo.ReadFile(at)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range info.Settings {
		if s.Key == "GOARCH" && s.Value != goarch {
			return nil, nil, fmt.Errorf("%s is built for %s, but the template says %s", at, s.Value, goarch)
		}
	}
	content, err := os.ReadFile(at)
	return content, info, err
}
