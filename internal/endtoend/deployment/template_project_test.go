package deployment_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/workbench/scaffold"
)

// With another name for its guard, each resource of a new project is one of this repository's. Only the guard's description, the
// dashboard and the list of guards differ, and the queue is missing.
func TestTemplateOfAProjectIsThatOfThisRepository(t *testing.T) {
	ours := parse(t, transform(t))
	changes, err := scaffold.Init("my-guards", scaffold.Request{
		Guard: "photos-guard", Activity: limits.Activity{Name: "upload_photo", Limit: policy.Must("5/1m")},
	}, scaffold.Origin{Version: "v0.1.0"})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(changes, func(c scaffold.Change) bool { return c.File == "template.yaml" })
	file := filepath.Join(t.TempDir(), "template.yaml")
	if err := os.WriteFile(file, []byte(changes[i].After), 0o600); err != nil {
		t.Fatal(err)
	}
	text := run(t, nil, ".cache/venv/bin/python", "tools/transform.py", file)
	theirs := parse(t, []byte(strings.NewReplacer("PhotosGuard", "PostsGuard", "photos-guard", "posts-guard").Replace(text)))
	resources := theirs["Resources"].(object)
	if len(resources) < 20 {
		t.Errorf("the project has %d resources, want more", len(resources))
	}
	for id, r := range resources {
		want := at(ours, "Resources."+id)
		switch id {
		case "PostsGuardFunction", "InvokePolicy":
			delete(at(r, "Properties").(object), "Description")
			delete(at(want, "Properties").(object), "Description")
		case "Dashboard":
			continue
		}
		if id == "InvokePolicy" {
			if got := show(r); strings.Count(got, "PostsGuardFunction") != 2 || strings.Contains(got, "Cleanup") {
				t.Errorf("InvokePolicy is %s, want the project's guard only", got)
			}
			continue
		}
		if diff := cmp.Diff(want, r); diff != "" {
			t.Errorf("%s (-this repository +project):\n%s", id, diff)
		}
	}
	for name, p := range theirs["Parameters"].(object) {
		got, want := show(at(p, "Default")), show(at(ours, "Parameters."+name+".Default"))
		if got != want {
			t.Errorf("the default of %s is %s, want %s", name, got, want)
		}
	}
	transformed := filepath.Join(t.TempDir(), "transformed.json")
	write(t, transformed, parse(t, []byte(text)))
	if found := scan(t, transformed); len(found) > 0 {
		t.Errorf("checkov finds %v, want nothing", found)
	}
	run(t, nil, ".cache/venv/bin/cfn-lint", "--include-checks", "I", "--", file)
	run(t, []string{"SAM_CLI_TELEMETRY=0", "AWS_DEFAULT_REGION=us-east-1"}, ".cache/venv/bin/sam", "validate", "--lint", "--template-file", file)
}
