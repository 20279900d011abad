package scaffold

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/pagefile"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// whole returns the template of guards, read.
func whole(t *testing.T, all limits.Guards, inGo bool) map[string]any {
	t.Helper()
	var b strings.Builder
	for _, part := range documents[0].parts {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:] + ":\n" + text(part, all, inGo))
	}
	var template map[string]any
	if err := yaml.Unmarshal([]byte(b.String()), &template); err != nil {
		t.Fatalf("%v\n%s", err, &b)
	}
	return template
}

// The same page has the same template in JSON and in Go. Only the build, the folder of the code
// and GUARD_NAME differ.
func TestTheTemplateOfAPageInJSON(t *testing.T) {
	for name, all := range map[string]limits.Guards{"some": some, "cricket": cricket.All, "without a queue": cricket.All[:3]} {
		inGo, inJSON := whole(t, all, true), whole(t, all, false)
		folders := map[string]string{"CleanupFunction": "dist/cleanup", "DelayedJobsFunction": "dist/delayed-jobs", "AgentLayerArm64": "dist/agent-arm64", "AgentLayerX86": "dist/agent-amd64"}
		names := map[string]string{}
		for _, g := range all {
			id := LogicalID(g.Name) + "Function"
			folders[id], names[id] = "dist/guard", g.Name
			if g.DelayedQueue {
				folders[id] = "dist/jobs-guard"
			}
		}
		for id, resource := range inJSON["Resources"].(map[string]any) {
			kind, _ := resource.(map[string]any)["Type"].(string)
			if kind != "AWS::Serverless::Function" && kind != "AWS::Serverless::LayerVersion" {
				continue
			}
			properties := resource.(map[string]any)["Properties"].(map[string]any)
			code := "CodeUri"
			if kind == "AWS::Serverless::LayerVersion" {
				code = "ContentUri"
			}
			if properties[code] != folders[id] {
				t.Errorf("%s: %s has the code in %v, want %s", name, id, properties[code], folders[id])
			}
			variables := map[string]any{}
			if environment, ok := properties["Environment"].(map[string]any); ok {
				variables = environment["Variables"].(map[string]any)
			}
			if got, _ := variables["GUARD_NAME"].(string); got != names[id] {
				t.Errorf("%s: GUARD_NAME of %s is %q, want %q", name, id, got, names[id])
			}
			delete(properties, code)
			if delete(variables, "GUARD_NAME"); len(variables) == 0 {
				delete(properties, "Environment")
			}
		}
		for _, template := range []map[string]any{inGo, inJSON} {
			delete(template["Globals"].(map[string]any)["Function"].(map[string]any), "CodeUri")
			for _, resource := range template["Resources"].(map[string]any) {
				resource := resource.(map[string]any)
				if properties, ok := resource["Properties"].(map[string]any); ok && resource["Type"] == "AWS::Serverless::LayerVersion" {
					delete(properties, "ContentUri")
				}
				if metadata, ok := resource["Metadata"].(map[string]any); ok {
					for _, key := range []string{"BuildMethod", "BuildArchitecture", "SkipBuild"} {
						delete(metadata, key)
					}
				}
			}
			guard := template["Metadata"].(map[string]any)["shared"].(map[string]any)["guard"].(map[string]any)
			delete(guard, "BuildMethod")
			delete(guard, "SkipBuild")
		}
		if diff := cmp.Diff(inGo, inJSON); diff != "" {
			t.Errorf("%s (-Go +JSON):\n%s", name, diff)
		}
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
		if err == nil {
			err = p.Write(changes)
		}
		if err != nil {
			t.Fatal(err)
		}
		if stale, err := open().Stale(); err != nil || len(stale) != 0 {
			t.Errorf("%+v, %v, want nothing stale", stale, err)
		}
		template, err := os.ReadFile(filepath.Join(dir, "template.yaml"))
		for _, text := range []string{"CodeUri: dist/jobs-guard\n", "GUARD_NAME: jobs-guard, DELAYED_QUEUE_URL: !Ref DelayedQueue", "CodeUri: dist/delayed-jobs\n"} {
			if err != nil || !strings.Contains(string(template), text) {
				t.Errorf("the template has no %q, %v", text, err)
			}
		}
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
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{"template.extra.yaml": {Data: []byte("Resources:\n  PhotosGuardFunction:\n    Properties:\n      Environment: {Variables: {MORE: one}}\n")}}
	for _, c := range changes {
		files[c.File] = &fstest.MapFile{Data: []byte(c.After)}
	}
	changes, err = Stale(files, cricket.Link(guards.Guard{Name: r.Guard, Message: "m", Activities: []guards.Activity{r.Activity}}), false)
	if err != nil || len(changes) != 1 || changes[0].File != "template.yaml" {
		t.Fatal(changes, err)
	}
	var template struct {
		Resources map[string]struct {
			Properties struct {
				Environment struct {
					Variables map[string]any `yaml:"Variables"`
				} `yaml:"Environment"`
			} `yaml:"Properties"`
		} `yaml:"Resources"`
	}
	testkit.OK(t, yaml.Unmarshal([]byte(changes[0].After), &template))
	want := map[string]any{"GUARD_NAME": "photos-guard", "MORE": "one"}
	if diff := cmp.Diff(want, template.Resources["PhotosGuardFunction"].Properties.Environment.Variables); diff != "" {
		t.Error(diff)
	}
}
