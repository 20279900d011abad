// Package release builds the files of a release into one folder:
//
//	guards_VERSION_OS_ARCH.tar.gz   the program guards; a .zip for Windows
//	guards_VERSION_generic.zip      the programs of projects without Go: functions for arm64, and the agent; what deploys them to an emulator
//	guards_VERSION_aws_arm64.zip    the functions, the agent's layers and a template that deploys them
//	*.cdx.json                      the modules in each archive, in CycloneDX's format
//	checksums.txt                   what sha256sum --check reads
//
// The same commit gives the same bytes on every machine with the same version
// of Go: times in an archive are the commit's, and names are sorted. Nothing is
// published.
package release

import (
	"cmp"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// A Target is a platform of the program guards, in Go's terms.
type Target struct{ OS, Arch string }

// Targets lists the platforms of a release.
var Targets = []Target{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
}

// A Release is the work to do. All exported fields but NoAWS must be set.
type Release struct {
	Source    string // the checkout
	Functions string // the folder with NAME/bootstrap for each function, built for arm64, and agent-GOARCH/extensions/guards-agent; both again in generic
	Out       string // the folder for the release. It is replaced
	Targets   []Target
	Log       io.Writer // gets a line for each file
	NoAWS     bool      // leaves out the archive of this repository's own functions, which then need not be built

	version string                       // of the programs, without the v; known after the first build
	date    time.Time                    // of their commit
	sums    map[string][sha256.Size]byte // of the files, by name
}

// Build writes the release. An error names the file or the command that failed.
func (r *Release) Build(ctx context.Context) error {
	if len(r.Targets) == 0 {
		return errors.New("a release needs at least one target")
	}
	if err := cmp.Or(os.RemoveAll(r.Out), os.MkdirAll(r.Out, 0o755)); err != nil {
		return err
	}
	r.sums = make(map[string][sha256.Size]byte)
	for _, t := range r.Targets {
		if err := r.program(ctx, t); err != nil {
			return fmt.Errorf("the program for %s/%s: %w", t.OS, t.Arch, err)
		}
	}
	if err := r.generic(); err != nil {
		return err
	}
	if !r.NoAWS {
		if err := r.aws(); err != nil {
			return err
		}
	}
	var sums strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.sums)) {
		fmt.Fprintf(&sums, "%x  %s\n", r.sums[name], name)
	}
	return r.write("checksums.txt", []byte(sums.String()))
}

// documents are in each archive.
var documents = []string{"CHANGELOG.md", "LICENSE", "README.md"}

// program builds the program for one target and packs it.
func (r *Release) program(ctx context.Context, t Target) error {
	dir, err := os.MkdirTemp("", "guards-release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	name := "guards"
	if t.OS == "windows" {
		name += ".exe"
	}
	built := filepath.Join(dir, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", built, "./cmd/guards")
	cmd.Dir = r.Source
	// GOAMD64 and GOARM64 of this machine must not raise what the user's processor needs.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.OS, "GOARCH="+t.Arch, "GOAMD64=v1", "GOARM64=v8.0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	info, err := buildinfo.ReadFile(built)
	if err != nil {
		return err
	}
	if err := r.setOrigin(info); err != nil {
		return err
	}
	folder := fmt.Sprintf("guards_%s_%s_%s", r.version, t.OS, t.Arch)
	files, err := r.read(documents...)
	if err != nil {
		return err
	}
	program, err := os.ReadFile(built)
	if err != nil {
		return err
	}
	files = append(files, file{name: name, mode: 0o755, content: program})
	pack, archive := tarball, folder+".tar.gz"
	if t.OS == "windows" {
		pack, archive = zipped, folder+".zip"
	}
	for i := range files {
		files[i].name = folder + "/" + files[i].name
	}
	content, err := pack(files, r.date)
	if err != nil {
		return err
	}
	return r.add(archive, content, info)
}

// setOrigin sets what the go command stored about the commit. A checkout with
// changes is an error, because the archives would not match the commit.
func (r *Release) setOrigin(info *debug.BuildInfo) error {
	settings := make(map[string]string)
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if settings["vcs.time"] == "" {
		return errors.New("the go command found no commit. Build a release in a clone of the repository")
	}
	if settings["vcs.modified"] == "true" {
		return errors.New("the checkout has changes that are not committed: commit or stash them first")
	}
	date, err := time.Parse(time.RFC3339, settings["vcs.time"])
	r.version, r.date = strings.TrimPrefix(info.Main.Version, "v"), date.UTC()
	return err
}

func (r *Release) read(names ...string) (files []file, err error) {
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(r.Source, name))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: name, mode: 0o644, content: content})
	}
	return files, nil
}

