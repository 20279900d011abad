package release_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
	"github.com/cric-talk/guards/tools/release"
)

// The test makes a release of this checkout for this platform: compiling for the
// others takes minutes. All functions get the same small program, because only
// the archives matter here.
func TestRelease(t *testing.T) {
	testkit.Projects.Need(t)
	if err := exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD").Run(); err != nil {
		t.Skip("a release needs a Git checkout")
	}
	source := filepath.Join(t.TempDir(), "guards") // a clone, because the working copy may have changes
	run(t, ".", "git", "clone", "--quiet", "--no-local", "../..", source)
	functions := t.TempDir()
	built := filepath.Join(functions, "bootstrap")
	run(t, source, "env", slices.Concat([]string{"GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0", "go", "build", "-o", built}, lambdatest.Flags,
		[]string{"./tools/release/testdata/bootstrap"})...)
	names, err := filepath.Glob(filepath.Join(source, "functions", "*"))
	if err != nil || len(names) < 5 {
		t.Fatal(names, err)
	}
	for i, name := range names {
		names[i] = filepath.Base(name)
		link := filepath.Join(functions, names[i], "bootstrap")
		testkit.OK(t, errors.Join(os.MkdirAll(filepath.Dir(link), 0o750), os.Link(built, link)))
	}

	for _, arch := range []string{"arm64", "amd64"} {
		run(t, source, "make", "build-AgentLayer"+map[string]string{"arm64": "Arm64", "amd64": "X86"}[arch], "ARTIFACTS_DIR="+filepath.Join(functions, "agent-"+arch))
	}

	generic := []string{
		"agent-amd64/extensions/guards-agent", "agent-arm64/extensions/guards-agent", "cleanup/bootstrap", "delayed-jobs/bootstrap",
		"guard/bootstrap", "jobs-guard/bootstrap", "local/amd64/cleanup/bootstrap", "local/amd64/delayed-jobs/bootstrap",
		"local/amd64/guard/bootstrap", "local/amd64/jobs-guard/bootstrap", "local/deploy-local", "local/emulator.txt", "local/venv.txt", "local/with-aws",
	}
	for _, place := range generic {
		from, link := built, filepath.Join(functions, "generic", filepath.FromSlash(place))
		if agent, _, ok := strings.Cut(place, "/extensions/"); ok {
			from = filepath.Join(functions, agent, "extensions", "guards-agent")
		} else if strings.HasPrefix(place, "local/amd64/") {
			from = filepath.Join(functions, "agent-amd64", "extensions", "guards-agent")
		}
		testkit.OK(t, errors.Join(os.MkdirAll(filepath.Dir(link), 0o750), os.Link(from, link)))
	}

	out := filepath.Join(t.TempDir(), "release")
	targets := []release.Target{{OS: runtime.GOOS, Arch: runtime.GOARCH}}
	r := release.Release{Source: source, Functions: functions, Out: out, Targets: targets, Log: t.Output()}
	testkit.OK(t, r.Build(t.Context()))
	first := filesOf(t, os.DirFS(out))
	testkit.OK(t, r.Build(t.Context()))
	if !maps.EqualFunc(first, filesOf(t, os.DirFS(out)), bytes.Equal) {
		t.Error("a second run gives other bytes")
	}

	archives, err := filepath.Glob(filepath.Join(out, "guards_*_aws_arm64.zip"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("the archives for AWS are %q, %v", archives, err)
	}
	version := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(archives[0]), "guards_"), "_aws_arm64.zip")
	checksums(t, first)
	t.Run("program", func(t *testing.T) {
		program(t, first, fmt.Sprintf("guards_%s_%s_%s", version, runtime.GOOS, runtime.GOARCH), version)
	})
	t.Run("generic", func(t *testing.T) {
		got := unpack(t, ".zip", first["guards_"+version+"_generic.zip"])
		want := append([]string{"CHANGELOG.md", "LICENSE", "README.md"}, generic...)
		if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
			t.Errorf("the archive has %q, want %q", names, want)
		}
		bom(t, first["guards_"+version+"_generic.zip.cdx.json"], version, "github.com/aws/aws-sdk-go-v2")
	})
	t.Run("aws", func(t *testing.T) { aws(t, first, "guards_"+version+"_aws_arm64.zip", names, version) })
	_ = os.WriteFile(filepath.Join(source, "README.md"), []byte("changed"), 0o600)
	if err := r.Build(t.Context()); err == nil || !strings.HasSuffix(err.Error(), "the checkout has changes that are not committed: commit or stash them first") {
		t.Errorf("a release of a changed checkout: %v, want an error", err)
	}
}

// run runs a program in a folder. If it fails, the test ends.
func run(t *testing.T, folder, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
}

