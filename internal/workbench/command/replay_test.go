package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
	app "github.com/cric-talk/guards/limits"
)

// Ctrl-C prints the figures so far, even while it waits for a pipe.
func TestReplayPrintsWhatWasDone(t *testing.T) {
	for name, flags := range map[string][]string{"a report": nil, "a comparison": {"--compare", "log 20/1m"}} {
		ctx, cancel := context.WithCancel(t.Context())
		in, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		stdin := os.Stdin
		os.Stdin = in
		go func() { // the pipe holds less than this, so most of it has been read when the writing ends
			_, _ = out.WriteString("time,user\n")
			for i := range 100_000 {
				_, _ = fmt.Fprintf(out, "%d,u%d\n", 1_767_614_400_000+i, i%100)
			}
			cancel()
		}()
		var result, log stream
		status := run(ctx, append([]string{"replay", "-", "--activity", "create_post", "--limit", "20/1m"}, flags...), session{page: app.All, out: &result, err: &log})
		os.Stdin = stdin
		_ = out.Close()
		if status != interrupted || !strings.Contains(result.String(), " requests of 100 users from 2026-01-05 12:00:00 UTC to ") ||
			!strings.HasPrefix(log.String(), "guards: stopped before the end: the figures are those of the requests until 2026-01-05 12:0") {
			t.Errorf("%s: exit status %d, %q, %q, want %d and the figures so far", name, status, &log, &result, interrupted)
		}
	}
}

// Nothing is left of a target that was checked, and of temporary files.
func TestReplayLeavesNoFiles(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	traffic := filepath.Join(t.TempDir(), "t.csv")
	testkit.OK(t, os.WriteFile(traffic, []byte("time,user\n1767614400,u1\n"), 0o600))
	_, out, log := command(t, app.All, "replay "+traffic+" --activity create_post --suggest 99%")
	command(t, app.All, "replay "+traffic+" --activity create_post --user u2 --plot "+filepath.Join(folder, "out.svg"))
	left, err := os.ReadDir(folder)
	if err != nil || len(left) > 0 || !strings.Contains(out, "1/1m is the lowest limit") {
		t.Errorf("%v are left, %v\n%s%s", left, err, out, log)
	}
}

// replay tells that a limit is prepaid and was decided without leases.
func TestReplayDecidesWithoutLeases(t *testing.T) {
	const byUser = "replay ../../../docs/traffic/messages.csv --activity write --columns user=user_id"
	const group = "replay ../../../docs/traffic/group.csv --limit "
	for line, want := range map[string]int{
		byUser + ` --limit "200/1m prepaid"`:                                                1,
		byUser + ` --limit 2/1m --compare 200/1m`:                                           0,
		byUser + `,room=room_id --limit 2/1m --subject "room=200/1m prepaid"`:               1,
		byUser + ` --limit 2/1m --compare "200/1m prepaid"`:                                 1,
		byUser + ` --limit "200/1m prepaid" --suggest 90%`:                                  1,
		byUser + ` --limit 200/1m --suggest 90%`:                                            0,
		group + `"create_post=writes: 200/1m" --limit "add_comment=writes: 200/1m"`:         0,
		group + `"create_post=writes: 300/1m prepaid" --limit "add_comment=writes: 200/1m"`: 1,
	} {
		for flag, said := range map[string]string{
			"": "\nprepaid: decided exactly, without leases; guards can refuse a little more at full load\n", "--json": `"exact": true,`,
		} {
			if status, out, log := command(t, app.All, line+" "+flag); status != done || strings.Count(out, said) != want {
				t.Errorf("guards %s %s: status %d, %s%s, want %q %d times", line, flag, status, out, log, said, want)
			}
		}
	}
}

