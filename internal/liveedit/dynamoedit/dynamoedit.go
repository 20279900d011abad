// Package dynamoedit changes the live settings in DynamoDB, and keeps their history.
//
// Each change has an item beside the document, under the partition key " config", such
// as "history#001700000000000#000000000007". Its name has the time in Unix milliseconds
// and the version. The version alone is not unique: versions start again at 1 after an
// operator deletes the document. A reset changes no document, so its item has a random name.
package dynamoedit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/live/dynamolive"
	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/strictjson"
	"github.com/cric-talk/guards/internal/table"
)

const (
	historyPrefix = "history#"
	change        = "change" // the attribute with a liveedit.Change as JSON
)

// Table keeps the settings. It is safe for concurrent use.
type Table struct {
	*dynamolive.Table

	client *dynamodb.Client
	table  string
}

var _ liveedit.Table = (*Table)(nil)

// New returns the settings in the table with this name. It sends no requests.
func New(client *dynamodb.Client, name string) *Table {
	return &Table{dynamolive.New(client, name), client, name}
}

// ChangeSettings implements [liveedit.Table] with one transaction. The transaction
// consists of updates only, so a role needs no other action than a guard's.
func (t *Table) ChangeSettings(ctx context.Context, before int64, after live.Stored, c liveedit.Change) error {
	return t.change(ctx, dynamolive.Item, before, after, c)
}

// ChangeBlocks implements [liveedit.Table] in the same way.
func (t *Table) ChangeBlocks(ctx context.Context, before int64, after live.Stored, c liveedit.Change) error {
	return t.change(ctx, dynamolive.Blocks, before, after, c)
}

func (t *Table) change(ctx context.Context, item string, before int64, after live.Stored, c liveedit.Change) error {
	current := types.Update{
		TableName:           &t.table,
		Key:                 dynamolive.Key(item),
		ConditionExpression: aws.String("attribute_not_exists(" + dynamostore.UserID + ")"),
	}
	content(&current, after)
	if before > 0 {
		current.ConditionExpression = aws.String(dynamolive.Version + " = :before")
		current.ExpressionAttributeValues[":before"] = dynamostore.Number(before)
	}
	return t.record(ctx, item, current, c)
}

// content lets an update write a document and what is beside it.
func content(u *types.Update, after live.Stored) {
	u.ExpressionAttributeValues = map[string]types.AttributeValue{
		":next": dynamostore.Number(after.Version), ":document": dynamostore.Text(string(after.Document)),
	}
	set, remove := "SET "+dynamolive.Version+" = :next, "+dynamolive.Document+" = :document", ""
	for attr, text := range map[string][]byte{dynamolive.Trials: after.Trials, dynamolive.Ends: after.Ends} {
		if len(text) == 0 {
			remove += ", " + attr
			continue
		}
		set += ", " + attr + " = :" + attr
		u.ExpressionAttributeValues[":"+attr] = dynamostore.Text(string(text))
	}
	if remove != "" {
		set += " REMOVE " + strings.TrimPrefix(remove, ", ")
	}
	u.UpdateExpression = aws.String(set)
}

// record performs an update of an item of the settings, and adds c to the history.
func (t *Table) record(ctx context.Context, item string, current types.Update, c liveedit.Change) error {
	name := fmt.Sprintf("%012d", c.Version)
	if item != dynamolive.Item { // both documents can have the same version
		name += "#" + item
	}
	history, err := t.entry(name, c)
	if err != nil {
		return err
	}
	_, err = t.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{{Update: &current}, {Update: &history}},
	})
	if canceled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		for _, reason := range canceled.CancellationReasons {
			if code := aws.ToString(reason.Code); code == "ConditionalCheckFailed" || code == "TransactionConflict" {
				return liveedit.ErrConflict
			}
		}
	}
	return dynamostore.Classify(err)
}

// Note implements [liveedit.Table]. The name of the entry has a random part, because it has
// no version.
func (t *Table) Note(ctx context.Context, c liveedit.Change) error {
	history, err := t.entry(c.Op+"#"+rand.Text(), c)
	if err != nil {
		return err
	}
	_, err = t.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: history.TableName, Key: history.Key,
		UpdateExpression: history.UpdateExpression, ExpressionAttributeValues: history.ExpressionAttributeValues,
	})
	return dynamostore.Classify(err)
}

// entry returns the update that adds c to the history. Its name begins with the time, which
// is padded so that keys sort.
func (t *Table) entry(name string, c liveedit.Change) (types.Update, error) {
	changed, err := strictjson.Marshal(c)
	return types.Update{
		TableName:                 &t.table,
		Key:                       dynamolive.Key(fmt.Sprintf("%s%015d#%s", historyPrefix, c.At.UnixMilli(), name)),
		UpdateExpression:          aws.String("SET " + change + " = :change"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":change": dynamostore.Text(string(changed))},
	}, err
}

// SettingsHistory implements [liveedit.Table].
func (t *Table) SettingsHistory(ctx context.Context) (changes []liveedit.Change, err error) {
	pages := dynamodb.NewQueryPaginator(t.client, &dynamodb.QueryInput{
		TableName:              &t.table,
		ConsistentRead:         aws.Bool(true),
		ScanIndexForward:       aws.Bool(false),
		KeyConditionExpression: aws.String(dynamostore.UserID + " = :u AND begins_with(" + dynamostore.ActivityWindow + ", :h)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":u": dynamostore.Text(dynamolive.User), ":h": dynamostore.Text(historyPrefix),
		},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, table.Patient)
		if err != nil {
			return nil, dynamostore.Classify(err)
		}
		for _, item := range page.Items {
			at, _ := dynamostore.NumberOf(item["createdAt"])
			c := liveedit.Change{At: time.UnixMilli(at).UTC(), By: dynamostore.TextOf(item["changedBy"])}
			c.What, c.Why = dynamostore.TextOf(item["what"]), dynamostore.TextOf(item["why"])
			c.Version, _ = dynamostore.NumberOf(item[dynamolive.Version])
			_ = strictjson.Unmarshal([]byte(dynamostore.TextOf(item[change])), &c) // older code wrote the attributes above instead
			changes = append(changes, c)
		}
	}
	return changes, nil
}

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
