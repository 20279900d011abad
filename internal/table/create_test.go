package table_test

import (
	"crypto/rand"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	. "github.com/cric-talk/guards/internal/table"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

func TestCreate(t *testing.T) {
	endpoint, table := dynamotest.Endpoint(t), "guards-test-"+rand.Text()
	store, client := dynamostore.New(dynamotest.Config(endpoint), table), dynamotest.Client(t, endpoint)
	for range 2 { // the second call finds the table and leaves its items as they are
		if err := New(store.Table()).Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, done, err := store.Update(t.Context(), ratelimit.Write{
			Key: ratelimit.Key{UserID: "u1", Activity: "act", Window: 1}, ID: ratelimit.NewID(rand.Text()), Expires: 1 << 40,
		}); err != nil || !done {
			t.Fatal(done, err)
		}
	}
	ttl, err := client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &table})
	if err != nil || ttl.TimeToLiveDescription.TimeToLiveStatus != types.TimeToLiveStatusEnabled || *ttl.TimeToLiveDescription.AttributeName != "expiresAt" {
		t.Errorf("TTL: %+v, %v, want it on expiresAt", ttl, err)
	}
	if _, err := client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &table}); err != nil {
		t.Error(err)
	}
}

// An earlier run can have stopped after it created the table.
func TestCreateTurnsTTLOnInATableThatExists(t *testing.T) {
	endpoint := dynamotest.Endpoint(t)
	table, client := dynamotest.Table(t), dynamotest.Client(t, endpoint)
	store := dynamostore.New(dynamotest.Config(endpoint), table)
	for range 2 {
		if err := New(store.Table()).Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		ttl, err := client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &table})
		if err != nil || ttl.TimeToLiveDescription.TimeToLiveStatus != types.TimeToLiveStatusEnabled {
			t.Errorf("TTL: %+v, %v, want it on", ttl, err)
		}
	}
}

// DynamoDB creates a table within seconds, and refuses requests until then.
// DynamoDB Local creates it at once.
func TestCreateWaitsForTheTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var early []string // requests to a table that is not ready
		on := false
		ready := time.Now().Add(10 * time.Second)
		table := over(func(op string, _ map[string]any) string {
			waiting := time.Now().Before(ready)
			switch {
			case op == "DescribeTable" && waiting:
				return `{"Table": {"TableStatus": "CREATING"}}`
			case op == "DescribeTable":
				return `{"Table": {"TableStatus": "ACTIVE"}}`
			case op != "CreateTable" && waiting:
				early = append(early, op)
			}
			on = on || op == "UpdateTimeToLive"
			return `{}`
		})
		if err := table.Create(t.Context()); err != nil || !on || len(early) > 0 || time.Now().Before(ready) {
			t.Errorf("error %v, TTL turned on: %v, sent too early: %v", err, on, early)
		}
	})
}
