package scaffold

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	app "github.com/cric-talk/guards/limits"
)

const root = "../../.."

func open(t *testing.T, folder string, guards limits.Guards) *Project {
	t.Helper()
	p, err := Open(folder, guards)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func upload(text string) limits.Activity {
	return limits.Activity{Name: "untaken_activity", Limit: policy.Must(text)}
}

func TestAddChangesEveryFile(t *testing.T) {
	a := upload("minute: 5/1m, day: 50/1d")
	a.Tiers = limits.Tiers{"premium": policy.Must("minute: 10/1m, day: 99/1d"), "basic": policy.Must("minute: 1/1m, day: 2/1d")}
	changes, err := open(t, ".", app.All).Add(Request{Guard: "untaken-album-guard", New: true, Activity: a}) // a folder of the checkout will do
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"limits/limits.go", "limits/limits_test.go", "CHANGELOG.md", "template.yaml", "docs/limits.md",
		"activities/activities.go", "activities/activities.json", "activities/activities.py", "activities/activities.ts",
		"functions/untaken-album-guard/main.go", "functions/untaken-album-guard/event.json",
	}
	if diff := cmp.Diff(want, names(changes)); diff != "" {
		t.Errorf("changed files (-want +got):\n%s", diff)
	}
	for file, parts := range map[string][]string{
		"limits/limits.go": {
			"\tUntakenAlbum = guards.Guard{\n\t\tName:    \"untaken-album-guard\",\n\t\tMessage: tooMany,\n",
			"\n\t\t\t{Name: \"untaken_activity\", Limit: guards.Limit(\"minute: 5/1m, day: 50/1d\"), Tiers: guards.Tiers{" +
				"\"basic\": guards.Limit(\"minute: 1/1m, day: 2/1d\"), \"premium\": guards.Limit(\"minute: 10/1m, day: 99/1d\")}},\n\t\t},\n\t}\n",
			", UntakenAlbum}\n",
		},
		"limits/limits_test.go":                    {"\t{guard: \"untaken-album-guard\", message: long, activities: \"untaken_activity\", limit: \"minute: 5/1m, day: 50/1d\", tiers: map[string]string{\"basic\": \"minute: 1/1m, day: 2/1d\", \"premium\": \"minute: 10/1m, day: 99/1d\"}},\n}\n"},
		"functions/untaken-album-guard/main.go":    {"func main() { function.Start(limits.All, \"untaken-album-guard\") }\n"},
		"functions/untaken-album-guard/event.json": {`{"userId": "u1", "activity": "untaken_activity"}`},
		"CHANGELOG.md":                             {"\n### Added\n\n- **`untaken-album-guard`** is a new guard."},
		"template.yaml":                            {"\n  UntakenAlbumGuardFunction:\n", "\n  UntakenAlbumGuardArn:\n"},
	} {
		for _, part := range parts {
			if i := slices.Index(want, file); !strings.Contains(changes[i].After, part) {
				t.Errorf("%s does not contain %q", file, part)
			}
		}
	}
}

func TestAddAnActivity(t *testing.T) {
	for guard, after := range map[string]string{ // the last activity has one line, or several
		"posts-guard": "\t\t\t{Name: \"view\", Unlimited: true},\n", "chat-guard": "burst 3 keep 1h\")},\n\t\t\t},\n",
	} {
		changes, err := open(t, root, app.All).Add(Request{Guard: guard, Activity: upload("5/1m")})
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(names(changes), templateFile) || len(changes) != 8 {
			t.Errorf("%s: changed %q", guard, names(changes))
		}
		if want := after + "\t\t\t{Name: \"untaken_activity\", Limit: guards.Limit(\"5/1m\")},\n\t\t},\n"; !strings.Contains(changes[0].After, want) {
			t.Errorf("limits.go lacks %q:\n%s", want, changes[0].After)
		}
	}
}

