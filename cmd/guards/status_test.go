package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/dynamotest"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

func TestStandings(t *testing.T) {
	const now = 1_700_000_058_000 // 18 s into window 28333334
	items := map[ratelimit.Key]ratelimit.Item{
		{UserID: "u1", Activity: "create_post", Window: 28_333_334}: {State: policy.State{"activityCount": 10}},
		{UserID: "u1", Activity: "update_post", Window: 28_333_333}: {State: policy.State{"activityCount": 10}}, // this window has passed
	}
	got := map[string]standing{}
	for _, s := range standings("u1", "", items, nil, time.UnixMilli(now)) {
		got[s.Activity] = s
	}
	if _, ok := got["like"]; ok {
		t.Error("like has no limit, but is listed")
	}
	for activity, want := range map[string]standing{
		"create_post": {"posts-guard", "create_post", 10, 10, 0, 42_000, 1_700_000_100_000, nil},
		"update_post": {"posts-guard", "update_post", 10, 0, 10, 0, 1_700_000_100_000, nil},
	} {
		if diff := cmp.Diff(want, got[activity]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", activity, diff)
		}
	}
}

// An attribute of the wrong type makes an item unreadable. status names the
// attribute, check cannot decide, and reset repairs the item.
func TestUnreadableItems(t *testing.T) {
	credentials(t)
	endpoint, table := dynamotest.Endpoint(t), dynamotest.Table(t)
	_, err := dynamotest.Client(t, endpoint).PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{
		"userId":         &types.AttributeValueMemberS{Value: "u1"},
		"activityWindow": &types.AttributeValueMemberS{Value: "create_post#28333334"},
		"activity":       &types.AttributeValueMemberS{Value: "create_post"},
		"activityCount":  &types.AttributeValueMemberS{Value: "3"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		command string
		status  int
		message string // on stderr
	}{
		{"status --user u1", done, "guards: an item of create_post can't be read: activityCount has the wrong type; guards reset repairs it\n"},
		{"check create_post --user u1 --store dynamodb", unreachable, "wrong type"},
		{"check update_post --user u1 --store dynamodb", done, ""},
		{"reset create_post --user u1 --yes", done, ""},
		{"status --user u1", done, ""},
		{"check create_post --user u1 --store dynamodb", done, ""},
	} {
		var log stream
		args := append(strings.Fields(tt.command), "--region", "us-east-1", "--endpoint", endpoint, "--table", table)
		status := run(t.Context(), args, console{out: io.Discard, err: &log, now: atPinned})
		if status != tt.status || !strings.Contains(log.String(), tt.message) || tt.message == "" && log.String() != "" {
			t.Errorf("guards %s: status %d, %q, want %d, %q", tt.command, status, &log, tt.status, tt.message)
		}
	}
}
