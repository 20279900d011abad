package scaffold

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	app "github.com/cric-talk/guards/limits"
)

func open(t *testing.T, folder string) *Checkout {
	t.Helper()
	c, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestGuardsAreThoseOfTheCode(t *testing.T) {
	if diff := cmp.Diff(app.All, open(t, ".").Guards()); diff != "" { // a folder of the checkout will do
		t.Errorf("(-code +text):\n%s", diff)
	}
}

func upload(text string) limits.Activity {
	return limits.Activity{Name: "upload_negative", Limit: policy.Must(text)}
}

func TestAddChangesEveryFile(t *testing.T) {
	c := open(t, root)
	a := upload("minute: 5/1m, day: 50/1d")
	a.Tiers = limits.Tiers{"premium": policy.Must("minute: 10/1m, day: 99/1d"), "basic": policy.Must("minute: 1/1m, day: 2/1d")}
	changes, err := c.Add(Request{Guard: "negatives-album-guard", New: true, Activity: a})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"limits/limits.go", "limits/limits_test.go",
		"functions/negatives-album-guard/main.go", "functions/negatives-album-guard/event.json", "template.yaml", "docs/limits.md", "CHANGELOG.md",
		"client/activities.go", "clients/python/src/guards/_activities.py", "clients/typescript/src/activities.ts",
	}
	if diff := cmp.Diff(want, files(changes)); diff != "" {
		t.Errorf("changed files (-want +got):\n%s", diff)
	}
	s, err := parse(changes[0].After)
	if err != nil {
		t.Fatal(err)
	}
	added := limits.Guard{Name: "negatives-album-guard", Message: app.Comments.Message, Activities: []limits.Activity{a}}
	if diff := cmp.Diff(append(slices.Clone(app.All), added), s.guards); diff != "" {
		t.Errorf("limits.go (-want +got):\n%s", diff)
	}
	if found, err := Missing(changes[4].After, s.guards); err != nil || len(found) > 0 {
		t.Errorf("the template lacks %q, %v", found, err)
	}
	for file, part := range map[string]string{
		"limits/limits.go":                           "\tNegativesAlbum = limits.Guard{\n\t\tName:    \"negatives-album-guard\",\n\t\tMessage: tooMany,\n",
		"limits/limits_test.go":                      "\t{\"negatives-album-guard\", long, \"upload_negative\", \"minute: 5/1m, day: 50/1d\", map[string]string{\"basic\": \"minute: 1/1m, day: 2/1d\", \"premium\": \"minute: 10/1m, day: 99/1d\"}, \"\"},\n}\n",
		"functions/negatives-album-guard/main.go":    "func main() { os.Exit(lambdafn.Guard(limits.All, \"negatives-album-guard\")) }\n",
		"functions/negatives-album-guard/event.json": `{"userId": "u1", "activity": "upload_negative"}`,
		"CHANGELOG.md":                               "\n### Added\n\n- **`negatives-album-guard`** is a new guard.",
	} {
		if i := slices.Index(want, file); !strings.Contains(changes[i].After, part) {
			t.Errorf("%s does not contain %q", file, part)
		}
	}
}

func TestAddAnActivity(t *testing.T) {
	for _, guard := range []string{"posts-guard", "chat-guard"} { // the last activity has one line, or several
		changes, err := open(t, root).Add(Request{Guard: guard, Activity: upload("5/1m")})
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(files(changes), templateFile) || len(changes) != 7 {
			t.Errorf("%s: changed %q", guard, files(changes))
		}
		s, err := parse(changes[0].After)
		if err != nil {
			t.Fatal(err)
		}
		g, _ := (&Checkout{source: s}).guard(guard)
		if a := g.Activities[len(g.Activities)-1]; a.Name != "upload_negative" || a.Limit.String() != "5/1m" {
			t.Errorf("the last activity of %s is %+v", guard, a)
		}
	}
}

