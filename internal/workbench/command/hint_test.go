package command

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/testkit"
)

// An operator sees what is wrong in a document of live limits. Its error leaves
// that out, because functions log it.
func TestAdviceOnADocument(t *testing.T) {
	_, err := live.Parse([]byte(`{"unheard": {}}`))
	if err == nil || strings.Contains(err.Error(), "unheard") || !strings.Contains(adviceOn(err), "unheard") {
		t.Errorf("the error is %v, with the advice %q", err, adviceOn(err))
	}
}

func TestNearest(t *testing.T) {
	for misspelled, want := range map[string]string{
		"creat_post":         "create_post",
		"create_pots":        "create_post", // swapped
		"CREATE_POST":        "",
		"create-post":        "create_post",
		"create_room_mesage": "create_room_message",
		"add_coment\x00\xff": "",
		"":                   "",
	} {
		got, ok := nearest(misspelled, activityNames())
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q: %s, %v, want %q", misspelled, got, ok, want)
		}
	}
}

// A misspelt time zone gets the nearest name, whatever command reads it.
func TestAdviceOnATimeZone(t *testing.T) {
	for zone, want := range map[string]string{
		"Europe/Berlni": "did you mean Europe/Berlin?", "europe/berlin": "did you mean Europe/Berlin?",
		"berlin": "did you mean Europe/Berlin?", "New_York": "did you mean America/New_York?", "Mars/Olympus": "",
	} {
		_, err := policy.Parse("9/day in " + zone)
		if got := adviceOn(err); err == nil || got != want {
			t.Errorf("%s: %v, with the advice %q, want %q", zone, err, got, want)
		}
	}
}

// The list has the zones that this version of Go brings along. After an upgrade, write
// the names of $(go env GOROOT)/lib/time/zoneinfo.zip to zones.txt, sorted.
func TestTheListOfZones(t *testing.T) {
	if diff := cmp.Diff(testkit.Zones(t), strings.Fields(zones)); diff != "" {
		t.Errorf("zones (-Go +list):\n%s", diff)
	}
}
