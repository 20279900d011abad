package deployment_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/liveedit/dynamoedit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/testkit"
)

// cleanupErasesAUser expects that a user's grants go with the user.
func (s *stack) cleanupErasesAUser(t *testing.T) {
	s.put(t, user+"vip", time.Now().Add(time.Hour))
	s.invoke(t, "cleanup", `{"userId": "`+user+`vip"}`)
	if s.has(t, user+"vip") {
		t.Error("the items of an erased user still exist")
	}
	settings, _, err := liveedit.Read(t.Context(), dynamoedit.New(dynamostore.New(s.cfg, table).Table()))
	if err != nil || len(settings.Grants) != 0 || len(settings.Activities) != 1 {
		t.Errorf("live limits after the erasure: %+v, %v, want the limit without the grant", settings, err)
	}
}

// failedCleanupGoesToTheQueue checks that a person can see a failed run. Lambda
// sends the message, with a permission that SAM adds to the role of cleanup.
func (s *stack) failedCleanupGoesToTheQueue(t *testing.T) {
	run(t, nil, "aws", "lambda", "invoke", "--function-name", "cleanup", "--invocation-type", "Event", "--payload", `{"dryrun": 1}`, os.DevNull)
	until(t, 30*time.Second, "a message on CleanupDeadLetterQueue", func() bool {
		out := testkit.Must(sqs.NewFromConfig(s.cfg).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: new(s.ids["CleanupDeadLetterQueue"])}))(t)
		return len(out.Messages) == 1
	})
}

// theScheduleRunsCleanup waits until a scheduled run has deleted an expired item.
func (s *stack) theScheduleRunsCleanup(t *testing.T) {
	until(t, 90*time.Second, "cleanup deletes the expired item", func() bool { return !s.has(t, user+"long-gone") })
}

// put writes an item of a user to the table.
func (s *stack) put(t *testing.T, user string, expires time.Time) {
	t.Helper()
	testkit.Must(dynamodb.NewFromConfig(s.cfg).PutItem(t.Context(), &dynamodb.PutItemInput{TableName: new(table), Item: map[string]types.AttributeValue{
		"userId":         &types.AttributeValueMemberS{Value: user},
		"activityWindow": &types.AttributeValueMemberS{Value: "create_post#1"},
		"expiresAt":      &types.AttributeValueMemberN{Value: fmt.Sprint(expires.Unix())},
	}}))(t)
}

// has reports whether the table has any item of a user.
func (s *stack) has(t *testing.T, user string) bool {
	t.Helper()
	out := testkit.Must(dynamodb.NewFromConfig(s.cfg).Query(t.Context(), &dynamodb.QueryInput{
		TableName: new(table), KeyConditionExpression: new("userId = :u"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":u": &types.AttributeValueMemberS{Value: user}},
	}))(t)
	return len(out.Items) > 0
}
