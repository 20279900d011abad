package scaffold

import (
	"go/format"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

var some = cricket.Link([]guards.Guard{
	{Name: "photos-guard", Message: "m", Description: `Limits: "how" # fast`, MemorySize: 512, Activities: []guards.Activity{
		{Name: "upload_photo", Limit: "5/1m", Tiers: guards.Tiers{"pro": "9/1m", "free": "2/1m"}},
		{Name: "view_photo", Unlimited: true},
		{Name: "rate_photo", Limit: "minute: 5/1m, day: 9/1d"},
		{Name: "tag_photo", Limit: "writes: 9/1d", Group: "work"},
		{Name: "name_photo", Limit: "writes: 9/1d", Group: "work"},
		{Name: "show_photo", Limit: "writes: 9/1d", Group: "work", Hold: true},
		{Name: "share_photo", Limit: "5/1m", Subjects: []guards.Subject{
			{Name: "room", Limit: "600/1m", Tiers: guards.Tiers{"pro": "900/1m"}},
			{Name: "tenant", Limit: "minute: 50/1m, day: 99/day", Optional: true},
		}},
		{Name: "print_photo", Limit: "5/1m", Subjects: []guards.Subject{{Name: "room", Limit: "600/1m"}}},
		{Name: "crop_photo", Limit: "5/1m", Subjects: []guards.Subject{{Name: "room", Limit: "600/1m"}}},
		{Name: "keep_photo", Limit: "9/1d", Hold: true},
		{Name: "hang_photo", Limit: "9/1d", Hold: true, Subjects: []guards.Subject{{Name: "room", Limit: "9/1d"}}},
	}},
	{Name: "maps-guard", Message: "m", DelayedQueue: true, Activities: []guards.Activity{
		{Name: "move_map", Limit: "reservoir 5/2500ms ahead 1m"},
		{Name: "zoom_map", Limit: "reservoir 5/2500ms ahead 1m"},
	}},
}...)

// folder returns a project whose files have empty parts, and text outside them.
func folder() fstest.MapFS {
	files := fstest.MapFS{"go.mod": {Data: []byte("module example.com/m\n")}}
	for _, f := range documents {
		if f.parts == nil {
			continue
		}
		var b strings.Builder
		for _, part := range f.parts {
			b.WriteString("# by hand: " + part + "\n  # begin generated: " + part + " (text)\nstale lines\n  # end generated: " + part + "\n")
		}
		files[f.file] = &fstest.MapFile{Data: []byte(b.String())}
	}
	return files
}

// after returns the new texts by their files.
func after(t *testing.T, files fstest.MapFS, guards limits.Guards) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, c := range testkit.Must(Stale(files, guards, true))(t) {
		texts[c.File] = c.After
	}
	return texts
}

func TestMarkdown(t *testing.T) {
	want := Header +
		"| photos-guard | `upload_photo` | `5/1m` | free: `2/1m`; pro: `9/1m` |\n" +
		"| photos-guard | `view_photo` | unlimited |  |\n" +
		"| photos-guard | `rate_photo` | `minute: 5/1m, day: 9/1d` |  |\n" +
		"| photos-guard | `tag_photo`, `name_photo` | `writes: 9/1d`, group `work` |  |\n" +
		"| photos-guard | `show_photo` | `writes: 9/1d`, group `work`, hold |  |\n" +
		"| photos-guard | `share_photo` | `5/1m`, room `600/1m`, optional tenant `minute: 50/1m, day: 99/day` | room, pro: `900/1m` |\n" +
		"| photos-guard | `print_photo`, `crop_photo` | `5/1m`, room `600/1m` |  |\n" +
		"| photos-guard | `keep_photo` | `9/1d`, hold |  |\n" +
		"| photos-guard | `hang_photo` | `9/1d`, hold, room `9/1d` |  |\n" +
		"| maps-guard | `move_map`, `zoom_map` | `reservoir 5/2500ms ahead 1m` |  |\n"
	testkit.Same(t, "the table of limits", want, Markdown(some))
}

