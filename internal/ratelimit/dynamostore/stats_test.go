package dynamostore_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	. "github.com/cric-talk/guards/internal/ratelimit/dynamostore"
)

func TestStats(t *testing.T) {
	y := newYard(t)
	y.fill(t, "gone", 30, 2, now-1)
	y.fill(t, "here", 20, 3, now)
	for _, key := range [][2]string{{"here0", "other#1"}, {"here0", "other#2"}, {" config", "limits"}} {
		_, err := y.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &y.table, Item: map[string]types.AttributeValue{
			"userId":         &types.AttributeValueMemberS{Value: key[0]},
			"activityWindow": &types.AttributeValueMemberS{Value: key[1]},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	told := 0
	got, err := y.Stats(t.Context(), now, func(Stats) { told++ })
	want := Stats{Users: 50, Items: 122, Stale: 60, Activities: map[string]int64{"act": 50, "other": 1}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" || told == 0 {
		t.Errorf("%v, told %d times, (-want +got):\n%s", err, told, diff)
	}
}
