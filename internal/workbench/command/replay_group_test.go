package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A replay of a group takes the limits of the code, and --limit replaces one of them.
func TestReplayOfAGroup(t *testing.T) {
	traffic := filepath.Join(t.TempDir(), "traffic.csv")
	lines := "time,user,activity\n" + strings.Repeat("1700000058,u1,create_post\n", 12) + strings.Repeat("1700000059,u1,add_comment\n", 30)
	if err := os.WriteFile(traffic, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	replay := func(args string) (int, string, string) {
		return command(t, content, "replay "+traffic+" "+args)
	}
	for _, tt := range []struct {
		args            string
		posts, comments int64 // allowed
	}{
		{"--group content", 10, 20},
		{`--group content --limit "add_comment=writes: 25/1h"`, 10, 5},
		{`--limit "create_post=writes: 30/1h cost 3" --limit "add_comment=writes: 30/1h"`, 10, 0},
		{`--limit "create_post=posts: 3/1m"`, 3, 0},
	} {
		status, out, log := replay(tt.args + " --json")
		var got struct {
			Activities []struct {
				Activity string
				Allowed  int64
			}
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil || status != done || log != "" {
			t.Fatalf("%v: status %d, %v, %s", tt.args, status, err, log)
		}
		allowed := map[string]int64{}
		for _, r := range got.Activities {
			allowed[r.Activity] = r.Allowed
		}
		if allowed["create_post"] != tt.posts || allowed["add_comment"] != tt.comments {
			t.Errorf("%v: %v, want %d posts and %d comments", tt.args, allowed, tt.posts, tt.comments)
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