func TestAddAnActivityOfAGroup(t *testing.T) {
	a := upload("posts: 10/1m, writes: 100/1h cost 2")
	a.Group, a.Hold = "content", true
	changes, err := open(t, root, app.All).Add(Request{Guard: "posts-guard", Activity: a})
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		limitsFile:       "{Name: \"untaken_activity\", Limit: guards.Limit(\"posts: 10/1m, writes: 100/1h cost 2\"), Group: \"content\", Hold: true},\n",
		promisesFile:     "{guard: \"posts-guard\", message: short, activities: \"untaken_activity\", limit: \"posts: 10/1m, writes: 100/1h cost 2\", group: \"content\", hold: true},\n",
		"docs/limits.md": "| `posts: 10/1m, writes: 100/1h cost 2`, group `content`, hold |",
		changelog:        "Its limit is `posts: 10/1m, writes: 100/1h cost 2`. It counts in the group `content`.\n",
	} {
		if i := slices.Index(names(changes), file); i < 0 || !strings.Contains(changes[i].After, want) {
			t.Errorf("%s lacks %s", file, want)
		}
	}
}

func TestAddAnActivityWithSubjects(t *testing.T) {
	a := upload("10/1m")
	a.Subjects = []limits.Subject{{Name: "room", Limit: policy.Must("600/1m")}, {Name: "tenant", Limit: policy.Must("minute: 50/1m, day: 1000/day"), Optional: true}}
	changes, err := open(t, root, app.All).Add(Request{Guard: "untaken-album-guard", New: true, Activity: a})
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		limitsFile: "{Name: \"untaken_activity\", Limit: guards.Limit(\"10/1m\"), Subjects: []guards.Subject{{Name: \"room\", Limit: guards.Limit(\"600/1m\")}, " +
			"{Name: \"tenant\", Limit: guards.Limit(\"minute: 50/1m, day: 1000/day\"), Optional: true}}},\n",
		promisesFile: "{guard: \"untaken-album-guard\", message: long, activities: \"untaken_activity\", limit: \"10/1m\", " +
			"subjects: []string{\"room 600/1m\", \"optional tenant minute: 50/1m, day: 1000/day\"}},\n",
		"docs/limits.md": "| `10/1m`, room `600/1m`, optional tenant `minute: 50/1m, day: 1000/day` |",
		changelog:        "with the limit `10/1m`. It counts for others, too: room `600/1m`, optional tenant `minute: 50/1m, day: 1000/day`.\n",
		"functions/untaken-album-guard/event.json": `{"userId": "u1", "activity": "untaken_activity", "subjects": {"room": "room1", "tenant": "tenant1"}}`,
		"activities/activities.ts":                 `untaken_activity: { guard: "untaken-album-guard", subjects: ["room", "tenant?"] },`,
	} {
		if i := slices.Index(names(changes), file); i < 0 || !strings.Contains(changes[i].After, want) {
			t.Errorf("%s lacks %s", file, want)
		}
	}
}

