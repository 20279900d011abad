package scenarios_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

// The examples of slots and of settling run as they stand: first for a user who may, then
// for one whose slots or tokens are used.
func TestSamplesOfSlots(t *testing.T) {
	run := map[string]func(testing.TB, []byte) []string{".mjs": node, ".go": goProgram, ".py": pythonProgram}
	for _, file := range []string{"slots/export.mjs", "slots/export.py", "slots/export.go", "reserve/complete.mjs", "reserve/complete.py", "reserve/complete.go"} {
		language := filepath.Ext(file)
		name := strings.TrimSuffix(filepath.Base(file), language)
		t.Run(name+language, func(t *testing.T) {
			command := run[language](t, fileOf(t, filepath.Join(root, "examples", filepath.FromSlash(file))))
			may, used := "page 1\npage 2\npage 3\n", `{"userId":"u1","activity":"export","count":3}`
			if name == "complete" {
				may, used = "1400 tokens\n", `{"userId":"u1","activity":"complete","count":97000}`
			}
			testkit.Retry(t, func(t testing.TB) { // the samples have the client's own timeouts
				for _, want := range []string{may, "429 " + tooMany + "\n"} {
					y := openYard(t)
					own := y.post("exports-guard", new(post))
					ops, left := "check release", int64(0)
					if name == "complete" {
						left = 1400
					}
					if want != may {
						ops, left = "check", noRelease
						if _, err := own.handler.Invoke(t.Context(), []byte(used)); err != nil {
							t.Fatal(err)
						}
					}
					cmd := exec.Command(command[0], append(command[1:], "u1")...)
					for name, value := range environment(t, y.url) {
						cmd.Env = append(cmd.Env, name+"="+value)
					}
					var failed bytes.Buffer
					cmd.Stderr = &failed
					if out, err := cmd.Output(); err != nil || string(out) != want {
						t.Errorf("%v, printed %q, want %q\n%s", err, out, want, &failed)
					}
					if gotOps, gotLeft := y.asked("exports-guard"); gotOps != ops || gotLeft != left {
						t.Errorf("the requests are %q and leave %d, want %q and %d", gotOps, gotLeft, ops, left)
					}
				}
			})
		})
	}
}

// pythonProgram returns a command that runs a program with the installed package.
func pythonProgram(t testing.TB, source []byte) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program.py")
	if err := os.WriteFile(file, source, 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{testkit.Package(t, "python", filepath.Join("venv", "bin", "python")), file}
}
