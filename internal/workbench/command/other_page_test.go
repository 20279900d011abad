package command

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/cric-talk/guards"
)

// The program was built when limits.go said 5/1m.
var beforeChange = []guards.Guard{{Name: "photos-guard", Message: "m", Activities: []guards.Activity{{Name: "upload_photo", Limit: "5/1m"}}}}

// changedPage makes a project whose page says something else, and returns its folder.
func changedPage(t *testing.T, limit string) string {
	t.Helper()
	dir := t.TempDir()
	for file, text := range map[string]string{
		"go.mod":             "module example.com/mine\n",
		"limits/limits.go":   "package limits\n\nimport \"github.com/cric-talk/guards\"\n\nvar All = []guards.Guard{{Name: \"photos-guard\", Message: \"m\", Activities: []guards.Activity{{Name: \"upload_photo\", Limit: guards.Limit(\"" + limit + "\")}}}}\n",
		"cmd/guards/main.go": "package main\n\nfunc main() { command.Main(limits.All) }\n",
		"cmd/some/main.go":   "package main\n\nfunc main() { command.Main(limits.All[:1]) }\n",
		"docs/README.md":     "",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Commands that go by the program's limits tell that, once, and do what they do
// anyway.
func TestAProgramSaysThatItsFolderHasOtherLimits(t *testing.T) {
	mine := &debug.BuildInfo{Path: "example.com/mine/cmd/guards", Main: debug.Module{Path: "example.com/mine"}}
	other := &debug.BuildInfo{Path: "github.com/cric-talk/guards/cmd/guards", Main: debug.Module{Path: "github.com/cric-talk/guards"}}
	some := &debug.BuildInfo{Path: "example.com/mine/cmd/some", Main: debug.Module{Path: "example.com/mine"}} // takes other guards
	file := &debug.BuildInfo{Path: "command-line-arguments", Main: debug.Module{Path: "example.com/mine"}}    // go run FILE
	changed, same := changedPage(t, "50/1m"), changedPage(t, "5/1m")
	for _, tt := range []struct {
		folder, line string
		built        *debug.BuildInfo
		status       int
		warns        bool
	}{
		{changed, "limits list", mine, done, true},
		{changed, "limits --json", mine, done, true},
		{filepath.Join(changed, "docs"), "limits", mine, done, true},
		{changed, "check upload_photo --user u1", mine, done, true},
		{changed, "check upload_photo --user u1 --times 6", mine, refused, true},
		{changed, "limits list", other, done, true},
		{changed, "limits list", some, done, false},
		{changed, "limits list", file, done, false},
		{changed, "version", mine, done, false},
		{changed, "completion bash", mine, done, false},
		{changed, "limits --help", mine, done, false},
		{same, "limits list", mine, done, false},
		{same, "limits list", other, done, false},
		{t.TempDir(), "limits list", mine, done, false},
		{"", "limits list", mine, done, false},
	} {
		var out, log stream
		status := run(t.Context(), strings.Fields(tt.line), session{page: beforeChange, out: &out, err: &log, now: atPinned, folder: tt.folder, built: tt.built})
		want := 0
		if tt.warns {
			want = 1
		}
		warns := strings.Count(log.String(), "limits.go has other limits than this program: upload_photo has the limit 50/1m there and 5/1m here\n")
		if status != tt.status || warns != want || strings.Contains(log.String(), "go install ./cmd/guards") != tt.warns || out.String() == "" {
			t.Errorf("guards %s in %s, built as %s: status %d, %q, want %d, and a warning: %t", tt.line, tt.folder, tt.built.Path, status, log.String(), tt.status, tt.warns)
		}
	}
}
