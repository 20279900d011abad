package live_test

import (
	"testing"

	. "github.com/cric-talk/guards/internal/live"
)

func TestTargetsHaveOneName(t *testing.T) {
	for name, want := range map[string]Target{
		"write":               {Activity: "write"},
		"write/room":          {Activity: "write", Subject: "room"},
		"content.writes":      {Group: "content", Limit: "writes"},
		"content.room.minute": {Group: "content", Subject: "room", Limit: "minute"},
	} {
		if got := ParseTarget(name); got != want || got.String() != name {
			t.Errorf("%s: %+v, %s, want %+v", name, got, got, want)
		}
	}
	for _, name := range []string{"", ".", "a/", "a/b/c", "a.b.c.d", "/a"} { // by hand
		if again := ParseTarget(ParseTarget(name).String()); again != ParseTarget(name) {
			t.Errorf("%q: %+v, want %+v", name, again, ParseTarget(name))
		}
	}
}