// A request's own number decides, if the limit takes one.
func TestReplayByNumbers(t *testing.T) {
	const (
		calls = "replay ../../../docs/traffic/calls.csv "
		named = calls + "--columns limit=bought --activity call_api "
		alone = "guards: --columns limit=NAME goes with a single limit that has a max, such as \"100/1h max 5000\", and without --suggest\n"
	)
	for line, want := range map[string]string{
		named + `--limit "2/1m max 10"`:                                                "refused  2   28.6 %\n",
		named + `--limit 1/1m --compare "1/1m max 10"`:                                 "1/1m         3 (42.9 %)  4        0        2              59 s\n1/1m max 10  4 (57.1 %)  3 ",
		named + `--limit "2/1m max 10" --json`:                                         "\"numbered\": 4,",
		named + `--limit 2/1m`:                                                         alone,
		named + `--limit "minute: 2/1m max 10, day: 9/1d"`:                             alone,
		named + `--limit "2/1m max 10" --suggest 99%`:                                  alone,
		calls + `--activity call_api --limit "1/1m max 10" --suggest 100%`:             "3/1m is the lowest limit",
		calls + `--columns limit=bought,activity=user --limit "u2=calls: 2/1m max 10"`: "u2        calls: 2/1m max 10  3 of 3 (100.0 %)",
	} {
		if _, out, log := command(t, app.All, line); !strings.Contains(out+log, want) {
			t.Errorf("%s: %s%s, want %s", line, log, out, want)
		}
	}
}

// A replay of a group takes the limits of the code, and --limit replaces one of them.
func TestReplayOfAGroup(t *testing.T) {
	traffic := filepath.Join(t.TempDir(), "traffic.csv")
	lines := "time,user,activity\n" + strings.Repeat("1700000058,u1,create_post\n", 12) + strings.Repeat("1700000059,u1,add_comment\n", 30)
	testkit.OK(t, os.WriteFile(traffic, []byte(lines), 0o600))
	replay := func(args string) (int, string, string) {
		return command(t, content, "replay "+traffic+" "+args)
	}
	for args, want := range map[string][]string{ // of the 12 posts and the 30 comments
		"--group content": {"12,\n      \"allowed\": 10,", "30,\n      \"allowed\": 20,"},
		`--group content --limit "add_comment=writes: 25/1h"`:                            {"12,\n      \"allowed\": 10,", "30,\n      \"allowed\": 5,"},
		`--limit "create_post=writes: 30/1h cost 3" --limit "add_comment=writes: 30/1h"`: {"12,\n      \"allowed\": 10,", "30,\n      \"allowed\": 0,"},
		`--limit "create_post=posts: 3/1m"`:                                              {"12,\n      \"allowed\": 3,"},
	} {
		status, out, log := replay(args + " --json")
		if testkit.Contains(t, args, out, want...); status != done || log != "" {
			t.Errorf("%v: status %d, %s", args, status, log)
		}
	}
	if status, out, log := replay("--activity create_post"); status != done || !strings.HasPrefix(out, "create_post with posts: 10/1m, writes: 40/1h cost 2: ") ||
		log != "guards: only requests of create_post are counted; --group content counts those of the whole group\n" {
		t.Errorf("one activity: status %d, %s%s", status, out, log)
	}
	for message, args := range map[string]string{
		`--group is "contnt", did you mean "content"?`:                          "--group contnt",
		`--limit is "10/1m", want ACTIVITY=LIMIT`:                               "--limit 10/1m",
		`--limit for create_post: limit "10/1m" has no name, want one in a`:     "--limit create_post=10/1m",
		`--limit for create_post: limit is "posts: 10"`:                         `--limit "create_post=posts: 10"`,
		"--limit names create_post twice":                                       `--limit "create_post=p: 1/1m" --limit "create_post=p: 2/1m"`,
		"activities create_post and add_comment: window of limit":               `--limit "create_post=w: 1/1m" --limit "add_comment=w: 1/1h"`,
		"--plot, --user, --suggest, --compare and --subject go with --activity": "--group content --suggest 99%",
		"--group goes without --activity":                                       "--group content --activity create_post",
		"--limit is given twice":                                                "--activity create_post --limit 1/1m --limit 2/1m",
	} {
		if status, out, log := replay(args); status != wrongUse || out != "" || !strings.Contains(log, message) {
			t.Errorf("%v: status %d, %s%s, want %s", args, status, out, log, message)
		}
	}
}

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
