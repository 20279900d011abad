package table_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	. "github.com/cric-talk/guards/internal/table"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

func TestItems(t *testing.T) {
	client, name := dynamotest.Client(t, dynamotest.Endpoint(t)), dynamotest.Table(t)
	const users = 30
	for i := range users + 1 {
		user := fmt.Sprint("u", i)
		if i == users {
			user = " config" // the project's own
		}
		if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: map[string]types.AttributeValue{
			"userId": dynamostore.Text(user), "activityWindow": dynamostore.Text("create_post#7"), "activityCount": dynamostore.Number(int64(i)),
		}}); err != nil {
			t.Fatal(err)
		}
	}
	table := New(client, name)
	estimate, err := table.Estimate(t.Context())
	if err != nil || estimate.Items != users+1 || estimate.Units < 0.5 {
		t.Errorf("the estimate is %+v, %v", estimate, err)
	}
	found := map[string]int64{}
	cost, err := table.Items(t.Context(), func(k ratelimit.Key, item ratelimit.Item) {
		if k.Activity != "create_post" || k.Window != 7 {
			t.Errorf("an item has the key %+v", k)
		}
		found[k.UserID] = item.State["activityCount"]
	})
	if err != nil || len(found) != users || found["u29"] != 29 || cost.Items != users+1 || cost.Units < 0.5 {
		t.Errorf("found %v, read %+v, %v", found, cost, err)
	}
}

func TestItemsReportsFailures(t *testing.T) {
	table := New(dynamotest.Client(t, dynamotest.Endpoint(t)), "no-such-table")
	if _, err := table.Items(t.Context(), nil); err == nil {
		t.Error("a scan of a missing table succeeds")
	}
	if _, err := table.Estimate(t.Context()); err == nil {
		t.Error("a missing table has an estimate")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := table.Items(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a scan that was stopped returns %v", err)
	}
}
