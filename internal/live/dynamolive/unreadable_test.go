package dynamolive_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/live"
	. "github.com/cric-talk/guards/internal/live/dynamolive"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// Only the absence of the item means that there is no document. If somebody has
// changed the type of an attribute, a running instance keeps its limits, and the
// error names the attribute.
func TestASettingsItemOfAnotherTypeIsReported(t *testing.T) {
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	number := func(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }
	const none = `{}`
	for name, tt := range map[string]struct {
		version, document types.AttributeValue
		names             string
	}{
		"a version that is a text":     {text("2"), text(none), "version"},
		"no version":                   {nil, text(none), "version"},
		"version 0":                    {number("0"), text(none), "version"},
		"a version below 0":            {number("-1"), text(none), "version"},
		"a version that is not whole":  {number("2.5"), text(none), "version"},
		"a document that is no string": {number("2"), number("1"), "document"},
		"no document":                  {number("2"), nil, "document"},
		"nothing but the key":          {nil, nil, "version"},
	} {
		t.Run(name, func(t *testing.T) {
			table := dynamotest.Table(t)
			client := dynamotest.Client(t, dynamotest.Endpoint(t))
			s := New(client, table)
			put := func(version, document types.AttributeValue) {
				t.Helper()
				item := map[string]types.AttributeValue{"userId": text(" config"), "activityWindow": text("limits"), "version": version, "document": document}
				maps.DeleteFunc(item, func(_ string, value types.AttributeValue) bool { return value == nil })
				if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item}); err != nil {
					t.Fatal(err)
				}
			}
			if stored, err := s.Settings(t.Context(), true); stored.Version != 0 || err != nil {
				t.Fatalf("without a document: %+v, %v", stored, err)
			}
			put(number("1"), text(`{"activities":{"create_post":{"limit":"20/1m"}}}`))
			f := &live.Follower{Source: s, Guards: cricket.All}
			testkit.OK(t, f.Read(t.Context()))
			put(tt.version, tt.document)
			err := f.Read(t.Context())
			if e, ok := errors.AsType[*live.DocumentError](err); !ok || !strings.Contains(e.Cause.Error(), tt.names) {
				t.Errorf("a follower: %v, want a DocumentError that names %s", err, tt.names)
			}
			post, _ := cricket.Posts.Activity("create_post")
			if a, _ := f.Limits().Activity(post); a.Limit.Max() != 20 {
				t.Errorf("the limit is %q, want the last good one", a.Limit)
			}
		})
	}
}
