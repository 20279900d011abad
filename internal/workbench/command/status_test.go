package command

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/limits"
)

func TestStandings(t *testing.T) {
	const now = 1_700_000_058_000 // 18 s into window 28333334
	items := map[ratelimit.Key]ratelimit.Item{
		{UserID: "u1", Activity: "create_post", Window: 28_333_334}: {State: policy.State{"activityCount": 10}},
		{UserID: "u1", Activity: "update_post", Window: 28_333_333}: {State: policy.State{"activityCount": 10}}, // this window has passed
		{UserID: "u1", Activity: "delete_post", Window: 28_333_334}: {Unread: []string{"activityCount"}},
	}
	got := map[string]standing{}
	for _, s := range standings(limits.All, "u1", "", items, nil, time.UnixMilli(now)) {
		got[s.Activity] = s
	}
	if _, ok := got["like"]; ok {
		t.Error("like has no limit, but is listed")
	}
	for activity, want := range map[string]standing{
		"create_post": {"posts-guard", "create_post", "", false, figures{"", 10, 10, 0, 42_000, 1_700_000_100_000}, nil, nil, nil, nil},
		"update_post": {"posts-guard", "update_post", "", false, figures{"", 10, 0, 10, 0, 1_700_000_100_000}, nil, nil, nil, nil},
		"delete_post": {"posts-guard", "delete_post", "", false, figures{"", 10, 0, 10, 0, 1_700_000_100_000}, nil, nil, nil, []string{"activityCount"}},
	} {
		if diff := cmp.Diff(want, got[activity], cmp.AllowUnexported(standing{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", activity, diff)
		}
	}
}

// An attribute of the wrong type makes an item unreadable. status names the
// attribute, check cannot decide, and reset repairs the item.
func TestUnreadableItems(t *testing.T) {
	credentials(t)
	endpoint, table := dynamotest.Endpoint(t), dynamotest.Table(t)
	for _, activity := range []string{"create_post", "old_activity"} { // the code does not have the second one
		put(t, endpoint, table, map[string]string{
			"userId": "u1", "activityWindow": activity + "#28333334", "activity": activity, "activityCount": "3",
		})
	}
	put(t, endpoint, table, map[string]string{"userId": "u2", "activityWindow": "update_member_role", "w": "3"})
	put(t, endpoint, table, map[string]string{"userId": "u3", "activityWindow": "create_post#28333333", "activity": "create_post", "activityCount": "3"})
	put(t, endpoint, table, map[string]string{"userId": "u4", "activityWindow": "like#28333334", "activity": "like", "activityCount": "3"})
	for _, tt := range []struct {
		command string
		status  int
		message string // on stderr
	}{
		{"status --user u1", done, "guards: an item of create_post can't be read, so its figures mean nothing: activityCount has the wrong type; guards reset --user u1 create_post repairs it\n"},
		{"status --user u1", done, "guards: an item of old_activity can't be read, so its figures mean nothing: activityCount has the wrong type; guards erase --user u1 repairs it\n"},
		{"status --user u1 --json", done, "activityCount has the wrong type"},
		{"check create_post --user u1 --store dynamodb", unreachable, "wrong type"},
		{"check update_post --user u1 --store dynamodb", done, ""},
		{"reset create_post --user u1 --yes", done, ""},
		{"status --user u1", done, "old_activity"},
		{"erase --user u1 --yes", done, ""},
		{"status --user u1", done, ""},
		{"check create_post --user u1 --store dynamodb", done, ""},

		{"status --user u2", done, "guards: an item of update_member_role can't be read, so its figures mean nothing: w has the wrong type; guards erase --user u2 repairs it\n"},
		{"reset update_member_role --user u2 --yes", wrongUse, "update_member_role can't be reset"},
		{"erase --user u2 --yes", done, ""},
		{"status --user u2", done, ""},
		{"status --user u3", done, "guards erase --user u3 repairs it\n"}, // of the window before, which a reset does not delete
		{"status --user u4", done, "guards erase --user u4 repairs it\n"}, // like is unlimited, so a reset deletes nothing
	} {
		var out, log stream
		args := append(strings.Fields(tt.command), "--region", "us-east-1", "--endpoint", endpoint, "--table", table)
		status := run(t.Context(), args, session{guards: limits.All, out: &out, err: &log, now: atPinned})
		if status != tt.status || !strings.Contains(log.String(), tt.message) || tt.message == "" && log.String() != "" {
			t.Errorf("guards %s: status %d, %q, want %d, %q", tt.command, status, &log, tt.status, tt.message)
		}
		if asJSON := strings.Contains(tt.command, "--json"); strings.Contains(out.String(), `"unreadable": [
        "activityCount"
      ]`) != asJSON {
			t.Errorf("guards %s: %s, want the attribute: %v", tt.command, &out, asJSON)
		}
	}
}

// A reset needs no live limits. An erasure removes the user's items, but not the
// user's grants.
func TestUnreadableSettings(t *testing.T) {
	credentials(t)
	endpoint, table := dynamotest.Endpoint(t), dynamotest.Table(t)
	where := []string{"--region", "us-east-1", "--endpoint", endpoint, "--table", table}
	check := strings.Fields("check create_post --user u1 --store dynamodb")
	if status := run(t.Context(), append(check, where...), session{guards: limits.All, out: io.Discard, err: io.Discard, now: atPinned}); status != done {
		t.Fatalf("guards %v: status %d", check, status)
	}
	put(t, endpoint, table, map[string]string{"userId": " config", "activityWindow": "limits", "document": "{"})
	for _, tt := range []struct {
		command  string
		status   int
		out, log string // how the streams begin
	}{
		{"reset create_post --user u2 --yes", done, "create_post of u2: 0/10 used, 10 left, in ", "guards: the figures are those of the code's limit, because the live limits can't be read: "},
		{"erase --user u1 --yes", unreachable, "1 item of u1 found, 1 deleted, in ", "guards: the user's items are deleted, but the user's grants are not: the document of the live limits has a wrong type"},
	} {
		var out, log stream
		status := run(t.Context(), append(strings.Fields(tt.command), where...), session{guards: limits.All, out: &out, err: &log, now: atPinned})
		if status != tt.status || !strings.HasPrefix(out.String(), tt.out) || !strings.HasPrefix(log.String(), tt.log) {
			t.Errorf("guards %s: status %d, %q, %q, want %d, %q, %q", tt.command, status, &out, &log, tt.status, tt.out, tt.log)
		}
	}
}

// put writes an item. An attribute whose value is a text is a string in the
// table, and version is a number.
func put(t *testing.T, endpoint, table string, attributes map[string]string) {
	t.Helper()
	item := map[string]types.AttributeValue{"version": &types.AttributeValueMemberN{Value: "1"}}
	for name, value := range attributes {
		item[name] = &types.AttributeValueMemberS{Value: value}
	}
	_, err := dynamotest.Client(t, endpoint).PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item})
	if err != nil {
		t.Fatal(err)
	}
}
