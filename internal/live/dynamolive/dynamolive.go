// Package dynamolive reads the live settings in DynamoDB, in the table of counts. The
// items of the settings use the partition key " config". No user has it, because user
// ids contain no space. One item, "limits", is the current document, and another one,
// "blocks", tells who is blocked.
package dynamolive

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
)

// The keys and attributes of the documents' items.
const (
	User     = " config"
	Item     = "limits"
	Blocks   = "blocks"
	Version  = "version"
	Document = "document"
	Trials   = "trials" // older code changes the document and leaves it as it is
	Ends     = "ends"   // the same
)

// Table holds the settings. It is safe for concurrent use.
type Table struct {
	client *dynamodb.Client
	table  string
}

var _ live.Source = (*Table)(nil)

// New returns the settings in the table with this name. It sends no requests.
func New(client *dynamodb.Client, name string) *Table { return &Table{client: client, table: name} }

// Settings implements [live.Source] with one GetItem. Without the item there is no
// document. An attribute of another type is a *[live.DocumentError].
func (t *Table) Settings(ctx context.Context, consistent bool) (live.Stored, error) {
	return t.document(ctx, Item, consistent)
}

// Blocks implements [live.Source] in the same way.
func (t *Table) Blocks(ctx context.Context, consistent bool) (live.Stored, error) {
	return t.document(ctx, Blocks, consistent)
}

func (t *Table) document(ctx context.Context, item string, consistent bool) (live.Stored, error) {
	out, err := t.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &t.table, Key: Key(item), ConsistentRead: &consistent})
	if err != nil {
		return live.Stored{}, dynamostore.Classify(err)
	}
	found, ok := dynamostore.NumberOf(out.Item[Version])
	text, isText := out.Item[Document].(*types.AttributeValueMemberS)
	switch {
	case len(out.Item) == 0:
		return live.Stored{}, nil
	case !ok || found < 1:
		return live.Stored{}, &live.DocumentError{Cause: errors.New("the attribute " + Version + " is not a number of at least 1")}
	case !isText:
		return live.Stored{}, &live.DocumentError{Cause: errors.New("the attribute " + Document + " is not a string")}
	}
	return live.Stored{Version: found, Document: []byte(text.Value), Trials: Beside(out.Item[Trials]), Ends: Beside(out.Item[Ends])}, nil
}

// Beside returns the text of an attribute beside the document; nil: there is none. The text
// of an attribute that is not a string can't be read, so that the settings tell of the damage.
func Beside(attribute types.AttributeValue) []byte {
	text, isText := attribute.(*types.AttributeValueMemberS)
	switch {
	case attribute == nil:
		return nil
	case !isText:
		return []byte("not a string")
	}
	return []byte(text.Value)
}

// Key returns the key of an item of the settings with this sort key.
func Key(sort string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{dynamostore.UserID: dynamostore.Text(User), dynamostore.ActivityWindow: dynamostore.Text(sort)}
}
