package dynamotest_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

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

// add adds one through client.
func (c counter) add(ctx context.Context, client *dynamodb.Client) error {
	_, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 &c.table,
		Key:                       key("u1"),
		UpdateExpression:          aws.String("ADD activityCount :one"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
		ReturnValues:              types.ReturnValueAllNew,
	})
	return err
}

// value returns the count, read directly from the table. It is "" if there is no
// item.
func (c counter) value(t *testing.T) string {
	t.Helper()
	got := testkit.Must(c.direct.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &c.table, Key: key("u1"), ConsistentRead: aws.Bool(true)}))(t)
	if n, ok := got.Item["activityCount"].(*types.AttributeValueMemberN); ok {
		return n.Value
	}
	return ""
}