// A window is in whole seconds, rounded up. An unlimited activity, one whose limits have
// names and one with subjects have none. Each list has the subjects in their order, and Hold.
func TestListsOfActivities(t *testing.T) {
	got := after(t, folder(), some)
	for file, want := range map[string][]string{
		"activities/activities.go": {
			`	{Name: "upload_photo", Guard: "photos-guard", Window: 60 * time.Second},`, `	{Name: "view_photo", Guard: "photos-guard"},`,
			`	{Name: "share_photo", Guard: "photos-guard", Subjects: []string{"room", "tenant?"}},`, `	{Name: "print_photo", Guard: "photos-guard", Subjects: []string{"room"}},`,
			`	{Name: "show_photo", Guard: "photos-guard", Hold: true},`, `	{Name: "keep_photo", Guard: "photos-guard", Window: 86400 * time.Second, Hold: true},`,
			`	{Name: "hang_photo", Guard: "photos-guard", Subjects: []string{"room"}, Hold: true},`,
			`	{Name: "rate_photo", Guard: "photos-guard"},`, `	{Name: "move_map", Guard: "maps-guard", Window: 3 * time.Second},`,
		},
		"activities/activities.ts": {
			`  upload_photo: { guard: "photos-guard", window: 60 },`, `  view_photo: { guard: "photos-guard" },`, `  move_map: { guard: "maps-guard", window: 3 },`,
			`  share_photo: { guard: "photos-guard", subjects: ["room", "tenant?"] },`,
			`  show_photo: { guard: "photos-guard", hold: true },`, `  keep_photo: { guard: "photos-guard", window: 86400, hold: true },`,
			`  hang_photo: { guard: "photos-guard", subjects: ["room"], hold: true },`,
		},
		"activities/activities.py": {
			`    "rate_photo",`, `    "upload_photo": ("photos-guard", 60),`, `    "rate_photo": ("photos-guard", None),`, `    "move_map": ("maps-guard", 3),`,
			`    "share_photo": ("photos-guard", None, ("room", "tenant?")),`, `    "print_photo": ("photos-guard", None, ("room",)),`,
			`    "show_photo": ("photos-guard", None, True),`, `    "keep_photo": ("photos-guard", 86400, True),`, `    "hang_photo": ("photos-guard", None, ("room",), True),`,
			`ACTIVITIES: Final[dict[Activity, tuple[str, int | None] | tuple[str, int | None, bool] | tuple[str, None, tuple[str, ...]] | tuple[str, None, tuple[str, ...], bool]]] = {`,
		},
		"activities/activities.json": {
			`  "upload_photo": {"guard": "photos-guard", "window": 60},`, `  "view_photo": {"guard": "photos-guard"},`, `  "zoom_map": {"guard": "maps-guard", "window": 3}`,
			`  "share_photo": {"guard": "photos-guard", "subjects": ["room", "tenant?"]},`,
			`  "show_photo": {"guard": "photos-guard", "hold": true},`, `  "keep_photo": {"guard": "photos-guard", "window": 86400, "hold": true},`,
			`  "hang_photo": {"guard": "photos-guard", "subjects": ["room"], "hold": true},`,
		},
	} {
		for _, line := range want {
			if !strings.Contains(got[file], "\n"+line+"\n") {
				t.Errorf("%s lacks %s:\n%s", file, line, got[file])
			}
		}
	}
	unlimited := cricket.Link(guards.Guard{Name: "maps-guard", Message: "m", Activities: []guards.Activity{{Name: "move_map", Unlimited: true}}}) // needs no package time
	for _, list := range []string{got["activities/activities.go"], after(t, folder(), unlimited)["activities/activities.go"]} {
		if formatted, err := format.Source([]byte(list)); err != nil || string(formatted) != list {
			t.Errorf("the list for Go is not in the form of gofmt: %v\n%s", err, list)
		}
	}
}

// A project without Hold has the lists that it had before.
func TestListsNameHoldOnlyIfAnActivityHasIt(t *testing.T) {
	plain := cricket.Link(guards.Guard{Name: "maps-guard", Message: "m", Activities: []guards.Activity{
		{Name: "move_map", Limit: "5/1m"},
		{Name: "zoom_map", Limit: "5/1m", Subjects: []guards.Subject{{Name: "room", Limit: "9/1d"}}},
	}})
	got := after(t, folder(), plain)
	for _, file := range []string{"activities/activities.go", "activities/activities.ts", "activities/activities.py", "activities/activities.json"} {
		if text := strings.ToLower(got[file]); strings.Contains(text, "hold,") || strings.Contains(text, "hold:") || strings.Contains(text, `"hold"`) || strings.Contains(text, "true") || strings.Contains(text, "bool") {
			t.Errorf("%s names Hold:\n%s", file, got[file])
		}
	}
	if want := "ACTIVITIES: Final[dict[Activity, tuple[str, int | None] | tuple[str, None, tuple[str, ...]]]] = {"; !strings.Contains(got["activities/activities.py"], want) {
		t.Errorf("the list for Python lacks %s:\n%s", want, got["activities/activities.py"])
	}
}