// program checks the archive of this platform, and runs the program in it.
func program(t *testing.T, files map[string][]byte, name, version string) {
	archive, program := name+".tar.gz", "guards"
	if runtime.GOOS == "windows" {
		archive, program = name+".zip", "guards.exe"
	}
	got := unpack(t, archive, files[archive])
	want := []string{name + "/CHANGELOG.md", name + "/LICENSE", name + "/README.md", name + "/" + program}
	if !slices.Equal(slices.Sorted(maps.Keys(got)), want) {
		t.Fatalf("%s has %q, want %q", archive, slices.Sorted(maps.Keys(got)), want)
	}
	bom(t, files[archive+".cdx.json"], version, "github.com/alecthomas/kong")
	path := filepath.Join(t.TempDir(), program)
	testkit.OK(t, os.WriteFile(path, got[name+"/"+program], 0o700))
	out, err := exec.CommandContext(t.Context(), path, "version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "guards v"+version+" (commit ") {
		t.Errorf("guards version says %q, %v, want the version %s", out, err, version)
	}
}

// aws checks the archive of the functions: each function of the template names
// an archive that is there, and that has a program for Lambda.
func aws(t *testing.T, files map[string][]byte, archive string, names []string, version string) {
	got := unpack(t, archive, files[archive])
	var template struct {
		Metadata  map[string]map[string]any `yaml:"Metadata"`
		Resources map[string]struct {
			Type       string         `yaml:"Type"`
			Metadata   map[string]any `yaml:"Metadata"`
			Properties map[string]any `yaml:"Properties"`
		} `yaml:"Resources"`
	}
	testkit.OK(t, yaml.Unmarshal(got["template.yaml"], &template))
	about := template.Metadata["AWS::ServerlessRepo::Application"]
	for _, key := range []string{"LicenseUrl", "ReadmeUrl"} {
		if name, _ := about[key].(string); got[name] == nil {
			t.Errorf("%s is %v, which is not in the archive", key, about[key])
		}
	}
	if about["SemanticVersion"] != version {
		t.Errorf("the version is %v, want %s", about["SemanticVersion"], version)
	}
	var deployed []string
	for resource, r := range template.Resources {
		if r.Type != "AWS::Serverless::Function" {
			continue
		}
		name, _ := r.Properties["CodeUri"].(string)
		bootstrap := unpack(t, name, got[name])["bootstrap"]
		if !bytes.HasPrefix(bootstrap, []byte("\x7fELF")) || r.Metadata["BuildMethod"] != nil {
			t.Errorf("%s: no program in %q, or a BuildMethod", resource, name)
		}
		deployed = append(deployed, strings.TrimSuffix(strings.TrimPrefix(name, "functions/"), ".zip"))
	}
	if slices.Sort(deployed); !slices.Equal(deployed, names) {
		t.Errorf("the template deploys %q, want %q", deployed, names)
	}
	for resource, machine := range map[string]elf.Machine{"AgentLayerArm64": elf.EM_AARCH64, "AgentLayerX86": elf.EM_X86_64} {
		name, _ := template.Resources[resource].Properties["ContentUri"].(string)
		checkLayer(t, got[name], machine)
		if template.Resources[resource].Metadata != nil {
			t.Errorf("%s has %v, want no BuildMethod", resource, template.Resources[resource].Metadata)
		}
	}
	bom(t, files[archive+".cdx.json"], version, "github.com/aws/aws-lambda-go")
}

// checkLayer checks a layer's archive: one program for this processor, which Lambda can start. Lambda does not look at
// the architecture, and starts every file in the folder.
func checkLayer(t *testing.T, archive []byte, machine elf.Machine) {
	t.Helper()
	r := testkit.Must(zip.NewReader(bytes.NewReader(archive), int64(len(archive))))(t)
	if len(r.File) != 1 || r.File[0].Name != "extensions/guards-agent" || r.File[0].Mode() != 0o755 {
		t.Fatalf("the layer has %d files; the first is %s of mode %v", len(r.File), r.File[0].Name, r.File[0].Mode())
	}
	content := testkit.Must(fs.ReadFile(r, "extensions/guards-agent"))(t)
	program, err := elf.NewFile(bytes.NewReader(content))
	if err != nil || program.Machine != machine || program.Section(".interp") != nil {
		t.Errorf("the program is %+v, %v, want a static one for %v", program.FileHeader, err, machine)
	}
}

// bom checks a list of modules: it names the release, and it has a module that
// the programs surely need.
func bom(t *testing.T, content []byte, version, module string) {
	t.Helper()
	var list struct {
		BOMFormat  string
		Metadata   struct{ Component struct{ Version string } }
		Components []struct{ Name, Version, PURL string }
	}
	testkit.OK(t, json.Unmarshal(content, &list))
	if list.BOMFormat != "CycloneDX" || list.Metadata.Component.Version != version {
		t.Errorf("the list is %s for %s, want CycloneDX for %s", list.BOMFormat, list.Metadata.Component.Version, version)
	}
	for _, c := range list.Components {
		if c.Name == module && c.PURL == "pkg:golang/"+module+"@"+c.Version {
			return
		}
	}
	t.Errorf("%s is not in the list: %+v", module, list.Components)
}

// checksums checks that checksums.txt covers each other file.
func checksums(t *testing.T, files map[string][]byte) {
	t.Helper()
	var want strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name != "checksums.txt" {
			fmt.Fprintf(&want, "%x  %s\n", sha256.Sum256(files[name]), name)
		}
	}
	if got := string(files["checksums.txt"]); got != want.String() {
		t.Errorf("checksums.txt is\n%s\nwant\n%s", got, want.String())
	}
}