// What is wrong in a subject is an error before anything is written.
func TestAddRefusesWrongSubjects(t *testing.T) {
	for want, subjects := range map[string][]limits.Subject{
		`name of a subject is "Room", want 1 to 8 letters`:          {{Name: "Room", Limit: policy.Must("600/1m")}},
		`subject "room": the activity, a limit or another subject`:  {{Name: "room", Limit: policy.Must("600/1m")}, {Name: "room", Limit: policy.Must("60/1m")}},
		`subject "room": a reservoir gives places to users alone`:   {{Name: "room", Limit: policy.Must("reservoir 10/10s ahead 1m")}},
		"it has 4 subjects, want at most 3":                         make([]limits.Subject, 4),
		`its subject "like" has the name of an activity of posts-g`: {{Name: "like", Limit: policy.Must("600/1m")}},
	} {
		a := upload("10/1m")
		a.Subjects = subjects
		if _, err := open(t, root, app.All).Add(Request{Guard: "posts-guard", Activity: a}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// What is wrong in a group is an error before anything is written.
func TestAddRefusesWhatDoesNotFitAGroup(t *testing.T) {
	post := limits.Activity{Name: "write_map", Group: "content", Limit: policy.Must("posts: 10/1m, writes: 100/1h")}
	guards := limits.Guards{{Name: "maps-guard", Message: "m", Activities: append([]limits.Activity{post}, mapsOnly[0].Activities...)}}
	old := "package limits\nvar promised = []struct{ guard, label string }{}\n" // of an early project
	for _, tt := range []struct {
		limit, group string
		hold         bool
		promises     string
		want         string
	}{
		{"10/1m", "content", false, table, `limit "10/1m" has no name, want one in the group "content", as in "writes: 10/1m"`},
		{"writes: 100/1h", "", false, table, `limit "writes: 100/1h" has a name, want one only if there are several limits or a group`},
		{"writes: 100/2h", "content", false, table, `activities "write_map" and "untaken_activity" of the group "content": window of limit "writes" of "writes: 100/2h" is 2h, want 1h`},
		{"writes: log 100/1h", "content", false, table, `did you mean "writes: 100/1h"?`},
		{"writes: 100/1h", "move_map", false, table, `activity "untaken_activity": its group has the name of the activity "move_map" of maps-guard`},
		{"writes: 100/1h", "Content", false, table, `group contains 'C', want a to z and _`},
		{"20000/1m", "", true, table, `"20000/1m" is too fast for Hold`},
		{"writes: 100/1h", "content", false, old, "limits/limits_test.go does not know groups and Hold: take the file of a project that guards init makes now"},
		{"100/1h", "", true, old, "limits/limits_test.go does not know groups and Hold"},
	} {
		dir := small(t, "package limits\nvar Maps = Guard{Name: \"maps-guard\", Activities: []Activity{{Name: \"write_map\"}, {Name: \"move_map\"}}}\n", tt.promises)
		fresh := open(t, dir, guards)
		stale, err := fresh.Stale()
		if err = errors.Join(err, fresh.Write(stale)); err != nil {
			t.Fatal(err)
		}
		a := upload(tt.limit)
		a.Group, a.Hold = tt.group, tt.hold
		if changes, err := fresh.Add(Request{Guard: "maps-guard", Activity: a}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s, group %q, hold %t: %q, %v, want the error %s", tt.limit, tt.group, tt.hold, names(changes), err, tt.want)
		}
	}
}

func TestAddRefuses(t *testing.T) {
	c := open(t, root, app.All)
	long := strings.Repeat("a", 38) + "-guard"
	for _, tt := range []struct {
		want string
		r    Request
	}{
		{"posts-guard exists already; to add an activity to it, write: guards new --guard posts-guard untaken_activity LIMIT", Request{"posts-guard", true, upload("5/1m")}},
		{"create_post is already an activity of posts-guard", Request{"posts-guard", true, limits.Activity{Name: "create_post", Limit: policy.Must("5/1m")}}},
		{"want at most 43", Request{long, true, upload("5/1m")}},
		{"that end in -guard, such as photos-guard", Request{"untaken", true, upload("5/1m")}},
		{"that end in -guard", Request{"Untaken-guard", true, upload("5/1m")}},
		{"that end in -guard", Request{"x-ray-guard", true, upload("5/1m")}}, // the Makefile would look for functions/xray-guard
		{"that end in -guard", Request{"../untaken-guard", true, upload("5/1m")}},
		{`there is no guard "untaken-guard"`, Request{"untaken-guard", false, upload("5/1m")}},
		{"pin is already an activity of pins-guard", Request{"untaken-guard", true, limits.Activity{Name: "pin", Limit: policy.Must("5/1m")}}},
		{`name contains '-', want a to z and _`, Request{"untaken-guard", true, limits.Activity{Name: "untaken-activity", Limit: policy.Must("5/1m")}}},
		{`name is "__proto__", want it to begin and end with a letter`, Request{"untaken-guard", true, limits.Activity{Name: "__proto__", Limit: policy.Must("5/1m")}}},
		{"name has 37 characters", Request{"untaken-guard", true, limits.Activity{Name: strings.Repeat("a", 37), Limit: policy.Must("5/1m")}}},
		{`tier "t"`, Request{"untaken-guard", true, limits.Activity{Name: "a", Limit: policy.Must("5/1m"), Tiers: limits.Tiers{"t": policy.Must("5/1h")}}}},
	} {
		if changes, err := c.Add(tt.r); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %q, %v, want the error %s", tt.r, names(changes), err, tt.want)
		}
	}
}

func TestAVariableGetsANameThatIsFree(t *testing.T) {
	for guard, want := range map[string]string{"untaken-guard": "Untaken", "all-guard": "AllGuard", "web2-sms-guard": "Web2Sms"} {
		if got, err := open(t, root, app.All).variable(guard); got != want || err != nil {
			t.Errorf("%s: %s, %v, want %s", guard, got, err, want)
		}
	}
}

var mapsOnly = limits.Guards{{Name: "maps-guard", Message: "m", Activities: []limits.Activity{{Name: "move_map", Limit: policy.Must("5/1m")}}}}

// table is a limits_test.go whose rows have a type of another file.
const table = "package limits\nvar promised = []row{}\n"

// small makes a small project whose limits.go and limits_test.go have these
// texts. Its generated files follow from mapsOnly.
func small(t *testing.T, page, promises string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	texts := after(t, folder(), mapsOnly)
	maps.Copy(texts, map[string]string{"go.mod": "module m\n", "limits/limits.go": page, "limits/limits_test.go": promises, "limits/names.go": "package limits\n\nconst maps = \"maps-guard\"\n", "CHANGELOG.md": ""})
	for name, text := range texts {
		if err := os.MkdirAll(filepath.Dir(dir+"/"+name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Each row is a limits.go with a form that Add can't change.
func TestAddNamesWhatItCannotRead(t *testing.T) {
	const head = "package limits\n"
	photos := Request{Guard: "photos-guard", New: true, Activity: upload("5/1m")}
	more := Request{Guard: "maps-guard", Activity: upload("5/1m")}
	for _, tt := range []struct {
		page, promises string
		r              Request
		want           string
	}{
		{head, table, photos, "limits/limits.go has no list All of variables"},
		{head + "var All = list(Maps)\n", table, photos, "has no list All of variables"},
		{head + "var All = []Guard{{}}\n", table, photos, "the last guard of All is no variable of this file"},
		{head + "var All = []Guard{Maps}\n", table, photos, "the last guard of All is no variable of this file"},
		{head + "var (Maps = Guard{}; All = []Guard{Maps})\n", table, photos, "limits/limits.go has a form that guards new can't change: "}, // all in one line
		{head, table, more, `limits/limits.go has no guard with the Name "maps-guard" and a list of Activities`},
		{head + "var Maps = Guard{Name: \"maps-guard\", Activities: list}\n", table, more, "and a list of Activities"},
		{head + "var Maps = Guard{Name: \"maps-guard\", Activities: []Activity{}}\n", head, more, "limits/limits_test.go has no table named promised"},
	} {
		p := open(t, small(t, tt.page, tt.promises), mapsOnly)
		if _, err := p.Add(tt.r); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want an error with %s", tt.page, err, tt.want)
		}
	}
}

var slower = limits.Guards{{Name: "maps-guard", Message: "m", Activities: []limits.Activity{{Name: "slow_map", Limit: policy.Must("5/1m")}}}}

func TestAGuardIsAddedToVariablesOfEitherForm(t *testing.T) {
	for _, page := range []string{"var Maps = Guard{}\n\nvar All = []Guard{Maps}\n", "var (\n\tMaps = Guard{}\n)\n\nvar All = []Guard{Maps}\n"} {
		p := open(t, small(t, "package limits\n\n"+page, "package limits\n\nvar promised = []row{}\n"), mapsOnly)
		changes, err := p.Add(Request{Guard: "photos-guard", New: true, Activity: upload("5/1m")})
		if err != nil {
			t.Fatal(err)
		}
		if after := changes[0].After; !strings.Contains(after, "Photos = guards.Guard{") || !strings.Contains(after, "All = []Guard{Maps, Photos}") {
			t.Errorf("%s becomes\n%s", page, after)
		}
	}
}

func TestAddRefusesStaleFiles(t *testing.T) {
	p := open(t, small(t, "package limits\n", "package limits\n"), slower)
	const want = "template.yaml does not follow from the limits of this program: run go run ./cmd/guards generate, then go run ./cmd/guards new"
	if _, err := p.Add(Request{Guard: "maps-guard", Activity: upload("5/1m")}); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestOpenRefusesALimitsFileThatItDoesNotKnow(t *testing.T) {
	for page, want := range map[string]string{
		"func": "limits/limits.go:1:1: expected 'package'",
		"package limits\nvar Maps = Guard{Name: \"maps-guard\"}\nvar Cards = Guard{Name: \"cards-guard\"}\n": "limits/limits.go names cards-guard, and this program does not know it",
	} {
		if _, err := Open(small(t, page, ""), mapsOnly); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", page, err, want)
		}
	}
}

func TestOpenRefusesAnotherFolder(t *testing.T) {
	if _, err := Open(t.TempDir(), app.All); err == nil || !strings.Contains(err.Error(), "is not in a project") {
		t.Error(err)
	}
	if _, err := Open("missing", app.All); err == nil || !strings.Contains(err.Error(), "there is no folder ") {
		t.Error(err)
	}
}

func TestTheChangelogGetsAnEntry(t *testing.T) {
	for before, after := range map[string]string{
		"# C\n\n## Unreleased\n\n### Added\n\n- a\n":             "# C\n\n## Unreleased\n\n### Added\n\n- new\n- a\n",
		"# C\n\n## Unreleased\n\n## 1.0.0\n\n### Added\n\n- a\n": "# C\n\n## Unreleased\n\n### Added\n\n- new\n\n## 1.0.0\n\n### Added\n\n- a\n",
		"# C\n\n## 1.0.0\n\n### Added\n\n- a\n":                  "# C\n\n## Unreleased\n\n### Added\n\n- new\n\n## 1.0.0\n\n### Added\n\n- a\n",
		"# C\n\nAll changes.\n":                                  "# C\n\nAll changes.\n\n## Unreleased\n\n### Added\n\n- new\n",
	} {
		if got := withEntry(before, "- new\n"); got != after {
			t.Errorf("%q becomes %q, want %q", before, got, after)
		}
	}
}

func names(changes []Change) (files []string) {
	for _, c := range changes {
		files = append(files, c.File)
	}
	return files
}

// A file in the place of a folder makes the last change fail.
func TestWritePutsBackWhatItWrote(t *testing.T) {
	p := open(t, small(t, "package limits\n", ""), mapsOnly)
	changes := []Change{
		{File: "limits/limits.go", Before: "package limits\n", After: "new"}, {File: "functions/a/main.go", New: true, After: "new"}, {File: "go.mod/b", New: true},
	}
	if err := p.Write(changes); err == nil {
		t.Error("want an error")
	}
	if text, err := p.read("limits/limits.go"); text != "package limits\n" || err != nil {
		t.Errorf("limits.go is %q, %v, want the old text", text, err)
	}
	if _, err := p.root.Stat("functions/a/main.go"); err == nil {
		t.Error("a new file is still there")
	}
}
