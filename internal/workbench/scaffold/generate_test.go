package scaffold

import (
	"go/format"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

var some = limits.Guards{
	{Name: "photos-guard", Message: "m", Description: `Limits: "how" # fast`, MemorySize: 512, Activities: []limits.Activity{
		{Name: "upload_photo", Limit: policy.Must("5/1m"), Tiers: limits.Tiers{"pro": policy.Must("9/1m"), "free": policy.Must("2/1m")}},
		{Name: "view_photo", Unlimited: true},
		{Name: "rate_photo", Limit: policy.Must("minute: 5/1m, day: 9/1d")},
	}},
	{Name: "maps-guard", Message: "m", DelayedQueue: true, Activities: []limits.Activity{
		{Name: "move_map", Limit: policy.Must("reservoir 5/2500ms ahead 1m")},
		{Name: "zoom_map", Limit: policy.Must("reservoir 5/2500ms ahead 1m")},
	}},
}

// folder returns a project whose files have empty parts, and text outside them.
func folder() fstest.MapFS {
	files := fstest.MapFS{}
	for _, f := range documents {
		var b strings.Builder
		for _, part := range f.parts {
			b.WriteString("# by hand: " + part + "\n  # begin generated: " + part + " (text)\nold\n  # end generated: " + part + "\n")
		}
		files[f.file] = &fstest.MapFile{Data: []byte(b.String())}
	}
	return files
}

// after returns the new texts by their files.
func after(t *testing.T, files fstest.MapFS, guards limits.Guards) map[string]string {
	t.Helper()
	changes, err := Stale(files, guards)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, c := range changes {
		texts[c.File] = c.After
	}
	return texts
}

func TestMarkdown(t *testing.T) {
	want := Header +
		"| photos-guard | `upload_photo` | `5/1m` | free: `2/1m`; pro: `9/1m` |\n" +
		"| photos-guard | `view_photo` | unlimited |  |\n" +
		"| photos-guard | `rate_photo` | `minute: 5/1m, day: 9/1d` |  |\n" +
		"| maps-guard | `move_map`, `zoom_map` | `reservoir 5/2500ms ahead 1m` |  |\n"
	if diff := cmp.Diff(want, Markdown(some)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A window is in whole seconds, rounded up. An unlimited activity and one with
// several limits have none.
func TestClients(t *testing.T) {
	got := after(t, folder(), some)
	for file, want := range map[string][]string{
		"client/activities.go": {
			`	{Name: "upload_photo", Guard: "photos-guard", Window: 60 * time.Second},`, `	{Name: "view_photo", Guard: "photos-guard"},`,
			`	{Name: "rate_photo", Guard: "photos-guard"},`, `	{Name: "move_map", Guard: "maps-guard", Window: 3 * time.Second},`,
		},
		"activities/activities.ts": {
			`  upload_photo: { guard: "photos-guard", window: 60 },`, `  view_photo: { guard: "photos-guard" },`, `  move_map: { guard: "maps-guard", window: 3 },`,
		},
		"clients/python/src/guards/_activities.py": {
			`    "rate_photo",`, `    "upload_photo": ("photos-guard", 60),`, `    "rate_photo": ("photos-guard", None),`, `    "move_map": ("maps-guard", 3),`,
		},
	} {
		for _, line := range want {
			if !strings.Contains(got[file], "\n"+line+"\n") {
				t.Errorf("%s lacks %s:\n%s", file, line, got[file])
			}
		}
	}
	if formatted, err := format.Source([]byte(got["client/activities.go"])); err != nil || string(formatted) != got["client/activities.go"] {
		t.Errorf("the list for Go is not in the form of gofmt: %v", err)
	}
}

// A guard with a reset may delete items. One with a queue may send jobs there.
func TestTheTemplateDescribesEachGuard(t *testing.T) {
	const want = `  PhotosGuardFunction:
    Type: AWS::Serverless::Function
    Metadata: *guard
    Properties:
      FunctionName: !Sub ${NamePrefix}photos-guard
      Description: "Limits: \"how\" # fast"
      MemorySize: 512
      Policies:
        - Statement:
            - Effect: Allow
              Action: [dynamodb:UpdateItem, dynamodb:GetItem, dynamodb:DeleteItem]
              Resource: !GetAtt Table.Arn

  MapsGuardFunction:
    Type: AWS::Serverless::Function
    Metadata: *guard
    Properties:
      FunctionName: !Sub ${NamePrefix}maps-guard
      Description: "Limits how often one user does move_map."
      Environment: {Variables: {DELAYED_QUEUE_URL: !Ref DelayedQueue}}
      Policies:
        - Statement:
            - Effect: Allow
              Action: [dynamodb:UpdateItem, dynamodb:GetItem]
              Resource: !GetAtt Table.Arn
            - Effect: Allow
              Action: [sqs:SendMessage]
              Resource: !GetAtt DelayedQueue.Arn
`
	if diff := cmp.Diff(want, text("functions", some)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Texts that people wrote stay, wherever they are outside the markers.
func TestStaleChangesOnlyWhatIsBetweenMarkers(t *testing.T) {
	files := folder()
	got := after(t, files, some)
	for _, f := range documents[:2] {
		var kept []string
		for line := range strings.Lines(got[f.file]) {
			if strings.Contains(line, "by hand") || strings.Contains(line, "generated: ") {
				kept = append(kept, line)
			}
		}
		if want := strings.ReplaceAll(string(files[f.file].Data), "old\n", ""); strings.Join(kept, "") != want || strings.Contains(got[f.file], "old\n") {
			t.Errorf("%s becomes\n%s\nwant these lines to stay:\n%s", f.file, got[f.file], want)
		}
	}
	for file, text := range got {
		files[file] = &fstest.MapFile{Data: []byte(text)}
	}
	if again := after(t, files, some); len(again) > 0 {
		t.Errorf("stale again: %q", again)
	}
}

func TestStaleWritesASampleEventOnlyOnce(t *testing.T) {
	files := folder()
	files["functions/maps-guard/event.json"] = &fstest.MapFile{Data: []byte("{}")}
	got := after(t, files, some)
	if want := "{\"userId\": \"u1\", \"activity\": \"upload_photo\"}\n"; got["functions/photos-guard/event.json"] != want {
		t.Errorf("the event is %q, want %q", got["functions/photos-guard/event.json"], want)
	}
	if text, ok := got["functions/maps-guard/event.json"]; ok {
		t.Errorf("an event that exists becomes %q", text)
	}
}

// A project has the clients that it has folders for, and perhaps no docs/limits.md.
func TestStaleLeavesOutWhatAProjectDoesNotHave(t *testing.T) {
	files := folder()
	delete(files, "docs/limits.md")
	delete(files, "clients/python/src/guards/_activities.py")
	files["clients/python/src/guards/__init__.py"] = &fstest.MapFile{}
	var got []string
	for file := range after(t, files, some) {
		got = append(got, file)
	}
	want := []string{
		"client/activities.go", "clients/python/src/guards/_activities.py", "functions/maps-guard/event.json", "functions/photos-guard/event.json", "template.yaml",
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Each row of the first list replaces a text of template.yaml.
func TestStaleRefuses(t *testing.T) {
	whole := string(folder()["template.yaml"].Data)
	for _, tt := range []struct{ old, with, want string }{
		{"# begin generated: urls", "#", `template.yaml has no single pair of lines with "begin generated: urls" and "end generated: urls": put the two around the place`},
		{"# end generated: urls", "#", `template.yaml has no single pair of lines with "begin generated: urls"`},
		{"# end generated: urls", "# begin generated: urls", `template.yaml has no single pair of lines with "begin generated: urls"`},
		{"# end generated: urls", "# end generated: urls\n# end generated: urls", `template.yaml has no single pair of lines with "begin generated: urls"`},
	} {
		files := folder()
		files["template.yaml"] = &fstest.MapFile{Data: []byte(strings.Replace(whole, tt.old, tt.with, 1))}
		if changes, err := Stale(files, some); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("with %q in place of %q: %d changes, %v, want %s", tt.with, tt.old, len(changes), err, tt.want)
		}
	}
	for want, g := range map[string]limits.Guard{
		"that end in -guard, such as photos-guard": {Name: "x-ray-guard", Message: "m", Activities: some[0].Activities},
		"needs a name, a message and activities":   {Name: "photos-guard"},
	} {
		if _, err := Stale(folder(), limits.Guards{g}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", g.Name, err, want)
		}
	}
}
