package command

import (
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
)

// A change that is set until a time ends by itself, by the guard's clock. Commands show its
// end, and the next change drops what has ended.
func TestAChangeEndsByItself(t *testing.T) {
	p := ofApp(t)
	p.prints("limits set create_post 20/1m --until 2h --by op --why launch", "create_post: limit 10/1m -> 20/1m until 2023-11-15T00:14:18Z\nin the table; instances follow within 30 s of use\n")
	p.does("limits set add_comment --mode off --until 1h --by op --yes", "limits set pin \"log 50/12h\" --by op")
	p.contains("limits diff", "create_post        10/1m        20/1m until 2023-11-15T00:14:18Z\n", "add_comment        60/1m        60/1m                             off until 2023-11-14T23:14:18Z\n")
	p.contains("limits --live", "20/1m until 2023-11-15T00:14:18Z", "off until 2023-11-14T23:14:18Z")
	p.contains("limits diff --json", `{"activity":"create_post","code":"10/1m","live":"20/1m","until":"2023-11-15T00:14:18Z"}`)
	p.contains("limits history", "set create_post 20/1m until 2023-11-15T00:14:18Z", "set add_comment to mode off until 2023-11-14T23:14:18Z")
	p.prints("check add_comment --user u1 --store dynamodb", "1  allowed  unlimited\n")
	p.prints("check create_post --user u1 --count 15 --store dynamodb", "1  allowed  15/20 used,  5 left\n")

	// An earlier setting does not come back, and the command tells that.
	if _, _, log := p.run("limits set pin \"log 60/12h\" --until 1m --by op"); !strings.Contains(log, "and not what was set before: pin: log 50/12h") {
		t.Errorf("the command says %q", log)
	}
	p.does("limits set pin \"log 50/12h\" --by op")

	p.now = p.now.Add(time.Hour)
	p.prints("check add_comment --user u1 --store dynamodb", "1  allowed   1/60 used, 59 left\n")
	p.contains("limits diff", "create_post")
	p.now = p.now.Add(time.Hour)
	p.contains("check create_post --user u1 --count 11 --partial --store dynamodb", "10/10 used")
	p.contains("limits diff", "pin             log 100/12h  log 50/12h\n")
	p.does("limits set add_comment 70/1m --by op") // drops what has ended
	p.now = p.now.Add(-2 * time.Hour)
	p.lacks("limits diff", "until")
}

// The mode of each activity of a guard, or of all guards, is set at once and comes back at once.
func TestTheKillSwitch(t *testing.T) {
	p := ofApp(t)
	p.notes("limits set --guard posts-guard --mode off --by op --until 1h", "Set each activity of posts-guard to mode off in the table until 2023-11-14T23:14:18Z? [y/N] ")
	p.contains("limits diff", "create_post", "update_post", "delete_post", "off until 2023-11-14T23:14:18Z")
	p.lacks("limits diff", "add_comment", "like")
	p.notes("limits set --all --mode off --by op --why incident", "Set everything to mode off in the table? [y/N] ")
	for _, activity := range []string{"create_post", "pin", "update_member_role"} {
		p.prints("check "+activity+" --user u1 --store dynamodb", "1  allowed  unlimited\n")
	}
	p.contains("limits history", "set everything to mode off", "set each activity of posts-guard to mode off until 2023-11-14T23:14:18Z")
	p.does("limits set --all --mode deployed --by op")
	p.contains("limits diff", "nothing differs from the code\n")
	p.wrong(map[string]string{
		"limits set --guard postguard --mode off":         "did you mean \"posts-guard\"?",
		"limits set --all create_post --mode off":         "--guard and --all set a mode",
		"limits set --all":                                "--guard and --all set a mode",
		"limits set --mode off":                           "an activity is missing",
		"limits set --all --mode sleepy":                  "mode is \"sleepy\"",
		"limits set create_post 20/1m --until tomorow":    "--until is \"tomorow\"",
		"limits set create_post 20/1m --until 2020-01-01": "a time in the future",
	})
}

// People write the last day of all for "forever". The JSON of a time ends with the year
// 9999, so such a grant ends a second before the year 10000, wherever it begins there.
func TestAGrantForever(t *testing.T) {
	p := ofApp(t)
	const last = "u1 has the role admin until 9999-12-31T23:59:59Z\n"
	for _, until := range []string{"9999-12-31", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-12:00", "9999-12-31T23:59:59.999Z"} {
		p.ends("grant --user u1 --role admin --until "+until+" --reason r", done, last, "")
	}
	p.contains("limits diff", "9999-12-31T23:59:59Z")
	p.contains("limits diff --json", `"until":"9999-12-31T23:59:59Z"`)
	p.contains("limits history", "until 9999-12-31T23:59:59Z")
	for _, until := range []string{"10000-01-01", "10000-01-01T00:00:00Z", "forever"} {
		p.fails("grant --user u1 --role admin --until "+until+" --reason r", wrongUse, "9999-12-31 for no end")
	}
	for _, until := range []string{"0001-01-01", "0000-01-01T00:00:00+12:00"} {
		p.fails("grant --user u1 --role admin --until "+until+" --reason r", wrongUse, "want a time in the future")
	}
}

func TestUntilIsATimeThatJSONHolds(t *testing.T) {
	now := time.Date(9999, 12, 30, 0, 0, 0, 0, time.UTC)
	for _, text := range []string{"9999-12-31", "9999w", "9999-12-31T23:00:00-02:00", "9999d", "1d"} {
		until := testkit.Must(parseUntil(text, now))(t)
		if _, err := until.MarshalJSON(); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
