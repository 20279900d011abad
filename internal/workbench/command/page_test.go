package command

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cric-talk/guards/internal/pagefile"
	"github.com/cric-talk/guards/internal/testkit"
	app "github.com/cric-talk/guards/limits"
)

// ourProgram is the program of this module, and projects the one of a project in Go.
var (
	ourProgram = &debug.BuildInfo{Main: debug.Module{Path: "github.com/cric-talk/guards"}}
	projects   = &debug.BuildInfo{Main: debug.Module{Path: "example.com/mine"}}
)

const photosPage = `{
  "guards": [
    {
      "name": "photos-guard",
      "message": "m",
      "activities": [
        {"name": "upload_photo", "limit": "5/1m"}
      ]
    }
  ]
}
`

// pageFolder makes a folder with a limits.json.
func pageFolder(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	testkit.OK(t, os.CopyFS(dir, fstest.MapFS{"limits.json": {Data: []byte(text)}, "docs/README.md": {}}))
	return dir
}

// guardsIn runs the installed program in a folder.
func guardsIn(t *testing.T, folder string, args ...string) (status int, out, log string) {
	t.Helper()
	c := session{page: app.All, now: atPinned, folder: folder, built: ourProgram}
	c.findPage()
	return c.does(t, args...)
}

// The installed program goes by the page of the folder, and GUARDS_PAGE wins. The program of a
// project in Go keeps its own page.
func TestTheInstalledProgramFindsItsPage(t *testing.T) {
	photos := pageFolder(t, photosPage)
	other := filepath.Join(pageFolder(t, strings.ReplaceAll(photosPage, "photo", "video")), "limits.json")
	for _, tt := range []struct {
		folder, variable string
		built            *debug.BuildInfo
		want, file       string // the first guard, and the file
	}{
		{photos, "", ourProgram, "photos-guard", filepath.Join(photos, "limits.json")},
		{filepath.Join(photos, "docs"), "", ourProgram, "photos-guard", filepath.Join(photos, "limits.json")},
		{photos, other, ourProgram, "videos-guard", other},
		{t.TempDir(), other, ourProgram, "videos-guard", other},
		{t.TempDir(), "", ourProgram, "posts-guard", ""},
		{photos, other, projects, "posts-guard", ""},
		{"", "", nil, "posts-guard", ""},
	} {
		t.Setenv("GUARDS_PAGE", tt.variable)
		c := session{page: app.All, folder: tt.folder, built: tt.built}
		if c.findPage(); c.wrongPage != nil || c.page[0].Name != tt.want || c.pageFile != tt.file {
			t.Errorf("%+v: %s of %q, %v", tt, c.page[0].Name, c.pageFile, c.wrongPage)
		}
	}
}

func TestCommandsGoByThePage(t *testing.T) {
	t.Setenv("GUARDS_PAGE", "")
	dir := pageFolder(t, photosPage)
	for _, tt := range []struct {
		line          string
		status        int
		says, explain string // in the results, and beside them
	}{
		{"limits", done, "photos-guard  upload_photo  5/1m", "guards: the limits of " + filepath.Join(dir, "limits.json") + "\n"},
		{"limits --json", done, `"activity": "upload_photo"`, "guards: the limits of "},
		{"check upload_photo --user u1 --times 6", refused, "6  refused  5/5 used  m", ""},
		{"check create_post --user u1", wrongUse, "", `activity is "create_post", want one of upload_photo`},
		{"verify upload_photo", done, "", ""},
		{"limits --help", done, "guards limits set upload_photo", ""},
	} {
		status, out, log := guardsIn(t, dir, strings.Fields(tt.line)...)
		if status != tt.status || !strings.Contains(out, tt.says) || !strings.Contains(log, tt.explain) {
			t.Errorf("guards %s: %d, %s%s, want %d, %s and %s", tt.line, status, out, log, tt.status, tt.says, tt.explain)
		}
	}
}

// A page with mistakes stops each command that needs it, with all of them.
func TestAPageWithMistakesStopsCommands(t *testing.T) {
	t.Setenv("GUARDS_PAGE", "")
	dir := pageFolder(t, strings.NewReplacer(`"m"`, `1`, `"limit"`, `"limt"`).Replace(photosPage))
	for line, want := range map[string]int{"limits": wrongUse, "check upload_photo --user u1": wrongUse, "generate": wrongUse, "new a-guard b 5/1m": wrongUse, "version": done} {
		status, _, log := guardsIn(t, dir, strings.Fields(line)...)
		stops := strings.Contains(log, "limits.json:5: photos-guard: message is a number, want a text\n") &&
			strings.Contains(log, `limits.json:7: photos-guard, activity "upload_photo": unknown field "limt"`)
		if status != want || stops != (want != done) {
			t.Errorf("guards %s: %d, %s", line, status, log)
		}
	}
	into := filepath.Join(dir, "new")
	args := []string{"init", into, "--page", "json", "--guard", "photos-guard", "--activity", "upload_photo", "--limit", "5/1m", "--replace", "../../.."}
	if status, _, log := guardsIn(t, dir, args...); status != done {
		t.Errorf("guards init: %d, %s", status, log)
	}
	if status, _, log := guardsIn(t, t.TempDir(), "generate", "--dir", into); status != wrongUse || !strings.Contains(log, "which has a page of its own: "+into) {
		t.Errorf("generate --dir: %d, %s", status, log)
	}
	t.Setenv("GUARDS_PAGE", "no-such.json")
	if status, _, log := guardsIn(t, dir, "limits"); status != wrongUse || log != "guards: GUARDS_PAGE is \"no-such.json\", and there is no such file\n" {
		t.Errorf("%d, %s", status, log)
	}
}