// The windows of a calendar have a length in the lists only if all of them are equally
// long.
func TestListsLeaveOutWindowsThatDifferInLength(t *testing.T) {
	for limit, want := range map[guards.Limit]string{
		"9/day": ", \"window\": 86400", "9/week": ", \"window\": 604800", "9/day in UTC": ", \"window\": 86400", "9/1d": ", \"window\": 86400",
		"9/month": "", "9/day in Europe/Berlin": "", "9/week in Europe/Berlin": "", "9/month in UTC": "",
	} {
		guards := cricket.Link(guards.Guard{Name: "maps-guard", Message: "m", Activities: []guards.Activity{{Name: "move_map", Limit: limit}}})
		list := after(t, folder(), guards)["activities/activities.json"]
		if line := `  "move_map": {"guard": "maps-guard"` + want + "}"; !strings.Contains(list, "\n"+line+"\n") {
			t.Errorf("%s: the list lacks %s:\n%s", limit, line, list)
		}
	}
}

// A page without the markers of a table has none.
func TestStaleLeavesOutAPageWithoutMarkers(t *testing.T) {
	files := folder()
	files["README.md"] = &fstest.MapFile{Data: []byte("# Mine\n")}
	delete(files, "docs/limits.md")
	for file := range after(t, files, some) {
		if strings.HasSuffix(file, ".md") {
			t.Errorf("%s is stale", file)
		}
	}
}

// More mistakes are in the script generate.txtar.
func TestStaleRefuses(t *testing.T) {
	whole := string(folder()["template.yaml"].Data)
	const markers = `template.yaml has no single pair of lines with "begin generated: outputs" and "end generated: outputs": put the two around the place`
	for _, tt := range []struct{ file, text, want string }{
		{"template.yaml", strings.Replace(whole, "# end generated: outputs", "#", 1), markers},
		{"template.yaml", strings.Replace(whole, "# end generated: outputs", "# begin generated: outputs", 1), markers},
		{"template.yaml", whole + "# end generated: outputs\n", markers},
		{"functions/cards-guard/main.go", "package main", `functions/cards-guard is the function of no guard in limits/limits.go, and somebody changed it: give a guard the Name "cards-guard", or delete the folder`},
		{"go.mod", "go 1.26", "go.mod names no module"},
	} {
		files := folder()
		files[tt.file] = &fstest.MapFile{Data: []byte(tt.text)}
		if _, err := Stale(files, some, true); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.file, err, tt.want)
		}
	}
	const want = "that end in -guard, such as photos-guard"
	if _, err := Stale(folder(), limits.Guards{{Name: "x-ray-guard", Message: "m", Activities: some[0].Activities}}, true); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// A file in the place of a folder makes the last change fail. All others are undone: a removed
// file is there again, a changed one has its old text, and a new one is gone.
func TestWritePutsBackWhatItWrote(t *testing.T) {
	dir := t.TempDir()
	root := testkit.Must(os.OpenRoot(dir))(t)
	p := &Project{Dir: dir, root: root}
	t.Cleanup(func() { _ = p.Close() })
	const program, event = "functions/photos-guard/main.go", "functions/photos-guard/event.json"
	testkit.OK(t, p.Write([]Change{{File: program, New: true, After: "main"}, {File: event, New: true, After: "event"}, {File: "more", New: true, After: "old"}}))
	gone := []Change{{File: program, Gone: true, Before: "main"}, {File: event, Gone: true, Before: "event"}}
	others := []Change{{File: "more", Before: "old", After: "new"}, {File: "functions/a/main.go", New: true, After: "new"}, {File: "more/file", New: true}}
	if err := p.Write(append(gone, others...)); err == nil {
		t.Error("a file below a file was written")
	}
	for file, want := range map[string]string{program: "main", event: "event", "more": "old"} {
		if got, err := p.read(file); got != want || err != nil {
			t.Errorf("%s is %q (%v) after the failure, want %q", file, got, err, want)
		}
	}
	if exists(root.FS(), "functions/a/main.go") {
		t.Error("a new file is still there")
	}
	if err := p.Write(gone); err != nil || exists(root.FS(), "functions/photos-guard") || !exists(root.FS(), "functions") {
		t.Errorf("%v, want the function's folder removed", err)
	}
}