func TestAddRefuses(t *testing.T) {
	c := open(t, root)
	long := strings.Repeat("a", 38) + "-guard"
	for _, tt := range []struct {
		want string
		r    Request
	}{
		{"posts-guard exists already; to add an activity to it, write: guards new --guard posts-guard upload_negative LIMIT", Request{"posts-guard", true, upload("5/1m")}},
		{"create_post is already an activity of posts-guard", Request{"posts-guard", true, limits.Activity{Name: "create_post", Limit: policy.Must("5/1m")}}},
		{"want at most 43", Request{long, true, upload("5/1m")}},
		{"that end in -guard, such as photos-guard", Request{"negatives", true, upload("5/1m")}},
		{"that end in -guard", Request{"Negatives-guard", true, upload("5/1m")}},
		{"that end in -guard", Request{"x-ray-guard", true, upload("5/1m")}}, // the Makefile would look for functions/xray-guard
		{"that end in -guard", Request{"../negatives-guard", true, upload("5/1m")}},
		{`there is no guard "negatives-guard"`, Request{"negatives-guard", false, upload("5/1m")}},
		{"pin is already an activity of pins-guard", Request{"negatives-guard", true, limits.Activity{Name: "pin", Limit: policy.Must("5/1m")}}},
		{`name contains '-', want a to z and _`, Request{"negatives-guard", true, limits.Activity{Name: "upload-negative", Limit: policy.Must("5/1m")}}},
		{`name is "__proto__", want it to begin and end with a letter`, Request{"negatives-guard", true, limits.Activity{Name: "__proto__", Limit: policy.Must("5/1m")}}},
		{"name has 37 characters", Request{"negatives-guard", true, limits.Activity{Name: strings.Repeat("a", 37), Limit: policy.Must("5/1m")}}},
		{`tier "t"`, Request{"negatives-guard", true, limits.Activity{Name: "a", Limit: policy.Must("5/1m"), Tiers: limits.Tiers{"t": policy.Must("5/1h")}}}},
		{"the policy of jobs-guard does not allow dynamodb:DeleteItem on the table", Request{"jobs-guard", false, upload("5/1m")}},
	} {
		if changes, err := c.Add(tt.r); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %q, %v, want the error %s", tt.r, files(changes), err, tt.want)
		}
	}
}

func TestAVariableGetsANameThatIsFree(t *testing.T) {
	for guard, want := range map[string]string{"negatives-guard": "Negatives", "all-guard": "AllGuard", "web2-sms-guard": "Web2Sms"} {
		if got, err := open(t, root).variable(guard); got != want || err != nil {
			t.Errorf("%s: %s, %v, want %s", guard, got, err, want)
		}
	}
}

func TestParseNamesTheLineThatItCannotRead(t *testing.T) {
	const head = "package limits\nvar Posts = Guard{\n"
	for text, want := range map[string]string{
		"package limits\n":                                                                           "has no list All",
		"package limits\nvar All = []Guard{Posts}\n":                                                 "limits.go:2:19:",
		head + "Name: name(),\n}\nvar All = []Guard{Posts}\n":                                        "limits.go:3:7:",
		head + "Cost: 1,\n}\nvar All = []Guard{Posts}\n":                                             "limits.go:3:7:",
		head + "Activities: list,\n}\nvar All = []Guard{Posts}\n":                                    "limits.go:3:13:",
		head + "Activities: []Activity{a},\n}\nvar All = []Guard{Posts}\n":                           "limits.go:3:24:",
		head + "Activities: []Activity{{Limit: policy.Must(\"5\")}},\n}\nvar All = []Guard{Posts}\n": `limits.go:3:32: limit is "5"`,
		head + "Activities: []Activity{{Tiers: t}},\n}\nvar All = []Guard{Posts}\n":                  "limits.go:3:32:",
		"func": "expected 'package'",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %s", text, err, want)
		}
	}
}

func TestOpenRefusesAnotherFolder(t *testing.T) {
	if _, err := Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "is not in a checkout of this project") {
		t.Error(err)
	}
	if _, err := Open("missing"); err == nil || !strings.Contains(err.Error(), "there is no folder ") {
		t.Error(err)
	}
}

func TestTheChangelogGetsAnEntry(t *testing.T) {
	for before, after := range map[string]string{
		"# C\n\n## Unreleased\n\n### Added\n\n- a\n":             "# C\n\n## Unreleased\n\n### Added\n\n- new\n- a\n",
		"# C\n\n## Unreleased\n\n## 1.0.0\n\n### Added\n\n- a\n": "# C\n\n## Unreleased\n\n### Added\n\n- new\n\n## 1.0.0\n\n### Added\n\n- a\n",
		"# C\n\n## 1.0.0\n\n### Added\n\n- a\n":                  "# C\n\n## Unreleased\n\n### Added\n\n- new\n\n## 1.0.0\n\n### Added\n\n- a\n",
		"# C\n\nAll changes.\n":                                  "# C\n\nAll changes.\n\n## Unreleased\n\n### Added\n\n- new\n\n",
	} {
		if got := withEntry(before, "- new\n"); got != after {
			t.Errorf("%q becomes %q, want %q", before, got, after)
		}
	}
}

func files(changes []Change) (names []string) {
	for _, c := range changes {
		names = append(names, c.File)
	}
	return names
}

func TestWriteReportsWhatIsAlreadyWritten(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module m\n", "template.yaml": "", "limits/limits.go": "package limits\nvar All = []Guard{}\n"} {
		if err := os.MkdirAll(dir+"/limits", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := open(t, dir).Write([]Change{{File: "a/b.txt", After: "b"}, {File: "a/b.txt/c.txt"}, {File: "d.txt"}})
	if err == nil || !strings.HasSuffix(err.Error(), "; these files are already changed: a/b.txt") {
		t.Error(err)
	}
}
