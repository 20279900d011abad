package command

import (
	"strings"
	"testing"
)

const messages = "replay ../../../docs/traffic/messages.csv --columns user=user_id,room=room_id "

// A replay counts each request for its room, too, by the limit of the flag or of the code.
func TestReplayOfSubjects(t *testing.T) {
	for flags, want := range map[string]string{
		"--activity write --limit 2/1m --subject room=4/1m":                       "allowed  6   75.0 %\nrefused  2   25.0 %\nrefused by: room 1, the user's own limit 1\n",
		"--activity write --subject room":                                         "write with 3/1m: 8 requests of 3 users from 2026-01-05 12:00:00 UTC to 2026-01-05 12:01:02 UTC\n\nallowed  6   75.0 %\nrefused  2   25.0 %\nrefused by: room 2\n",
		"--activity write --limit 2/1m --subject room=4/1m --json":                "\"limitedBy\": {\n    \"room\": 1,\n    \"write\": 1\n  },",
		"--activity write --limit 2/1m --subject room=4/1m --compare 3/1m --json": "\"limitedBy\": {\n        \"room\": 2\n      },",
	} {
		if status, out, log := command(t, rooms, messages+flags); status != done || !strings.Contains(out, want) {
			t.Errorf("%s: status %d, %s%s, want %s", flags, status, log, out, want)
		}
	}
	for flags, want := range map[string]string{
		"--activity write --subject room=4":                                                    "guards: --subject room: ",
		"--activity write --subject rom":                                                       "guards: --subject is \"rom\", did you mean \"room\"?\nguards: give a limit to try: --subject rom=600/1m\n",
		"--activity write --limit \"reservoir 5/1m ahead 5m\" --subject room=4/1m":             "guards: --subject goes without a reservoir",
		"--activity write --subject \"room=reservoir 5/1m ahead 5m\"":                          "guards: --subject: subject \"room\": a reservoir gives places to users alone",
		"--activity write --subject room --suggest 99%":                                        "guards: --subject goes without --suggest and --plot",
		"--activity write --subject a=1/1m --subject b=1/1m --subject c=1/1m --subject d=1/1m": "guards: --subject: it has 4 subjects, want at most 3",
		"--activity write --subject house=4/1m --subject room=9/1m":                            "has no column \"house\"",
	} {
		if status, out, log := command(t, rooms, messages+flags); status != wrongUse || !strings.Contains(log, want) {
			t.Errorf("%s: status %d, %s%s, want %s", flags, status, log, out, want)
		}
	}
	_, _, log := command(t, rooms, strings.ReplaceAll(messages, ",room=room_id", "")+"--activity write")
	if log != "guards: only users are limited here; --subject room limits the room of each request, too\n" {
		t.Error(log)
	}
}
