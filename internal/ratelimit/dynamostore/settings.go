package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/live"
)

// The live limits lie under a key that no user has, as a user id has no space:
// one item of them, and one for each change.
const (
	settingsUser    = " config"
	settingsKey     = "limits"
	historyPrefix   = "history#"
	settingsVersion = "version"
	settingsText    = "document"
)

// Settings implements [live.Table]: one GetItem.
func (s *Store) Settings(ctx context.Context, consistent bool) (document []byte, version int64, err error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      &s.table,
		Key:            attributes{userID: text(settingsUser), activityWindow: text(settingsKey)},
		ConsistentRead: aws.Bool(consistent),
	})
	if err != nil {
		return nil, 0, classify(err)
	}
	version, _ = numberOf(out.Item[settingsVersion])
	return []byte(textOf(out.Item[settingsText])), version, nil
}

// ChangeSettings implements [live.Table]: one transaction, of updates alone, for
// which a role needs no other action than a guard's.
func (s *Store) ChangeSettings(ctx context.Context, version int64, document []byte, c live.Change) error {
	current := types.Update{
		TableName:           &s.table,
		Key:                 attributes{userID: text(settingsUser), activityWindow: text(settingsKey)},
		ConditionExpression: aws.String("attribute_not_exists(" + settingsVersion + ")"),
		UpdateExpression:    aws.String("SET " + settingsVersion + " = :next, " + settingsText + " = :document"),
		ExpressionAttributeValues: attributes{
			":next": number(c.Version), ":document": text(string(document)),
		},
	}
	if version > 0 {
		current.ConditionExpression = aws.String(settingsVersion + " = :version")
		current.ExpressionAttributeValues[":version"] = number(version)
	}
	history := types.Update{
		TableName: &s.table,
		// Padded, so that keys are in the order of versions.
		Key:              attributes{userID: text(settingsUser), activityWindow: text(historyPrefix + fmt.Sprintf("%012d", c.Version))},
		UpdateExpression: aws.String("SET " + settingsVersion + " = :v, " + createdAt + " = :at, changedBy = :by, what = :what, why = :why"),
		ExpressionAttributeValues: attributes{
			":v": number(c.Version), ":at": number(c.At.UnixMilli()), ":by": text(c.By), ":what": text(c.What), ":why": text(c.Why),
		},
	}
	_, err := s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{{Update: &current}, {Update: &history}},
	})
	if canceled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		for _, reason := range canceled.CancellationReasons {
			switch aws.ToString(reason.Code) {
			case "ConditionalCheckFailed", "TransactionConflict":
				return live.ErrConflict
			}
		}
	}
	return classify(err)
}

// SettingsHistory implements [live.Table].
func (s *Store) SettingsHistory(ctx context.Context) (changes []live.Change, err error) {
	pages := dynamodb.NewQueryPaginator(s.client, &dynamodb.QueryInput{
		TableName:              &s.table,
		ConsistentRead:         aws.Bool(true),
		ScanIndexForward:       aws.Bool(false),
		KeyConditionExpression: aws.String(userID + " = :u AND begins_with(" + activityWindow + ", :h)"),
		ExpressionAttributeValues: attributes{
			":u": text(settingsUser), ":h": text(historyPrefix),
		},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, patient)
		if err != nil {
			return nil, classify(err)
		}
		for _, item := range page.Items {
			version, _ := numberOf(item[settingsVersion])
			at, _ := numberOf(item[createdAt])
			changes = append(changes, live.Change{
				Version: version, At: time.UnixMilli(at).UTC(),
				By: textOf(item["changedBy"]), What: textOf(item["what"]), Why: textOf(item["why"]),
			})
		}
	}
	return changes, nil
}

var _ live.Table = (*Store)(nil)
