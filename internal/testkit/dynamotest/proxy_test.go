package dynamotest_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// put writes an item of the given size and expiry.
func put(t *testing.T, client *dynamodb.Client, table, user, expiresAt string, padding int) {
	t.Helper()
	item := key(user)
	item["expiresAt"] = &types.AttributeValueMemberN{Value: expiresAt}
	item["padding"] = &types.AttributeValueMemberS{Value: strings.Repeat("x", padding)}
	if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item}); err != nil {
		t.Fatal(err)
	}
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
	out, err := client.BatchExecuteStatement(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
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

func TestProxyCountsRequestsAndUnits(t *testing.T) {
	t.Parallel()
	c, proxy := newCounter(t), dynamotest.NewProxy(t)
	client := dynamotest.Client(t, proxy.URL())
	check := func(what string, write, read float64, counts map[string]int) {
		t.Helper()
		if diff := cmp.Diff(counts, proxy.Counts()); diff != "" {
			t.Errorf("%s: counts (-want +got):\n%s", what, diff)
		}
		if w, r := proxy.WriteUnits(), proxy.ReadUnits(); w != write || r != read {
			t.Errorf("%s: %v write units and %v read units, want %v and %v", what, w, r, write, read)
		}
		proxy.ResetCounts()
	}
	check("no request", 0, 0, map[string]int{})

	put(t, client, c.table, "small", "5", 10)
	check("a small item", 1, 0, map[string]int{"PutItem": 1})
	put(t, client, c.table, "large", "50", 1500)
	check("an item of more than 1,024 bytes", 2, 0, map[string]int{"PutItem": 1})

	if err := c.add(t.Context(), client, ""); err != nil {
		t.Error(err)
	}
	if err := c.add(t.Context(), client, "activityCount > :one"); err == nil {
		t.Error("the update succeeded although its condition is false")
	}
	check("an update and a failed condition", 2, 0, map[string]int{"UpdateItem": 2})

	proxy.Fail(1, dynamotest.LoseResponse)
	proxy.Fail(1, dynamotest.Throttle)
	for range 2 {
		if err := c.add(t.Context(), client, ""); err == nil {
			t.Error("a request with a fault succeeded")
		}
	}
	check("a write with a lost response and a throttled write", 1, 0, map[string]int{"UpdateItem": 2})

	for _, consistent := range []bool{true, false} {
		if _, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &c.table, Key: key("u1"), ConsistentRead: &consistent}); err != nil {
			t.Error(err)
		}
	}
	check("two reads", 0, 1.5, map[string]int{"GetItem": 2})

	out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &c.table, ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes})
	if err != nil || out.ConsumedCapacity.Table == nil {
		t.Errorf("the client did not get the detail that it asked for: %+v, %v", out, err)
	}
	check("a scan", 0, 0.5, map[string]int{"Scan": 1})

	if got := erase(t, client, c.table, "small", "large", "nobody"); !cmp.Equal(got, []string{"", "ConditionalCheckFailed", ""}) {
		t.Errorf("erase returned %q", got)
	}
	proxy.ResetCounts() // DynamoDB Local reports no units for PartiQL

	if _, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &c.table}); err != nil {
		t.Error(err)
	}
	check("an operation without units", 0, 0, map[string]int{"DescribeTable": 1})
}

func TestEveryOtherStatementIsUnprocessed(t *testing.T) {
	t.Parallel()
	table, proxy := dynamotest.Table(t), dynamotest.NewProxy(t)
	direct := dynamotest.Client(t, dynamotest.Endpoint(t))
	checked := dynamodb.New(dynamotest.Client(t, proxy.URL()).Options(), func(o *dynamodb.Options) {
		o.DisableValidateResponseChecksum = false // the made-up response must fit its checksum
	})
	for i := range 5 {
		put(t, direct, table, fmt.Sprint("u", i), []string{"5", "50"}[i/3], 1) // u3 and u4 have not expired
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

// The hook renews an item before a request that deletes it.
func TestHooksRunOnceBeforeARequest(t *testing.T) {
	t.Parallel()
	table, proxy := dynamotest.Table(t), dynamotest.NewProxy(t)
	client, direct := dynamotest.Client(t, proxy.URL()), dynamotest.Client(t, dynamotest.Endpoint(t))
	put(t, direct, table, "u1", "5", 1)
	proxy.Before("BatchExecuteStatement", func() { put(t, direct, table, "u1", "50", 1) })
	if got := erase(t, client, table, "u1"); got[0] != "ConditionalCheckFailed" {
		t.Errorf("got %q, want the renewed item kept", got)
	}
	put(t, direct, table, "u1", "5", 1)
	if got := erase(t, client, table, "u1"); got[0] != "" { // the hook must not run again
		t.Errorf("got %q, want the item deleted", got)
	}
}

func TestProxyServesManyCallersAtOnce(t *testing.T) {
	t.Parallel()
	c, proxy := newCounter(t), dynamotest.NewProxy(t)
	client := dynamotest.Client(t, proxy.URL())
	const callers, each, lost = 50, 10, 20
	var hooked atomic.Bool
	proxy.Before("UpdateItem", func() { hooked.Store(true) })
	proxy.Do(func(string) dynamotest.Fault { return dynamotest.Pass })
	proxy.Fail(lost, dynamotest.LoseResponse)
	var failed atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				if c.add(t.Context(), client, "") != nil {
					failed.Add(1)
				}
				if !hooked.Load() {
					t.Error("a caller got a response before the hook was done")
				}
				proxy.WriteUnits()
			}
		})
	}
	wg.Wait()
	if failed.Load() != lost || proxy.Counts()["UpdateItem"] != callers*each || proxy.WriteUnits() != callers*each || c.value(t) != fmt.Sprint(callers*each) {
		t.Errorf("%d failed, %v, %v units, count %s", failed.Load(), proxy.Counts(), proxy.WriteUnits(), c.value(t))
	}
}
