package table_test

import (
	"crypto/rand"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/dynamotest"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	. "github.com/cric-talk/guards/internal/table"
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
