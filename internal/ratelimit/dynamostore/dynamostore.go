// Package dynamostore keeps a limiter's items in DynamoDB: the guarded update
// is one UpdateItem whose condition is the guard.
//
// Beside the attributes of the policy's state an item has its keys userId and
// activityWindow, and expiresAt (Unix seconds, the table's TTL attribute). The
// item of one window also has activity, windowKey, createdAt (Unix
// milliseconds) and ids, the binary set of the requests counted in it; an item
// that serves for ever has such sets named i00 to i30, see [ratelimit.Memory],
// or lists where their order matters.
package dynamostore

import (
	"context"
	"errors"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// Attributes that are the store's own, and so in no State.
const (
	userID         = "userId"
	activityWindow = "activityWindow"
	activity       = "activity"
	windowKey      = "windowKey"
	createdAt      = "createdAt"
	expiresAt      = "expiresAt"
)

// Store is a table. It is safe for concurrent use.
type Store struct {
	client *dynamodb.Client
	table  string
}

// New makes a store of a table that exists. It asks nothing.
//
// The SDK's retryer is off, whatever cfg, the environment or options say: it
// would send an update of unknown outcome again as if it were new. Who calls
// retries.
func New(cfg aws.Config, table string, options ...func(*dynamodb.Options)) *Store {
	client := dynamodb.NewFromConfig(cfg, append(options, func(o *dynamodb.Options) {
		o.Retryer = aws.NopRetryer{}
		o.RetryMaxAttempts = 0
		// DynamoDB Local sends a wrong checksum with each failed condition, and
		// TLS has checked the bytes already.
		o.DisableValidateResponseChecksum = true
	})...)
	return &Store{client: client, table: table}
}

// Update implements [ratelimit.Store]: one UpdateItem.
func (s *Store) Update(ctx context.Context, w ratelimit.Write) (ratelimit.Item, bool, error) {
	out, err := s.client.UpdateItem(ctx, updateInput(s.table, w))
	if refused, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return parse(refused.Item), false, nil
	}
	if err != nil {
		return ratelimit.Item{}, false, Classify(err)
	}
	return parse(out.Attributes), true, nil
}

// Read implements [ratelimit.Store]: one consistent GetItem.
func (s *Store) Read(ctx context.Context, k ratelimit.Key) (ratelimit.Item, error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      &s.table,
		Key:            key(k),
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return ratelimit.Item{}, Classify(err)
	}
	return parse(out.Item), nil
}

// Delete implements [ratelimit.Store]: one DeleteItem.
func (s *Store) Delete(ctx context.Context, k ratelimit.Key) error {
	_, err := s.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &s.table, Key: key(k)})
	return Classify(err)
}

func key(k ratelimit.Key) map[string]types.AttributeValue {
	sort := k.Activity
	if k.Window != 0 {
		sort += "#" + strconv.FormatInt(k.Window, 10)
	}
	return map[string]types.AttributeValue{userID: text(k.UserID), activityWindow: text(sort)}
}

// parse reads an item; nil is the item that does not exist. What this store
// did not write, such as somebody's note, is passed over.
func parse(attributes map[string]types.AttributeValue) ratelimit.Item {
	var item ratelimit.Item
	for name, value := range attributes {
		switch name {
		case windowKey, createdAt, expiresAt:
			continue
		}
		switch v := value.(type) {
		case *types.AttributeValueMemberN:
			if n, err := strconv.ParseInt(v.Value, 10, 64); err == nil {
				if item.State == nil {
					item.State = make(ratelimit.State)
				}
				item.State[name] = n
			}
		case *types.AttributeValueMemberBS:
			keep(&item, name, v.Value...)
		case *types.AttributeValueMemberL:
			for _, element := range v.Value {
				if b, ok := element.(*types.AttributeValueMemberB); ok {
					keep(&item, name, b.Value)
				}
			}
		}
	}
	return item
}

func keep(item *ratelimit.Item, name string, ids ...[]byte) {
	for _, b := range ids {
		if len(b) != len(ratelimit.ID{}) {
			continue
		}
		if item.IDs == nil {
			item.IDs = make(ratelimit.IDs, 2)
		}
		item.IDs[name] = append(item.IDs[name], ratelimit.ID(b))
	}
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func binary(ids ...ratelimit.ID) types.AttributeValue {
	set := make([][]byte, len(ids))
	for i := range ids {
		set[i] = ids[i][:]
	}
	return &types.AttributeValueMemberBS{Value: set}
}

func list(ids ...ratelimit.ID) types.AttributeValue {
	l := make([]types.AttributeValue, len(ids))
	for i := range ids {
		l[i] = &types.AttributeValueMemberB{Value: ids[i][:]}
	}
	return &types.AttributeValueMemberL{Value: l}
}
