package release

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
)

// generic are the programs that are the same for every project, and read its limits.json. Each has
// its place in the archive. A project unpacks that into its folder dist.
var generic = []struct{ file, goarch string }{
	{"guard/bootstrap", "arm64"},
	{"jobs-guard/bootstrap", "arm64"},
	{"cleanup/bootstrap", "arm64"},
	{"delayed-jobs/bootstrap", "arm64"},
	{"agent-arm64/extensions/guards-agent", "arm64"},
	{"agent-amd64/extensions/guards-agent", "amd64"},
	{"local/amd64/guard/bootstrap", "amd64"},
	{"local/amd64/jobs-guard/bootstrap", "amd64"},
	{"local/amd64/cleanup/bootstrap", "amd64"},
	{"local/amd64/delayed-jobs/bootstrap", "amd64"},
}

// local are the files with which make deploy-local of a project starts an emulator, and deploys to it.
var local = []string{"local/deploy-local", "local/emulator.txt", "local/venv.txt", "local/with-aws"}

// generic packs the programs of projects without Go.
func (r *Release) generic() error {
	files, err := r.read(documents...)
	if err != nil {
		return err
	}
	var programs []*debug.BuildInfo
	for _, g := range generic {
		content, info, err := r.built(g.goarch, "generic", g.file)
		if err != nil {
			return fmt.Errorf("the program %s: %w", path.Dir(g.file), err)
		}
		files = append(files, file{name: g.file, mode: 0o755, content: content})
		programs = append(programs, info)
	}
	for _, name := range local {
		content, err := os.ReadFile(filepath.Join(r.Functions, "generic", filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		files = append(files, file{name: name, mode: 0o644, content: content})
	}
	content, err := zipped(files, r.date)
	if err != nil {
		return err
	}
	return r.add(fmt.Sprintf("guards_%s_generic.zip", r.version), content, programs...)
}
