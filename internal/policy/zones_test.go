package policy_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

// The machine that runs a guard needs no time zones of its own, as Lambda and an empty
// container have none. The program runs in a folder without any other file.
func TestAProgramWithoutZoneFilesKnowsEachZone(t *testing.T) {
	folder := t.TempDir()
	copyProgram(t, lambdatest.Build(t, "./internal/policy/testdata/zones"), filepath.Join(folder, "zones"))
	const want = "started\nEurope/Berlin 22:00\nAsia/Kathmandu 18:15\nUTC 00:00\n"
	program := []string{"chroot", folder, "/zones", "Europe/Berlin", "Asia/Kathmandu", "UTC"}
	for _, before := range [][]string{nil, {"unshare", "--user", "--map-root-user"}} { // only root, or who seems to be, may use chroot
		command := slices.Concat(before, program)
		cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
		cmd.Env = []string{}
		out, err := cmd.CombinedOutput()
		if !strings.HasPrefix(string(out), "started\n") {
			t.Logf("%s: %v, %s", command, err, out)
			continue
		}
		if string(out) != want {
			t.Errorf("%v: %s, want %s", err, out, want)
		}
		return
	}
	t.Skip("this machine can't run a program in a folder of its own: it has no chroot, or allows it to nobody but root")
}

func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o700)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

// Each deployed function, and the command line, carries the zones along.
func TestEachProgramHasTheZones(t *testing.T) {
	const module = "github.com/cric-talk/guards/"
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.ImportPath}} {{.Deps}}", module+"functions/...", module+"cmd/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for program := range strings.Lines(string(out)) {
		if name, deps, _ := strings.Cut(program, " "); !strings.Contains(deps, " time/tzdata ") {
			t.Errorf("%s: time/tzdata is not linked", name)
		}
	}
}
