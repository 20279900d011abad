package scaffold

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/pagefile"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// The same page has the same template in JSON and in Go. Only the build, the folder of the code
// and GUARD_NAME differ.
func TestTheTemplateOfAPageInJSON(t *testing.T) {
	code := regexp.MustCompile(`(?m)^  (\w+):\n(?: {4}.*\n)*? {6}(?:CodeUri|ContentUri): (.*)\n(?: {6}Environment: {Variables: {GUARD_NAME: ([a-z-]+))?`)
	differs := regexp.MustCompile(`(?m)^ *(CodeUri|ContentUri|SkipBuild|BuildMethod|Metadata: {|Environment: {Variables: {GUARD_NAME: [a-z-]+}}).*\n|GUARD_NAME: [a-z-]+, `)
	for name, all := range map[string]limits.Guards{"some": some, "cricket": cricket.All, "without a queue": cricket.All[:3]} {
		var inGo, inJSON strings.Builder
		for _, part := range documents[0].parts {
			inGo.WriteString(text(part, all, true))
			inJSON.WriteString(text(part, all, false))
		}
		want := [][]string{{"DelayedJobsFunction", "dist/delayed-jobs", ""}, {"CleanupFunction", "dist/cleanup", ""}, {"AgentLayerArm64", "dist/agent-arm64", ""}, {"AgentLayerX86", "dist/agent-amd64", ""}}
		if name == "without a queue" {
			want = want[1:]
		}
		for _, g := range all {
			want = append(want, []string{LogicalID(g.Name) + "Function", map[bool]string{true: "dist/jobs-guard", false: "dist/guard"}[g.DelayedQueue], g.Name})
		}
		var got [][]string
		for _, found := range code.FindAllStringSubmatch(inJSON.String(), -1) {
			got = append(got, found[1:])
		}
		testkit.Same(t, name+": resources, the folders of their code, and GUARD_NAME", want, got, cmpopts.SortSlices(func(a, b []string) bool { return a[0] < b[0] }))
		testkit.Same(t, name, differs.ReplaceAllString(inGo.String(), ""), differs.ReplaceAllString(inJSON.String(), ""))
	}
}

// A new project without Go has no file of Go. It follows from its page, also after a change.
func TestInitPage(t *testing.T) {
	r := Request{Guard: "photos-guard", New: true, Activity: guards.Activity{Name: "upload_photo", Limit: "5/1m", Tiers: guards.Tiers{"pro": "9/1m"}}}
	for origin, says := range map[Origin][]string{
		{Version: "v0.0.0", Replace: "../guards"}: {"PROGRAMS ?= ../guards/dist/generic\n", "go build -o /usr/local/bin/guards ./cmd/guards"},
		{Version: "v1.2.3"}:                       {"releases/download/v$(VERSION)/guards_$(VERSION)_generic.zip", "VERSION := 1.2.3\n", "download/v1.2.3/guards_1.2.3_linux_amd64.tar.gz"},
	} {
		a, changes, err := InitPage("my-guards", r, origin)
		if err != nil || a.Name != "upload_photo" {
			t.Fatal(a, err)
		}
		dir, texts := t.TempDir(), ""
		testkit.OK(t, Create(dir, changes))
		var names []string
		for _, c := range changes {
			names = append(names, c.File)
			texts += c.After
			if c.What == "" || !c.New || path.Ext(c.File) == ".go" {
				t.Errorf("%+v", c)
			}
		}
		slices.Sort(names)
		want := []string{
			".github/workflows/ci.yml", ".gitignore", "Makefile", "README.md", "activities/activities.json", "activities/activities.py", "activities/activities.ts",
			"limits.json", "samconfig.toml", "template.yaml",
		}
		if !slices.Equal(names, want) {
			t.Errorf("the files are %q, want %q", names, want)
		}
		testkit.Contains(t, "the project", texts, append(says, "follows from limits.json: change that file, and run\n# guards generate.", "| photos-guard | `upload_photo` | `5/1m` | pro: `9/1m` |", "GUARD_NAME: photos-guard")...)
		for _, no := range []string{"limits.go", "go run", "[[", "BuildMethod"} {
			if strings.Contains(texts, no) {
				t.Errorf("a file has %q", no)
			}
		}
		file := filepath.Join(dir, "limits.json")
		open := func() *Project {
			t.Helper()
			page := testkit.Must(pagefile.Load(file))(t)
			p := testkit.Must(OpenPage(file, page))(t)
			t.Cleanup(func() { _ = p.Close() })
			return p
		}
		p := open()
		if stale, err := p.Stale(); err != nil || len(stale) != 0 {
			t.Errorf("%+v, %v, want nothing stale", stale, err)
		}
		_, changes, err = p.Add(Request{Guard: "jobs-guard", New: true, Activity: guards.Activity{Name: "sync_role", Limit: "reservoir 10/10s ahead 15m"}})
		testkit.OK(t, err)
		testkit.OK(t, p.Write(changes))
		if stale, err := open().Stale(); err != nil || len(stale) != 0 {
			t.Errorf("%+v, %v, want nothing stale", stale, err)
		}
		template := testkit.Must(os.ReadFile(filepath.Join(dir, "template.yaml")))(t)
		testkit.Contains(t, "the template", string(template), "CodeUri: dist/jobs-guard\n", "GUARD_NAME: jobs-guard, DELAYED_QUEUE_URL: !Ref DelayedQueue", "CodeUri: dist/delayed-jobs\n")
	}
	r.Guard = "photos"
	if _, _, err := InitPage("my-guards", r, Origin{Version: "v1.2.3"}); err == nil || !strings.Contains(err.Error(), `guard is "photos", want`) {
		t.Error(err)
	}
}

// An extra file changes the template of a page in JSON, too.
func TestAnExtraFileBesideAPageInJSON(t *testing.T) {
	r := Request{Guard: "photos-guard", New: true, Activity: guards.Activity{Name: "upload_photo", Limit: "5/1m"}}
	_, changes, err := InitPage("my-guards", r, Origin{Version: "v1.2.3"})
	testkit.OK(t, err)
	files := fstest.MapFS{"template.extra.yaml": {Data: []byte("Resources:\n  PhotosGuardFunction:\n    Properties:\n      Environment: {Variables: {MORE: one}}\n")}}
	for _, c := range changes {
		files[c.File] = &fstest.MapFile{Data: []byte(c.After)}
	}
	changes, err = Stale(files, cricket.Link(guards.Guard{Name: r.Guard, Message: "m", Activities: []guards.Activity{r.Activity}}), false)
	if err != nil || len(changes) != 1 || changes[0].File != "template.yaml" {
		t.Fatal(changes, err)
	}
	testkit.OK(t, yaml.Unmarshal([]byte(changes[0].After), new(any)))
	testkit.Contains(t, "the template", changes[0].After, "\n          GUARD_NAME: photos-guard\n          MORE: one\n")
}
