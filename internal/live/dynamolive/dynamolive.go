// Package dynamolive keeps the live settings in DynamoDB, in the table of counts.
//
// The items use the partition key " config". No user has it, because user ids
// contain no space. One item, "limits", is the current document. Each change
// has an item of its own, such as "history#001700000000000#000000000007". Its
// name has the time in Unix milliseconds and the version. The version alone is
// not unique: versions start again at 1 after an operator deletes the document.
package dynamolive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json"

	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/table"
)

// Keys and attributes of the items.
const (
	settingsUser  = " config"
	settingsKey   = "limits"
	historyPrefix = "history#"
	version       = "version"
	document      = "document"
	change        = "change" // a live.Change as JSON
)

// Table keeps the settings. It is safe for concurrent use.
type Table struct {
	client *dynamodb.Client
	table  string
}

var _ live.Table = (*Table)(nil)

// New returns the settings in the table with this name. It sends no requests.
func New(client *dynamodb.Client, name string) *Table { return &Table{client: client, table: name} }

// Settings implements [live.Table] with one GetItem. Without the item there is no
// document. An attribute of another type is a *[live.DocumentError].
func (t *Table) Settings(ctx context.Context, consistent bool) ([]byte, int64, error) {
	out, err := t.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &t.table, Key: key(settingsKey), ConsistentRead: &consistent})
	if err != nil {
		return nil, 0, dynamostore.Classify(err)
	}
	found, ok := dynamostore.NumberOf(out.Item[version])
	text, isText := out.Item[document].(*types.AttributeValueMemberS)
	switch {
	case len(out.Item) == 0:
		return nil, 0, nil
	case !ok || found < 1:
		return nil, 0, &live.DocumentError{Cause: errors.New("the attribute " + version + " is not a number of at least 1")}
	case !isText:
		return nil, 0, &live.DocumentError{Cause: errors.New("the attribute " + document + " is not a string")}
	}
	return []byte(text.Value), found, nil
}

// ChangeSettings implements [live.Table] with one transaction. The transaction
// consists of updates only, so a role needs no other action than a guard's.
func (t *Table) ChangeSettings(ctx context.Context, before int64, settings []byte, c live.Change) error {
	current := types.Update{
		TableName:           &t.table,
		Key:                 key(settingsKey),
		ConditionExpression: aws.String("attribute_not_exists(" + dynamostore.UserID + ")"),
		UpdateExpression:    aws.String("SET " + version + " = :next, " + document + " = :document"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":next": dynamostore.Number(c.Version), ":document": dynamostore.Text(string(settings)),
		},
	}
	if before > 0 {
		current.ConditionExpression = aws.String(version + " = :before")
		current.ExpressionAttributeValues[":before"] = dynamostore.Number(before)
	}
	changed, err := json.Marshal(c)
	if err != nil {
		return err
	}
	history := types.Update{
		TableName:                 &t.table,
		Key:                       key(fmt.Sprintf("%s%015d#%012d", historyPrefix, c.At.UnixMilli(), c.Version)), // padded, so that keys sort
		UpdateExpression:          aws.String("SET " + change + " = :change"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":change": dynamostore.Text(string(changed))},
	}
	_, err = t.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{{Update: &current}, {Update: &history}},
	})
	if canceled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		for _, reason := range canceled.CancellationReasons {
			if code := aws.ToString(reason.Code); code == "ConditionalCheckFailed" || code == "TransactionConflict" {
				return live.ErrConflict
			}
		}
	}
	return dynamostore.Classify(err)
}

// SettingsHistory implements [live.Table].
func (t *Table) SettingsHistory(ctx context.Context) (changes []live.Change, err error) {
	pages := dynamodb.NewQueryPaginator(t.client, &dynamodb.QueryInput{
		TableName:              &t.table,
		ConsistentRead:         aws.Bool(true),
		ScanIndexForward:       aws.Bool(false),
		KeyConditionExpression: aws.String(dynamostore.UserID + " = :u AND begins_with(" + dynamostore.ActivityWindow + ", :h)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":u": dynamostore.Text(settingsUser), ":h": dynamostore.Text(historyPrefix),
		},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, table.Patient)
		if err != nil {
			return nil, dynamostore.Classify(err)
		}
		for _, item := range page.Items {
			at, _ := dynamostore.NumberOf(item["createdAt"])
			c := live.Change{At: time.UnixMilli(at).UTC(), By: dynamostore.TextOf(item["changedBy"])}
			c.What, c.Why = dynamostore.TextOf(item["what"]), dynamostore.TextOf(item["why"])
			c.Version, _ = dynamostore.NumberOf(item[version])
			_ = json.Unmarshal([]byte(dynamostore.TextOf(item[change])), &c) // older code wrote the attributes above instead
			changes = append(changes, c)
		}
	}
	return changes, nil
}

// key returns the key of a settings item.
func key(sort string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{dynamostore.UserID: dynamostore.Text(settingsUser), dynamostore.ActivityWindow: dynamostore.Text(sort)}
}