// What new and generate write follows from the page, and needs no Go.
func TestNewAndGenerateOfAPage(t *testing.T) {
	t.Setenv("GUARDS_PAGE", "")
	dir := pageFolder(t, photosPage)
	expect := func(line string, want int, says ...string) {
		t.Helper()
		status, out, log := guardsIn(t, filepath.Join(dir, "docs"), shellWords(line)...)
		if status != want {
			t.Errorf("guards %s: %d, want %d", line, status, want)
		}
		testkit.Contains(t, "what guards "+line+" prints", out+log, says...)
	}
	expect("generate --check", wrongUse, "stale: 3 files", "run guards generate", "activities/activities.py", "activities/activities.ts")
	expect("new --guard photos-guard share_photo 5/1m --tier premium=10/1m --dry-run", done, `+        {"name": "share_photo", "limit": "5/1m", "tiers": {"premium": "10/1m"}}`)
	expect("new --guard photos-guard share_photo 5/1m --tier premium=10/1m", done, "share_photo of photos-guard: 5/1m; premium: 10/1m", "next, try it: guards check share_photo --user u1")
	expect("new --guard photos-guard share_photo 5/1m", wrongUse, "share_photo is already an activity of photos-guard; to change its limit, edit limits.json")
	expect("new jobs-guard sync reservoir", wrongUse)
	expect(`new jobs-guard sync_role "reservoir 10/10s ahead 15m"`, done)
	expect("generate --check", done, "nothing is stale")
	page, err := pagefile.Load(filepath.Join(dir, "limits.json"))
	if err != nil || len(page) != 2 || !page[1].DelayedQueue || page[0].Activities[1].Tiers["premium"] != "10/1m" {
		t.Errorf("%+v, %v", page, err)
	}
	list, err := os.ReadFile(filepath.Join(dir, "activities", "activities.json"))
	if err != nil || !strings.Contains(string(list), `"sync_role": {"guard": "jobs-guard", "window": 10}`) {
		t.Errorf("%s, %v", list, err)
	}
	for _, none := range []string{"activities/activities.go", "functions", "cmd"} {
		if _, err := os.Stat(filepath.Join(dir, none)); err == nil {
			t.Errorf("it makes %s", none)
		}
	}
}

// changedPage makes a project of photos whose page has this limit, and returns its folder.
func changedPage(t *testing.T, limit string) string {
	t.Helper()
	dir, files := t.TempDir(), fstest.MapFS{"docs/README.md": {}}
	for file, text := range map[string]string{
		"go.mod":             "module example.com/mine\n",
		"limits/limits.go":   "package limits\n\nimport \"github.com/cric-talk/guards\"\n\nvar All = []guards.Guard{{Name: \"photos-guard\", Message: \"m\", Activities: []guards.Activity{{Name: \"upload_photo\", Limit: guards.Limit(\"" + limit + "\")}}}}\n",
		"cmd/guards/main.go": "package main\n\nfunc main() { command.Main(limits.All) }\n",
		"cmd/some/main.go":   "package main\n\nfunc main() { command.Main(limits.All[:1]) }\n",
	} {
		files[file] = &fstest.MapFile{Data: []byte(text)}
	}
	testkit.OK(t, os.CopyFS(dir, files))
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
		c := session{page: photos, now: atPinned, folder: tt.folder, built: tt.built}
		status, out, log := c.does(t, strings.Fields(tt.line)...)
		want := 0
		if tt.warns {
			want = 1
		}
		warns := strings.Count(log, "limits.go has other limits than this program: upload_photo has the limit 50/1m there and 5/1m here\n")
		if status != tt.status || warns != want || strings.Contains(log, "go install ./cmd/guards") != tt.warns || out == "" {
			t.Errorf("guards %s in %s, built as %s: status %d, %q, want %d, and a warning: %t", tt.line, tt.folder, tt.built.Path, status, log, tt.status, tt.warns)
		}
	}
}
