package pagefile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/pagefile"
	"github.com/cric-talk/guards/internal/testkit"
)

// write makes a page of one guard with this name, and returns its file.
func write(t *testing.T, guard string, at ...string) string {
	t.Helper()
	file := filepath.Join(at...)
	testkit.OK(t, os.MkdirAll(filepath.Dir(file), 0o750))
	testkit.OK(t, os.WriteFile(file, []byte(strings.Replace(page(`{"name": "b", "unlimited": true}`), "a-guard", guard, 1)), 0o600))
	return file
}

// The nearest folder with a page wins. A folder of that name is none.
func TestAbove(t *testing.T) {
	root := t.TempDir()
	outer := write(t, "outer-guard", root, "limits.json")
	inner := write(t, "inner-guard", root, "a", "b", "limits.json")
	testkit.OK(t, os.MkdirAll(filepath.Join(root, "a", "b", "c", "limits.json"), 0o750))
	for folder, want := range map[string]string{".": outer, "a": outer, "a/b": inner, "a/b/c": inner, "a/b/c/limits.json": inner} {
		if got := pagefile.Above(filepath.Join(root, folder)); got != want {
			t.Errorf("%s: %s, want %s", folder, got, want)
		}
	}
	if got := pagefile.Above(filepath.Join(t.TempDir(), "none")); got != "" {
		t.Errorf("%s, want none", got)
	}
}

// In Lambda, the page beside the code wins over the one of a layer. GUARDS_PAGE wins over both.
func TestThePageOfAProgram(t *testing.T) {
	places := []string{filepath.Join(t.TempDir(), "limits.json"), filepath.Join(t.TempDir(), "guards", "limits.json")}
	t.Setenv("GUARDS_PAGE", "")
	t.Setenv("LAMBDA_TASK_ROOT", "")
	expect := func(guard, mistake string) {
		t.Helper()
		page, err := pagefile.OfProgram()
		if mistake != "" {
			if err == nil || !strings.Contains(err.Error(), mistake) {
				t.Errorf("%+v, %v, want %s", page, err, mistake)
			}
			return
		}
		if err != nil || len(page) != 1 || page[0].Name != guard {
			t.Errorf("%+v, %v, want %s", page, err, guard)
		}
	}
	program := testkit.Must(os.Executable())(t)
	t.Setenv("AWS_LAMBDA_RUNTIME_API", "")
	expect("", "there is no page of limits, want "+filepath.Join(filepath.Dir(program), "limits.json")+", or another file in GUARDS_PAGE")
	t.Setenv("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:1")
	expect("", "there is no page of limits, want /var/task/limits.json or /opt/guards/limits.json, or another file in GUARDS_PAGE")
	t.Setenv("LAMBDA_TASK_ROOT", filepath.Dir(places[0]))
	usual := *pagefile.OfLayer
	*pagefile.OfLayer = places[1]
	t.Cleanup(func() { *pagefile.OfLayer = usual })
	expect("", "there is no page of limits, want "+places[0]+" or "+places[1]+", or another file in GUARDS_PAGE")
	write(t, "layer-guard", places[1])
	expect("layer-guard", "")
	write(t, "task-guard", places[0])
	expect("task-guard", "")
	testkit.OK(t, os.WriteFile(places[0], []byte("{}"), 0o600))
	expect("", places[0]+":1: guards is missing or empty")
	t.Setenv("GUARDS_PAGE", write(t, "other-guard", t.TempDir(), "other.json"))
	expect("other-guard", "")
	t.Setenv("GUARDS_PAGE", "no-such.json")
	expect("", `GUARDS_PAGE is "no-such.json", and there is no such file`)
}
