package command

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/liveedit/dynamoedit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/testkit"
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
	p.ends("reset create_post --user u2 --yes", done, "create_post of u2: 0/10 used, 10 left, in ", "guards: the document of the live limits is damaged.")
	p.ends("erase --user u1 --yes", unreachable, "1 item of u1 found, 1 deleted, in ",
		"guards: the user's items are deleted, but the user's grants are not: the document of the live limits has a wrong type")
}

// An erasure whose finished is false has to run again. It says that the grant is still there, and
// counts only the deleted item.
func TestAnErasureThatKeepsAGrant(t *testing.T) {
	for command, want := range map[string]string{
		"erase --user u1 --yes":        "1 item and 1 grant of u1 found, 1 deleted, in ",
		"erase --user u1 --yes --json": `{"scanned":1,"stale":1,"deleted":1,"users":1,"finished":false,`,
	} {
		p := ofApp(t)
		p.does("check create_post --user u1 --store dynamodb", "grant --user u1 --tier premium --until 7d --reason r")
		p.through().Fail(1, dynamotest.AccessDenied, "TransactWriteItems")
		p.ends(command, unreachable, want, "guards: the user's items are deleted, but the user's grants are not: ")
		p.contains("erase --user u1 --yes", "0 items and 1 grant of u1 found, 1 deleted, in ")
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
	testkit.Contains(t, "what the command notes", log, `: window of "5/1h" is 1h`, `create_post: tier "premium": `, `: "log 9/1m" counts`, `activity is "gone"`)
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
	p.through().Fail(1, dynamotest.AccessDenied, "UpdateItem")
	p.ends("reset create_post --user u1 --yes", done, "create_post of u1: 0/10 used",
		"guards: the reset is done, but the history has no entry about it: access to the table is denied")
	p.lacks("limits history", "reset")
}

const (
	rightLimits = `{"activities":{"create_post":{"limit":"20/1m"},"add_comment":{"mode":"off"}},"grants":[` + rightGrants + `]}`
	rightGrants = `{"userId":"u1","tier":"premium","until":"2030-01-01T00:00:00Z","reason":"trial"},{"userId":"u2","role":"admin","until":"2030-01-01T00:00:00Z","reason":"ops"}`
	rightBlock  = `{"userId":"u8","until":"2030-01-01T00:00:00Z","reason":"spam"}`
)

// byHand writes an item of the settings, as somebody does in the AWS console.
func (p *project) byHand(name string, item dynamoedit.Item) {
	p.t.Helper()
	whole := map[string]types.AttributeValue{"userId": dynamostore.Text(" config"), "activityWindow": dynamostore.Text(name)}
	maps.Copy(whole, item)
	p.putItem(whole)
}

// withText returns an item of the settings with this document.
func withText(document string) dynamoedit.Item {
	return dynamoedit.Item{"version": dynamostore.Number(3), "document": dynamostore.Text(document)}
}

// edited returns the item of the live limits after somebody has replaced a text in it.
func edited(before, after string) dynamoedit.Item {
	return withText(strings.Replace(rightLimits, before, after, 1))
}

// beside returns the item of the live limits with another value of one attribute.
func beside(name string, value types.AttributeValue) dynamoedit.Item {
	item := withText(rightLimits)
	item[name] = value
	return item
}

// What a person can do to the documents by hand, and what a repair keeps of them. Package live has
// more damaged documents.
func TestARepairKeepsWhatIsRight(t *testing.T) {
	text, number := dynamostore.Text, dynamostore.Number
	const version, all = "the attribute version is not a number", "add_comment create_post u1 u2"
	for _, tt := range []struct {
		what, item string
		was        dynamoedit.Item
		keeps      string // activities and users
		dropped    int
		problem    string // how it begins
	}{
		{"a wrong type in an override", "limits", edited(`"20/1m"`, `20`), "add_comment u1 u2", 1, "create_post: /limit is a number, which does not fit"},
		{"an unknown member of a grant", "limits", edited(`"tier"`, `"tear"`), "add_comment create_post u2", 1, "grant 1: /tear is unknown"},
		{"an end that is no time", "limits", beside("ends", text(`{"create_post":{"limits":{"":{"of":"20/1m","until":7}}}}`)), all, 1, "end of create_post: /limits//until is a number, which"},
		{"ends that are a number", "limits", beside("ends", number(7)), all, 1, "ends: "},
		{"trials that are cut off", "limits", beside("trials", text(`{"create_post":`)), all, 1, "trials: unexpected EOF"},
		{"a document that is cut off", "limits", withText(rightLimits[:len(rightLimits)-9]), "add_comment create_post u1", 1, "the document: unexpected EOF"},
		{"a comma too many", "limits", edited(`"u1",`, `"u1",,`), "add_comment create_post", 1, "the document: "},
		{"an unknown member", "limits", edited(`"grants"`, `"grant"`), "add_comment create_post", 1, `the document: the document has the unknown member "grant"`},
		{"a name twice", "limits", edited(`"add_comment"`, `"create_post"`), "create_post u1 u2", 1, "the document: duplicate object member name"},
		{"no JSON", "limits", withText("create_post = 20/1m"), "", 1, "the document: "},
		{"a document that is a map", "limits", beside("document", &types.AttributeValueMemberM{}), "", 1, "the document: "},
		{"a version that is a text", "limits", beside("version", text("three")), all, 0, version},
		{"a version of 0", "limits", beside("version", number(0)), all, 0, version},
		{"an empty item", "limits", dynamoedit.Item{}, "", 1, version},
		{"an end of a block that is no time", "blocks", withText(`{"blocks":[` + rightBlock + `,{"userId":"u9","until":7}]}`), "u8", 1, "block 2: /until is a number, which does not fit"},
		{"a user twice in a block", "blocks", withText(`{"blocks":[` + rightBlock + `,{"userId":"u9","userId":"u9"}]}`), "u8", 1, "block 2: duplicate object member name"},
		{"blocks that are cut off", "blocks", withText(`{"blocks":[` + rightBlock + `,{"userId":"u9","un`), "u8", 1, "the document: unexpected EOF"},
		{"blocks that are no list", "blocks", withText(`{"blocks":{}}`), "", 1, "the document: "},
	} {
		r := testkit.Must(inspect(tt.item, tt.was))(t)
		keeps := regexp.MustCompile(`create_post|add_comment|\bu\d`).FindAllString(string(r.after.Document), -1)
		slices.Sort(keeps)
		if got := strings.Join(keeps, " "); got != tt.keeps || r.Kept != len(keeps) || r.Dropped != tt.dropped || !strings.HasPrefix(r.Problems[0], tt.problem) {
			t.Errorf("%s: %d kept, %q, %d dropped, %q, want %q, %d and %q", tt.what, r.Kept, got, r.Dropped, r.Problems, tt.keeps, tt.dropped, tt.problem)
		}
	}
}

// Each command that reads goes on, and tells what it can't read. The repair keeps the old items in
// files that nobody else can read.
func TestADamagedDocumentIsRepaired(t *testing.T) {
	t.Chdir(t.TempDir())
	p := ofApp(t)
	damaged := edited(`"20/1m"`, `20`)
	damaged["ends"] = dynamostore.Number(7)
	p.byHand("limits", damaged)
	p.byHand("blocks", withText(`{"blocks":[`+rightBlock+`,{"userId":"u9","un`))
	tells := func(command string, want bool) {
		status, out, log := p.run(command)
		if got := strings.Contains(log, "can't be read") || strings.Contains(log, "is damaged"); status != done || got != want {
			t.Errorf("guards %s: status %d, %s%s, want something about the damage: %v", command, status, out, log, want)
		}
	}
	for _, command := range []string{"status --user u1", "top --yes", "check create_post --user u5 --store dynamodb", "limits diff", "limits --live", "block --list"} {
		tells(command, true)
	}
	tells("stats", false)
	tells("limits history", false)
	p.contains("limits repair --dry-run", "limits: create_post: /limit is a number", "limits: ends: ", "blocks: the document: unexpected EOF", "nothing was changed")
	if files, _ := filepath.Glob("guards-*"); len(files) > 0 {
		t.Errorf("a dry run writes %v", files)
	}
	_, out, log := p.run("limits repair --by op --why test")
	testkit.Contains(t, "limits repair", out, "limits: 3 kept, 2 dropped", "blocks: 1 kept, 1 dropped")
	files, _ := filepath.Glob("guards-*.json")
	if len(files) != 2 {
		t.Errorf("files %v, want one of each item", files)
	}
	for _, file := range files {
		if info := testkit.Must(os.Stat(file))(t); info.Mode().Perm() != 0o600 || !strings.Contains(log, file) {
			t.Errorf("%s has %v, and the command says %s", file, info.Mode(), log)
		}
	}
	tells("limits diff", false)
	p.contains("limits diff", "add_comment", "u1 ", "u2 ", "u8 ")
	p.contains("limits history", "repair: ")
	p.lacks("limits history", "u1", "u9")
	p.contains("limits repair", "nothing to repair in the table")
	p.does("limits set create_post 30/1m --by op", "block --user u7 --until 1h --reason spam --by op")
	p.byHand("blocks", withText(`{"blocks":[`+rightBlock+`,{"userId":"u9","until":7}]}`)) // one entry alone
	tells("block --list", true)
}

// An entry that can't be read stays as it is when another one is changed, until it is set
// itself or repaired.
func TestADamagedEntryOutlivesAnEdit(t *testing.T) {
	p := ofApp(t)
	p.byHand("limits", edited(`"20/1m"`, `20`))
	p.does("limits set pin \"log 50/12h\" --by op", "revoke --user u2 --by op")
	p.contains("limits repair --dry-run", "limits: create_post: /limit is a number, which does not fit")
	if status, out, log := p.run("limits import " + os.DevNull); status == 0 {
		t.Errorf("an empty file is imported: %s%s", out, log)
	}
	right := filepath.Join(t.TempDir(), "right.json")
	testkit.OK(t, os.WriteFile(right, []byte(`{"activities":{"create_post":{"limit":"30/1m"}}}`), 0o600))
	p.fails("limits import "+right, wrongUse, "1 entry of the table can't be read and would be lost: run guards limits repair first")
	p.contains("limits repair --dry-run", "limits: create_post: /limit is a number, which does not fit")
	if _, _, log := p.run("limits set create_post 30/1m --by op"); !strings.Contains(log, "the entry of create_post could not be read: all of it is replaced") {
		t.Errorf("the command says %q", log)
	}
	p.contains("limits repair --dry-run", "nothing to repair in the table")
}

// A damaged entry can't be attributed, so an erasure leaves it, and warns if it has the id.
func TestAnErasureTellsOfADamagedEntry(t *testing.T) {
	p := ofApp(t)
	p.byHand("limits", edited(`"tier"`, `"tear"`))
	for user, says := range map[string]bool{"u1": true, "u2": false} {
		if _, _, log := p.run("erase --yes --user " + user); strings.Contains(log, "1 entry that can't be read has the id") != says {
			t.Errorf("erase of %s says %q", user, log)
		}
	}
}

// All live limits and grants move from one table to another.
func TestLimitsAreMoved(t *testing.T) {
	t.Chdir(t.TempDir())
	from, to := ofApp(t), ofApp(t)
	from.does("limits set create_post 20/1m --by ann --why launch", "limits set add_comment --mode shadow --by ann", "grant --user u1 --tier premium --until 2030-01-01 --reason trial --by ann")
	from.does("limits set pin --mode off --until 2h --by ann --yes", "limits set ingest \"sliding 80/1h\" --until 1h --by ann")
	from.now, to.now = from.now.Add(90*time.Minute), to.now.Add(90*time.Minute)
	_, exported, _ := from.run("limits export")
	testkit.OK(t, os.WriteFile("moved.json", []byte(exported), 0o600))
	to.does("limits set pin \"log 50/12h\" --by bob")
	to.contains("limits import moved.json --by bob", "3 changes and 1 grant instead of 1 change and 0 grants\n")
	_, want, _ := from.run("limits --live")
	if _, got, _ := to.run("limits --live"); got != want {
		t.Errorf("after the move:\n%s\nwant\n%s", got, want)
	}
	if !strings.Contains(want, "off until 2023-11-15T00:14:18Z") || strings.Contains(want, "80/1h") {
		t.Errorf("in force:\n%s\nwant a mode that ends, and no limit that has ended", want)
	}
	for content, message := range map[string]string{
		`{"activities": {}, "ends": {"pin": 5}}`: "ends: /pin is a number", `{`: "guards limits repair", `{"activities": {"create_post": {"limit": "20/1h"}}}`: "window", `{"activities": {"pst": {"limit": "20/1h"}}}`: "pst",
		`{"activities": {"create_post": {"limit": 5}}}`: "create_post: /limit is a number", `{"grants": [{"userId": "u1"}]}`: "a grant needs",
	} {
		testkit.OK(t, os.WriteFile("wrong.json", []byte(content), 0o600))
		if status, out, log := to.run("limits import wrong.json"); status != wrongUse || !strings.Contains(log, message) {
			t.Errorf("%s: status %d, %s%s, want %s", content, status, out, log, message)
		}
	}
	if _, got, _ := to.run("limits --live"); got != want {
		t.Errorf("after wrong files:\n%s\nwant\n%s", got, want)
	}
}
