package command

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/testkit"
	app "github.com/cric-talk/guards/limits"
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

// A limit with a space that is not quoted is several words for the command.
func TestALimitWithoutQuotes(t *testing.T) {
	for args, limit := range map[string]string{
		"new foo-guard bar log 100/12h":                                                  "log 100/12h",
		"new --guard posts-guard bar minute: bucket 1/1m, day: 10/1d":                    "minute: bucket 1/1m, day: 10/1d",
		"new foo-guard bar 5/1m --tier premium=log 9/1m":                                 "log 9/1m",
		"new foo-guard bar 5/1m --subject room=bucket 10/1m burst 3":                     "bucket 10/1m burst 3",
		"init --guard foo-guard --activity bar --limit sliding 50/1h my-guards":          "sliding 50/1h",
		"limits set create_post bucket 1/3s --why launch":                                "bucket 1/3s",
		"replay t.csv --activity create_post --limit 5/1m --compare sliding 5/1m --plot": "sliding 5/1m",
		"new foo-guard":                       "",
		"new foo-guard bar 5/1m upload_photo": "",
		"limits set create_post 5/1m now":     "",
	} {
		var log stream
		status := run(t.Context(), strings.Fields(args), session{page: app.All, err: &log})
		want := "guards: quote the limit, because it has a space: \"" + limit + "\"\n"
		if status != wrongUse || strings.HasSuffix(log.String(), want) != (limit != "") || limit == "" && strings.Contains(log.String(), "quote") {
			t.Errorf("guards %s: status %d, %s", args, status, &log)
		}
	}
}

// People try help as a command.
func TestHelpIsAlsoACommand(t *testing.T) {
	for words, option := range map[string]string{"help": "--help", "help limits": "limits --help", "help limits set": "limits set --help"} {
		var out, want, log stream
		status := run(t.Context(), strings.Fields(words), session{page: app.All, out: &out, err: &log})
		run(t.Context(), strings.Fields(option), session{page: app.All, out: &want, err: &log})
		if status != done || out.String() != want.String() || out.String() == "" || log.String() != "" {
			t.Errorf("guards %s: status %d, %s\n%s", words, status, &log, &out)
		}
	}
}