// add writes an archive and the list of the modules in it.
func (r *Release) add(archive string, content []byte, programs ...*debug.BuildInfo) error {
	bom, err := r.sbom(archive, programs)
	if err != nil {
		return err
	}
	return errors.Join(r.write(archive, content), r.write(archive+".cdx.json", bom))
}

// write writes a file of the release, and a line about it.
func (r *Release) write(name string, content []byte) error {
	r.sums[name] = sha256.Sum256(content)
	_, _ = fmt.Fprintf(r.Log, "%8.1f KB  %s\n", float64(len(content))/1000, name)
	return os.WriteFile(filepath.Join(r.Out, name), content, 0o644)
}

// epoch is the time of a function's files. It is not the commit's time, so that
// a commit that does not change a function does not change its archive, and a
// deployment leaves the function alone.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// aws packs the functions and the template that deploys them.
func (r *Release) aws() error {
	files, err := r.read(append([]string{"template.yaml"}, documents...)...)
	if err != nil {
		return err
	}
	template, functions, err := packaged(string(files[0].content), r.version)
	if err != nil {
		return fmt.Errorf("template.yaml: %w", err)
	}
	files[0].content = []byte(template)
	var programs []*debug.BuildInfo
	for _, name := range functions {
		archive, info, err := r.packed("arm64", name, "bootstrap")
		if err != nil {
			return fmt.Errorf("the function %s: %w", name, err)
		}
		files = append(files, file{name: "functions/" + name + ".zip", mode: 0o644, content: archive})
		programs = append(programs, info)
	}
	for _, l := range layers {
		archive, info, err := r.packed(l.goarch, "agent-"+l.goarch, "extensions/guards-agent")
		if err != nil {
			return fmt.Errorf("the layer %s: %w", l.resource, err)
		}
		files = append(files, file{name: l.archive, mode: 0o644, content: archive})
		programs = append(programs, info)
	}
	content, err := zipped(files, r.date)
	if err != nil {
		return err
	}
	return r.add(fmt.Sprintf("guards_%s_aws_arm64.zip", r.version), content, programs...)
}

// packaged returns the template without what builds the functions and layers, and
// the functions' names. Each names its archive instead, which sam deploy uploads.
func packaged(template, version string) (text string, functions []string, err error) {
	var kept []string
	resource, described, packed := "", false, 0
	for line := range strings.SplitSeq(template, "\n") {
		switch {
		case line == "  AWS::ServerlessRepo::Application:":
			line += "\n    SemanticVersion: " + version
			described = true
		case strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "   "):
			resource = strings.Trim(line, " :")
		case line == "    Type: AWS::Serverless::Function":
			functions = append(functions, folder(resource))
		case line == "    CodeUri: .", line == "      BuildMethod: makefile", strings.HasPrefix(line, "    Metadata: {BuildMethod: makefile, BuildArchitecture: "):
			continue
		case line == "      ContentUri: .":
			if i := slices.IndexFunc(layers, func(l layer) bool { return l.resource == resource }); i >= 0 {
				line = "      ContentUri: " + layers[i].archive
				packed++
			}
		case line == "    Properties:" && len(functions) > 0 && functions[len(functions)-1] == folder(resource):
			line += "\n      CodeUri: functions/" + folder(resource) + ".zip"
		}
		kept = append(kept, line)
	}
	if len(functions) == 0 || packed != len(layers) || !described {
		return "", nil, errors.New("it has no functions, other layers, or no metadata of the Serverless Application Repository")
	}
	return strings.Join(kept, "\n"), functions, nil
}

var boundary = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// folder returns the folder of a function: posts-guard for PostsGuardFunction.
func folder(resource string) string {
	name := strings.TrimSuffix(resource, "Function")
	return strings.ToLower(boundary.ReplaceAllString(name, "$1-$2"))
}

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
