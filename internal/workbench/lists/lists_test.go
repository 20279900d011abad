package lists_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/workbench/lists"
)

var guards = []limits.Guard{
	{Name: "photos-guard", Activities: []limits.Activity{
		{Name: "upload_photo", Limit: policy.Must("5/1m"), Tiers: limits.Tiers{"pro": policy.Must("9/1m"), "free": policy.Must("2/1m")}},
		{Name: "view_photo", Unlimited: true},
		{Name: "rate_photo", Limit: policy.Must("minute: 5/1m, day: 9/1d")},
	}},
	{Name: "maps-guard", Activities: []limits.Activity{
		{Name: "move_map", Limit: policy.Must("5/1500ms")},
		{Name: "zoom_map", Limit: policy.Must("5/1500ms")},
	}},
}

func TestMarkdown(t *testing.T) {
	want := lists.Header +
		"| photos-guard | `upload_photo` | `5/1m` | free: `2/1m`; pro: `9/1m` |\n" +
		"| photos-guard | `view_photo` | unlimited |  |\n" +
		"| photos-guard | `rate_photo` | `minute: 5/1m, day: 9/1d` |  |\n" +
		"| maps-guard | `move_map`, `zoom_map` | `5/1500ms` |  |\n"
	if diff := cmp.Diff(want, lists.Markdown(guards)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A window is in whole seconds, rounded up. An unlimited activity and one with
// several limits have none.
func TestClients(t *testing.T) {
	got, err := lists.Clients(guards)
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string][]string{
		"client/activities.go": {
			`{Name: "upload_photo", Guard: "photos-guard", Window: 60 * time.Second},`, `{Name: "view_photo", Guard: "photos-guard"},`,
			`{Name: "rate_photo", Guard: "photos-guard"},`, `{Name: "move_map", Guard: "maps-guard", Window: 2 * time.Second},`,
		},
		"clients/typescript/src/activities.ts": {
			`upload_photo: { guard: "photos-guard", window: 60 },`, `view_photo: { guard: "photos-guard" },`, `move_map: { guard: "maps-guard", window: 2 },`,
		},
		"clients/python/src/guards/_activities.py": {
			`    "rate_photo",`, `"upload_photo": ("photos-guard", 60),`, `"rate_photo": ("photos-guard", None),`, `"move_map": ("maps-guard", 2),`,
		},
	} {
		for _, line := range want {
			if !strings.Contains(string(got[file]), line+"\n") {
				t.Errorf("%s lacks %s:\n%s", file, line, got[file])
			}
		}
	}
}
