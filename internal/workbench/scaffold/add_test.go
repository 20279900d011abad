package scaffold

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
	app "github.com/cric-talk/guards/limits"
)

const root = "../../.."

func open(t *testing.T, folder string, page []guards.Guard) *Project {
	t.Helper()
	p := testkit.Must(Open(folder, page))(t)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func upload(limit guards.Limit) guards.Activity {
	return guards.Activity{Name: "untaken_activity", Limit: limit}
}

// Each part of a new activity is in each file that lists activities.
func TestAddChangesEachFile(t *testing.T) {
	limited, grouped, shared := upload("minute: 5/1m, day: 50/1d"), upload("posts: 10/1m, writes: 100/1h cost 2"), upload("10/1m")
	limited.Tiers = guards.Tiers{"premium": "minute: 10/1m, day: 99/1d", "basic": "minute: 1/1m, day: 2/1d"}
	grouped.Group, grouped.Hold = "content", true
	shared.Subjects = []guards.Subject{{Name: "room", Limit: "600/1m"}, {Name: "tenant", Limit: "minute: 50/1m, day: 1000/day", Optional: true}}
	lists := []string{"activities/activities.go", "activities/activities.json", "activities/activities.py", "activities/activities.ts"}
	existing := slices.Concat([]string{limitsFile, changelog, "docs/limits.md"}, lists)
	added := slices.Concat([]string{limitsFile, changelog, templateFile, "docs/limits.md"}, lists, []string{"functions/web2-album-guard/main.go", "functions/web2-album-guard/event.json"})
	for _, tt := range []struct {
		r       Request
		changed []string
		parts   map[string]string // what files contain afterwards
	}{
		{Request{"web2-album-guard", true, limited}, added, map[string]string{
			limitsFile: "\tWeb2Album = guards.Guard{\n\t\tName:    \"web2-album-guard\",\n\t\tMessage: tooMany,\n" +
				"\t\tActivities: []guards.Activity{\n\t\t\t{Name: \"untaken_activity\", Limit: \"minute: 5/1m, day: 50/1d\", Tiers: guards.Tiers{" +
				"\"basic\": \"minute: 1/1m, day: 2/1d\", \"premium\": \"minute: 10/1m, day: 99/1d\"}},\n\t\t},\n\t}\n",
			changelog: "\n### Added\n\n- **`web2-album-guard`** is a new guard.", templateFile: "\n  Web2AlbumGuardFunction:\n",
			"functions/web2-album-guard/main.go":    "func main() { function.Start(limits.All, \"web2-album-guard\") }\n",
			"functions/web2-album-guard/event.json": `{"userId": "u1", "activity": "untaken_activity"}`,
		}},
		{Request{"posts-guard", false, upload("5/1m")}, existing, map[string]string{ // the last activity has one line
			limitsFile: "\t\t\t{Name: \"view\", Unlimited: true},\n\t\t\t{Name: \"untaken_activity\", Limit: \"5/1m\"},\n\t\t},\n",
		}},
		{Request{"chat-guard", false, upload("5/1m")}, existing, map[string]string{ // it has several
			limitsFile: "burst 3 keep 1h\"},\n\t\t\t},\n\t\t\t{Name: \"untaken_activity\", Limit: \"5/1m\"},\n\t\t},\n",
		}},
		{Request{"posts-guard", false, grouped}, existing, map[string]string{
			limitsFile:       "Limit: \"posts: 10/1m, writes: 100/1h cost 2\", Group: \"content\", Hold: true},\n",
			"docs/limits.md": "| `posts: 10/1m, writes: 100/1h cost 2`, group `content`, hold |",
			changelog:        "Its limit is `posts: 10/1m, writes: 100/1h cost 2`. It counts in the group `content`.\n",
		}},
		{Request{"web2-album-guard", true, shared}, added, map[string]string{
			limitsFile: "Limit: \"10/1m\", Subjects: []guards.Subject{{Name: \"room\", Limit: \"600/1m\"}, " +
				"{Name: \"tenant\", Limit: \"minute: 50/1m, day: 1000/day\", Optional: true}}},\n",
			"docs/limits.md":                        "| `10/1m`, room `600/1m`, optional tenant `minute: 50/1m, day: 1000/day` |",
			changelog:                               "with the limit `10/1m`. It counts for others, too: room `600/1m`, optional tenant `minute: 50/1m, day: 1000/day`.\n",
			"functions/web2-album-guard/event.json": `{"userId": "u1", "activity": "untaken_activity", "subjects": {"room": "room1", "tenant": "tenant1"}}`,
			"activities/activities.ts":              `untaken_activity: { guard: "web2-album-guard", subjects: ["room", "tenant?"] },`,
		}},
	} {
		_, changes, err := open(t, ".", app.All).Add(tt.r) // a folder of the checkout will do, and its program has its own page's limits
		if err != nil {
			t.Fatal(err)
		}
		testkit.Same(t, tt.r.Guard+": changed files", tt.changed, names(changes))
		for file, part := range tt.parts {
			if i := slices.Index(names(changes), file); i < 0 || !strings.Contains(changes[i].After, part) {
				t.Errorf("%s does not contain %q", file, part)
			}
		}
	}
}

// More mistakes are in the scripts new.txtar and init.txtar.
func TestAddRefuses(t *testing.T) {
	four := upload("10/1m")
	four.Subjects = make([]guards.Subject, 4)
	for want, r := range map[string]Request{
		"want at most 43":                            {strings.Repeat("a", 38) + "-guard", true, upload("5/1m")},
		`guard is "x-ray-guard", want words of`:      {"x-ray-guard", true, upload("5/1m")}, // the Makefile would look for functions/xray-guard
		`guard is "../untaken-guard", want words of`: {"../untaken-guard", true, upload("5/1m")},
		`there is no guard "untaken-guard"`:          {"untaken-guard", false, upload("5/1m")},
		"it has 4 subjects, want at most 3":          {"posts-guard", false, four},
	} {
		if _, changes, err := open(t, root, app.All).Add(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %q, %v, want the error %s", r, names(changes), err, want)
		}
	}
}

var mapsOnly = []guards.Guard{{Name: "maps-guard", Message: "m", Activities: []guards.Activity{{Name: "move_map", Limit: "5/1m"}}}}

// small makes a small project whose limits.go has this text. Its generated files follow
// from mapsOnly.
func small(t *testing.T, page string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	texts := after(t, folder(), cricket.Link(mapsOnly...))
	maps.Copy(texts, map[string]string{"go.mod": "module m\n", "limits/limits.go": page, "limits/names.go": "package limits\n\nconst maps = \"maps-guard\"\n", "CHANGELOG.md": ""})
	for name, text := range texts {
		testkit.OK(t, os.MkdirAll(filepath.Dir(dir+"/"+name), 0o700))
		testkit.OK(t, os.WriteFile(dir+"/"+name, []byte(text), 0o600))
	}
	return dir
}

// Each row is a limits.go with a form that Add can't change.
func TestAddNamesWhatItCannotRead(t *testing.T) {
	const head = "package limits\n"
	photos := Request{Guard: "photos-guard", New: true, Activity: upload("5/1m")}
	more := Request{Guard: "maps-guard", Activity: upload("5/1m")}
	for _, tt := range []struct {
		page string
		r    Request
		want string
	}{
		{head, photos, "limits/limits.go has no list All of variables"},
		{head + "var All = list(Maps)\n", photos, "has no list All of variables"},
		{head + "var All = []Guard{{}}\n", photos, "the last guard of All is no variable of this file"},
		{head + "var All = []Guard{Maps}\n", photos, "the last guard of All is no variable of this file"},
		{head + "var (Maps = Guard{}; All = []Guard{Maps})\n", photos, "limits/limits.go has a form that guards new can't change: "}, // all in one line
		{head, more, `limits/limits.go has no guard with the Name "maps-guard" and a list of Activities`},
		{head + "var Maps = Guard{Name: \"maps-guard\", Activities: list}\n", more, "and a list of Activities"},
	} {
		p := open(t, small(t, tt.page), mapsOnly)
		if _, _, err := p.Add(tt.r); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want an error with %s", tt.page, err, tt.want)
		}
	}
}

func TestAGuardIsAddedToVariablesOfEitherForm(t *testing.T) {
	for _, page := range []string{"var Maps = Guard{}\n\nvar All = []Guard{Maps}\n", "var (\n\tMaps = Guard{}\n)\n\nvar All = []Guard{Maps}\n"} {
		p := open(t, small(t, "package limits\n\n"+page), mapsOnly)
		_, changes, err := p.Add(Request{Guard: "photos-guard", New: true, Activity: upload("5/1m")})
		if err != nil {
			t.Fatal(err)
		}
		if after := changes[0].After; !strings.Contains(after, "Photos = guards.Guard{") || !strings.Contains(after, "All = []Guard{Maps, Photos}") {
			t.Errorf("%s becomes\n%s", page, after)
		}
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
