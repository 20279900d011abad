package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	if err := os.WriteFile(traffic, []byte("time,user\n1767614400,u1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
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
