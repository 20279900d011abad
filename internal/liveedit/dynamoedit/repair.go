package dynamoedit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/live/dynamolive"
	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/strictjson"
)

// The items of the settings, as their sort keys.
const (
	Limits = dynamolive.Item
	Blocks = dynamolive.Blocks
)

// An Item is an item of the settings as it stands in the table, without its key. A person may
// have given each attribute any type.
type Item map[string]types.AttributeValue

// Item reads one item of the settings. It is nil if there is none.
func (t *Table) Item(ctx context.Context, name string) (Item, error) {
	out, err := t.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &t.table, Key: dynamolive.Key(name), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, dynamostore.Classify(err)
	}
	for key := range dynamolive.Key(name) {
		delete(out.Item, key)
	}
	return out.Item, nil
}

// Replace makes after the content of an item, and adds c to the history. If the item is not as
// it was, it does neither, and the error is ErrConflict. Other attributes stay.
func (t *Table) Replace(ctx context.Context, name string, was Item, after live.Stored, c liveedit.Change) error {
	update := types.Update{TableName: &t.table, Key: dynamolive.Key(name), ExpressionAttributeNames: map[string]string{}}
	content(&update, after)
	conditions := []string{"attribute_exists(" + dynamostore.UserID + ")"}
	for i, attr := range slices.Sorted(maps.Keys(was)) {
		name, value := fmt.Sprint("#a", i), fmt.Sprint(":a", i)
		update.ExpressionAttributeNames[name], update.ExpressionAttributeValues[value] = attr, was[attr]
		conditions = append(conditions, name+" = "+value)
	}
	if len(was) == 0 {
		update.ExpressionAttributeNames = nil
	}
	update.ConditionExpression = aws.String(strings.Join(conditions, " AND "))
	return t.record(ctx, name, update, c)
}

// MarshalJSON writes the item in DynamoDB's own form, as the AWS CLI does.
func (i Item) MarshalJSON() ([]byte, error) {
	object := map[string]any{}
	for name, v := range i {
		object[name] = plain(v)
	}
	return strictjson.Marshal(object, strictjson.Sorted, strictjson.AnyBytes)
}

// plain returns a value in DynamoDB's JSON form, such as {"N": "5"}.
func plain(v types.AttributeValue) any {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return map[string]any{"S": v.Value}
	case *types.AttributeValueMemberN:
		return map[string]any{"N": v.Value}
	case *types.AttributeValueMemberB:
		return map[string]any{"B": v.Value}
	case *types.AttributeValueMemberBOOL:
		return map[string]any{"BOOL": v.Value}
	case *types.AttributeValueMemberSS:
		return map[string]any{"SS": v.Value}
	case *types.AttributeValueMemberNS:
		return map[string]any{"NS": v.Value}
	case *types.AttributeValueMemberBS:
		return map[string]any{"BS": v.Value}
	case *types.AttributeValueMemberL:
		list := []any{}
		for _, one := range v.Value {
			list = append(list, plain(one))
		}
		return map[string]any{"L": list}
	case *types.AttributeValueMemberM:
		object := map[string]any{}
		for name, one := range v.Value {
			object[name] = plain(one)
		}
		return map[string]any{"M": object}
	}
	return map[string]any{"NULL": true}
}
