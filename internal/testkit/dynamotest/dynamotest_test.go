package dynamotest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

func TestEndpointSkipsTheTestOrFailsItInCI(t *testing.T) {
	for _, test := range []struct {
		name, endpoint, ci            string
		want, wantSkipped, wantFailed string
	}{
		{"set", "http://127.0.0.1:1", "true", "http://127.0.0.1:1", "", ""},
		{"not set", "", "", "", "make test", ""},
		{"not set in CI", "", "true", "", "", "make test"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("DYNAMODB_ENDPOINT", test.endpoint)
			t.Setenv("CI", test.ci)
			var got string
			skipped, failed := testkit.Ended(func(t testing.TB) { got = dynamotest.Endpoint(t) })
			if got != test.want || !matches(skipped, test.wantSkipped) || !matches(failed, test.wantFailed) {
				t.Errorf("got %q, skipped %q, failed %q", got, skipped, failed)
			}
		})
	}
}

// matches reports whether text contains want. An empty want matches only an
// empty text.
func matches(text, want string) bool {
	return strings.Contains(text, want) && (text == "") == (want == "")
}

func TestEachTableHasTheProjectsKeysAndIsDeleted(t *testing.T) {
	t.Parallel()
	client := dynamotest.Client(t, dynamotest.Endpoint(t))
	var first, second string
	t.Run("has the project's keys and no TTL", func(t *testing.T) {
		first, second = dynamotest.Table(t), dynamotest.Table(t)
		if first == second {
			t.Errorf("two tables have the name %s", first)
		}
		got, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &first})
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, k := range got.Table.KeySchema {
			keys = append(keys, *k.AttributeName+" "+string(k.KeyType))
		}
		if !slices.Equal(keys, []string{"userId HASH", "activityWindow RANGE"}) || got.Table.BillingModeSummary.BillingMode != types.BillingModePayPerRequest {
			t.Errorf("the table has the keys %q and %+v", keys, got.Table.BillingModeSummary)
		}
		ttl, err := client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &first})
		if err != nil || ttl.TimeToLiveDescription.TimeToLiveStatus != types.TimeToLiveStatusDisabled {
			t.Errorf("TTL is %+v, %v, want it off", ttl, err)
		}
	})
	for _, name := range []string{first, second} {
		var gone *types.ResourceNotFoundException
		if _, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &name}); !errors.As(err, &gone) {
			t.Errorf("the table still exists after its test: %v", err)
		}
	}
}

// counter is an item that counts updates.
type counter struct {
	table  string
	direct *dynamodb.Client
}

func newCounter(t *testing.T) counter {
	t.Helper()
	return counter{dynamotest.Table(t), dynamotest.Client(t, dynamotest.Endpoint(t))}
}

func key(user string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"userId":         &types.AttributeValueMemberS{Value: user},
		"activityWindow": &types.AttributeValueMemberS{Value: "send_message"},
	}
}

// add adds one through client, on a condition that may be empty.
func (c counter) add(ctx context.Context, client *dynamodb.Client, condition string) error {
	in := &dynamodb.UpdateItemInput{
		TableName:                 &c.table,
		Key:                       key("u1"),
		UpdateExpression:          aws.String("ADD activityCount :one"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
		ReturnValues:              types.ReturnValueAllNew,
	}
	if condition != "" {
		in.ConditionExpression = &condition
	}
	_, err := client.UpdateItem(ctx, in)
	return err
}

// value returns the count, read directly from the table. It is "" if there is no
// item.
func (c counter) value(t *testing.T) string {
	t.Helper()
	got, err := c.direct.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &c.table, Key: key("u1"), ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	if n, ok := got.Item["activityCount"].(*types.AttributeValueMemberN); ok {
		return n.Value
	}
	return ""
}
