package dynamotest_test

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// put writes an item with this expiry.
func put(t *testing.T, client *dynamodb.Client, table, user, expiresAt string) {
	t.Helper()
	item := key(user)
	item["expiresAt"] = &types.AttributeValueMemberN{Value: expiresAt}
	testkit.Must(client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item}))(t)
}

// erase deletes the items of users that expired before second 10. It returns an
// error code for each user, or "".
func erase(t *testing.T, client *dynamodb.Client, table string, users ...string) []string {
	t.Helper()
	in := &dynamodb.BatchExecuteStatementInput{}
	for _, user := range users {
		in.Statements = append(in.Statements, types.BatchStatementRequest{
			Statement: aws.String(`DELETE FROM "` + table + `" WHERE userId = ? AND activityWindow = ? AND expiresAt < ?`),
			Parameters: []types.AttributeValue{
				&types.AttributeValueMemberS{Value: user},
				&types.AttributeValueMemberS{Value: "send_message"},
				&types.AttributeValueMemberN{Value: "10"},
			},
		})
	}
	out := testkit.Must(client.BatchExecuteStatement(t.Context(), in))(t)
	var codes []string
	for _, r := range out.Responses {
		code := ""
		if r.Error != nil {
			code = string(r.Error.Code)
		}
		codes = append(codes, code)
	}
	return codes
}

func TestEveryOtherStatementIsUnprocessed(t *testing.T) {
	t.Parallel()
	table, proxy := dynamotest.Table(t), dynamotest.NewProxy(t)
	direct := dynamotest.Client(t, dynamotest.Endpoint(t))
	checked := dynamodb.New(dynamotest.Client(t, proxy.URL()).Options(), func(o *dynamodb.Options) {
		o.DisableValidateResponseChecksum = false // the made-up response must fit its checksum
	})
	for i := range 5 {
		put(t, direct, table, fmt.Sprint("u", i), []string{"5", "50"}[i/3]) // u3 and u4 have not expired
	}
	const throttled, kept = "ThrottlingError", "ConditionalCheckFailed"
	for _, step := range []struct {
		fault dynamotest.Fault
		users []string
		want  []string
	}{
		{dynamotest.UnprocessedStatements, []string{"u0"}, []string{throttled}},
		{dynamotest.UnprocessedStatements, []string{"u0", "u1", "u2", "u3", "u4"}, []string{throttled, "", throttled, kept, throttled}},
		{dynamotest.Pass, []string{"u0", "u2", "u4"}, []string{"", "", kept}},
	} {
		proxy.Fail(1, step.fault)
		if got := erase(t, checked, table, step.users...); !cmp.Equal(got, step.want) {
			t.Errorf("fault %q, users %q: got %q, want %q", step.fault, step.users, got, step.want)
		}
	}
	left, err := direct.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table})
	if err != nil || left.Count != 2 {
		t.Errorf("%d items left, %v, want 2", left.Count, err)
	}
}
