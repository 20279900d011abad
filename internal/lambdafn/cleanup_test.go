package lambdafn_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

func TestCleanupFunction(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	client := dynamodb.NewFromConfig(dynamotest.Config(dynamotest.Endpoint(t)))
	put := func(user string, expires time.Time) {
		testkit.Must(client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &r.table, Item: map[string]types.AttributeValue{
			"userId":         &types.AttributeValueMemberS{Value: user},
			"activityWindow": &types.AttributeValueMemberS{Value: "create_post#1"},
			"expiresAt":      &types.AttributeValueMemberN{Value: fmt.Sprint(expires.Unix())},
		}}))(t)
	}
	put(canary, time.Now().Add(-time.Minute))
	put("other", time.Now().Add(time.Hour))
	put(limits.SubjectID("room", canary), time.Now().Add(time.Hour))
	i := r.start(t, "cleanup")
	for _, step := range []struct{ event, want string }{
		{`{"dryRun": true}`, `{"scanned":3,"stale":1,"deleted":0,"users":2,"subjects":{"room":1},"finished":true,`},
		{`{}`, `{"scanned":3,"stale":1,"deleted":1,"users":2,"subjects":{"room":1},"finished":true,`},
		{`{"version": "0", "detail-type": "Scheduled Event", "source": "aws.scheduler", "detail": {}}`, `{"scanned":2,"stale":0,"deleted":0,"users":1,"subjects":{"room":1},"finished":true,`},
		{`{"userId": "other", "dryRun": true}`, `{"scanned":1,"stale":1,"deleted":0,"users":1,"finished":true,`},
		{`{"userId": "other"}`, `{"scanned":1,"stale":1,"deleted":1,"users":1,"finished":true,`},
		{`{"subject": {"room": "` + canary + `"}}`, `{"scanned":1,"stale":1,"deleted":1,"users":0,"subjects":{"room":1},"finished":true,`},
	} {
		if got := i.Invoke(t, step.event); !strings.HasPrefix(string(got.Payload), step.want) {
			t.Errorf("%s: %s %+v, want %s", step.event, got.Payload, got, step.want)
		}
	}
	for payload, message := range map[string]string{
		`{"dryrun": true}`:      `event has the unknown field "dryrun", want only dryRun, userId, keepBlocks, subject`,
		`{"userId": " config"}`: "userId has U+0020 as character 1, want 1 to 128 printable ASCII characters without a space",
		`[]`:                    "event is an array, want a JSON object",
	} {
		if got := i.Invoke(t, payload); got.ErrorType != "ValidationError" || got.ErrorMessage != message {
			t.Errorf("%s is answered %+v, want a ValidationError: %s", payload, got, message)
		}
	}
	r.proxy.Fail(math.MaxInt, dynamotest.AccessDenied)
	if got := i.Invoke(t, `{}`); got.ErrorType != "Unavailable" || got.ErrorMessage != "access to the table is denied" {
		t.Errorf("%+v, want Unavailable", got)
	}
	i.Stop() // completes the log
	for message, lines := range map[string]int{`"message":"cleanup done"`: 6, `"level":"ERROR","message":"cleanup failed"`: 1} {
		if n := strings.Count(i.Logs(), message); n != lines {
			t.Errorf("%d lines with %s, want %d:\n%s", n, message, lines, i.Logs())
		}
	}
}
