package command

import (
	"regexp"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// An attribute of the wrong type makes an item unreadable. status names the
// attribute, check cannot decide, and reset repairs the item.
func TestUnreadableItems(t *testing.T) {
	p := ofApp(t)
	for _, activity := range []string{"create_post", "old_activity"} { // the code does not have the second one
		p.put(map[string]string{
			"userId": "u1", "activityWindow": activity + "#28333334", "activity": activity, "activityCount": "3",
		})
	}
	p.put(map[string]string{"userId": "u2", "activityWindow": "update_member_role", "t": "3"})
	p.put(map[string]string{"userId": "u3", "activityWindow": "create_post#28333333", "activity": "create_post", "activityCount": "3"})
	p.put(map[string]string{"userId": "u4", "activityWindow": "like#28333334", "activity": "like", "activityCount": "3"})
	p.put(map[string]string{"userId": "u5", "activityWindow": "create_post#28333334", "activity": "create_post", "note": "3", "w": "3"}) // no guard needs these
	p.contains("status --user u1", "create_post          unreadable\n", "update_post          0/10        10\n")
	p.contains("top --yes", `UNREADABLE  ITEM`, "u1          create_post", "activityCount  guards reset --user u1 create_post repairs it\n", "t              guards erase --user u2 repairs it")
	p.contains("top --yes --json", `{"userId":"u1","item":"create_post","attributes":["activityCount"],"repair":"guards reset --user u1 create_post repairs it"}`)
	for _, command := range []string{"stats", "cleanup --dry-run"} {
		p.contains(command, `UNREADABLE  ITEM`, "activityCount  guards reset --user u1 create_post repairs it\n", "t              guards erase --user u2 repairs it")
		p.contains(command+" --json", `"unreadable":[{`, `{"userId":"u1","item":"create_post","attributes":["activityCount"],"repair":"guards reset --user u1 create_post repairs it"}`)
	}
	for _, tt := range []struct {
		command string
		status  int
		message string // on stderr
	}{
		{"status --user u1", done, "guards: an item of create_post can't be read, so its figures mean nothing: activityCount has the wrong type; guards reset --user u1 create_post repairs it\n"},
		{"status --user u1", done, "guards: an item of old_activity can't be read, so its figures mean nothing: activityCount has the wrong type; it expires by itself\n"},
		{"status --user u1 --json", done, "activityCount has the wrong type"},
		{"check create_post --user u1 --store dynamodb", unreachable, "wrong type"},
		{"check update_post --user u1 --store dynamodb", done, ""},
		{"reset create_post --user u1 --yes", done, ""},
		{"erase --user u1 --yes", done, ""},
		{"status --user u1", done, ""},
		{"check create_post --user u1 --store dynamodb", done, ""},

		{"status --user u2", done, "guards: an item of update_member_role can't be read, so its figures mean nothing: t has the wrong type; guards erase --user u2 repairs it, and deletes all else of u2\n"},
		{"reset update_member_role --user u2 --yes", wrongUse, "update_member_role can't be reset"},
		{"erase --user u2 --yes", done, ""},
		{"status --user u3", done, "it expires by itself\n"}, // of the window before, which a reset does not delete
		{"status --user u5", done, ""},
		{"check create_post --user u5 --store dynamodb", done, ""},
		{"status --user u4", done, "it expires by itself\n"}, // like is unlimited, so a reset deletes nothing
	} {
		status, out, log := p.run(tt.command)
		if status != tt.status || !strings.Contains(log, tt.message) || tt.message == "" && log != "" {
			t.Errorf("guards %s: status %d, %q, want %d, %q", tt.command, status, log, tt.status, tt.message)
		}
		if asJSON := strings.Contains(tt.command, "--json"); strings.Contains(out, `"unreadable": [
        "activityCount"
      ]`) != asJSON {
			t.Errorf("guards %s: %s, want the attribute: %v", tt.command, out, asJSON)
		}
	}
}

// A reset needs no live limits. An erasure removes the user's items, but not the
// user's grants.
func TestUnreadableSettings(t *testing.T) {
	p := ofApp(t)
	p.does("check create_post --user u1 --store dynamodb")
	p.put(map[string]string{"userId": " config", "activityWindow": "limits", "document": "{"})
	for _, tt := range []struct {
		command  string
		status   int
		out, log string // how the streams begin
	}{
		{"reset create_post --user u2 --yes", done, "create_post of u2: 0/10 used, 10 left, in ", "guards: the document of the live limits is damaged."},
		{"erase --user u1 --yes", unreachable, "1 item of u1 found, 1 deleted, in ", "guards: the user's items are deleted, but the user's grants are not: the document of the live limits has a wrong type"},
	} {
		status, out, log := p.run(tt.command)
		if status != tt.status || !strings.HasPrefix(out, tt.out) || !strings.HasPrefix(log, tt.log) {
			t.Errorf("guards %s: status %d, %q, %q, want %d, %q, %q", tt.command, status, out, log, tt.status, tt.out, tt.log)
		}
	}
}

// After a deploy that changed a window, or an edit by hand, guards limits --live
// names each part that does not apply, and shows the others in force.
func TestLimitsNamesWhatCannotBeApplied(t *testing.T) {
	p := ofApp(t)
	p.put(map[string]string{
		"userId": " config", "activityWindow": "limits",
		"document": `{"activities":{"gone":{"mode":"off"},"create_post":{"limit":"5/1h","tiers":{"premium":"log 9/1m"},"mode":"off"}}}`,
	})
	_, out, log := p.run("limits --live")
	for _, want := range []string{`: window of "5/1h" is 1h`, `create_post: tier "premium": `, `: "log 9/1m" counts`, `activity is "gone"`} {
		if !strings.Contains(log, want) {
			t.Errorf("the notes are\n%swant %s", log, want)
		}
	}
	row := regexp.MustCompile(`(?m)^create_post +10/1m +10/1m +off *$`) // an edit by hand has no time and no name
	if !row.MatchString(out) {
		t.Errorf("%s\nwant the mode of create_post in force", out)
	}
	p.contains("limits diff", "create_post           10/1m  5/1h      off\n") // what operators wrote
}

// A reset that fails is never reported as done. If its answer is lost, the reset
// may be done. It is not sent again, because that could delete newer counts.
func TestAResetThatFailsIsReported(t *testing.T) {
	for _, tt := range []struct {
		fault   dynamotest.Fault
		message string
		counted string // in the table afterwards
	}{
		{dynamotest.AccessDenied, "guards: access to the table is denied\n", "create_post          1/10"},
		{dynamotest.Throttle, "guards: the table is throttled\n", "create_post          1/10"},
		{dynamotest.LoseResponse, "guards: the table did not answer in time\n", "create_post          0/10"},
		{dynamotest.Status500After, "guards: the table failed\n", "create_post          0/10"},
	} {
		p := ofApp(t)
		proxy := p.through()
		p.does("check create_post --user u1 --store dynamodb")
		proxy.ResetCounts()
		proxy.Fail(1, tt.fault, "DeleteItem")
		p.fails("reset create_post --user u1 --yes", unreachable, tt.message)
		if n := proxy.Counts()["DeleteItem"]; n != 1 {
			t.Errorf("%s: the reset was sent %d times", tt.fault, n)
		}
		p.contains("status --user u1", tt.counted)
	}
}

// An operator who may not write to the history may still reset.
func TestAResetWithoutAHistory(t *testing.T) {
	p := ofApp(t)
	proxy := p.through()
	p.does("check create_post --user u1 --store dynamodb")
	proxy.Fail(1, dynamotest.AccessDenied, "UpdateItem")
	status, out, log := p.run("reset create_post --user u1 --yes")
	if status != done || !strings.HasPrefix(out, "create_post of u1: 0/10 used") ||
		!strings.HasPrefix(log, "guards: the reset is done, but the history has no entry about it: access to the table is denied") {
		t.Errorf("status %d, %s%s", status, out, log)
	}
	if _, out, _ := p.run("limits history"); strings.Contains(out, "reset") {
		t.Errorf("the history is %s", out)
	}
}
