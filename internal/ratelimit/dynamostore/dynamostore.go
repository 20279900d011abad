// Package dynamostore keeps a limiter's items in DynamoDB. Each write is one
// UpdateItem request, whose condition is the guard of the update. For example,
// the request r1 counts one action of 10/1m (shortened):
//
//	Key                  userId u1, activityWindow create_post#28333333
//	ConditionExpression  NOT contains(ids, r1) AND activityCount <= 9
//	UpdateExpression     SET expiresAt = 1700000160 ADD activityCount 1, ids r1
//
// If the condition fails, DynamoDB returns the item in the same answer, so the
// limiter can plan again without a read.
//
// An item has its keys userId and activityWindow, the integers of the policy's
// state, and expiresAt (Unix seconds), which is the table's TTL attribute. The
// item of one window also has activity, windowKey and createdAt (Unix
// milliseconds).
//
// Request ids are kept in binary sets. A window's item has the set ids. The sets
// i00 to i30 are for 20 s each, in any item. An element is an id of 8 bytes, or an id followed by a note of 8 bytes (see
// [ratelimit.Mark]).
package dynamostore

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// These attributes belong to the store. No policy uses them.
const (
	userID         = "userId"
	activityWindow = "activityWindow"
	activity       = "activity"
	windowKey      = "windowKey"
	createdAt      = "createdAt"
	expiresAt      = "expiresAt"
)

// A Store keeps items in one table. It is safe for concurrent use.
type Store struct {
	client *dynamodb.Client
	table  string
}

// New returns a Store for an existing table. It sends no requests.
//
// New turns the SDK's retryer off, whatever cfg, the environment or the options
// set. That retryer would send an update of unknown outcome again as if it were
// new. The limiter retries instead.
func New(cfg aws.Config, table string, options ...func(*dynamodb.Options)) *Store {
	client := dynamodb.NewFromConfig(cfg, append(options, func(o *dynamodb.Options) {
		o.Retryer = aws.NopRetryer{}
		o.RetryMaxAttempts = 0
		// DynamoDB Local sends a wrong checksum with each failed condition. TLS
		// protects the bytes already.
		o.DisableValidateResponseChecksum = true
	})...)
	return &Store{client: client, table: table}
}

// Table returns the client and the name of the table, for other packages that
// work on the same table. The client does not retry.
func (s *Store) Table() (client *dynamodb.Client, name string) { return s.client, s.table }

// Update implements [ratelimit.Store] with one UpdateItem.
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

// Read implements [ratelimit.Store] with one consistent GetItem.
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

// Delete implements [ratelimit.Store] with one DeleteItem.
func (s *Store) Delete(ctx context.Context, k ratelimit.Key) error {
	_, err := s.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &s.table, Key: key(k)})
	return Classify(err)
}

func key(k ratelimit.Key) map[string]types.AttributeValue {
	sort := k.Activity
	if k.Window != 0 {
		sort += "#" + strconv.FormatInt(k.Window, 10)
	}
	return map[string]types.AttributeValue{userID: Text(k.UserID), activityWindow: Text(sort)}
}

// Parse reads an item of the table and its key.
func Parse(attributes map[string]types.AttributeValue) (ratelimit.Key, ratelimit.Item) {
	var k ratelimit.Key
	k.UserID = TextOf(attributes[userID])
	name, window, _ := strings.Cut(TextOf(attributes[activityWindow]), "#")
	k.Activity = name
	k.Window, _ = strconv.ParseInt(window, 10, 64) // 0 if the item serves forever
	return k, parse(attributes)
}

// parse reads an item. Without attributes it returns the zero Item, because the
// item does not exist. Item.Unread lists each attribute that should be a whole
// number or a set of ids, but is not. Such an attribute matters only if a
// policy uses it.
func parse(attributes map[string]types.AttributeValue) ratelimit.Item {
	if len(attributes) == 0 {
		return ratelimit.Item{}
	}
	item := ratelimit.Item{State: make(policy.State), IDs: make(ratelimit.IDs)}
	for name, value := range attributes {
		switch name {
		case userID, activityWindow, activity, windowKey, createdAt, expiresAt:
			continue
		}
		n, number := NumberOf(value)
		marks, set := marksOf(value)
		switch {
		case number && !ratelimit.IsSet(name):
			item.State[name] = n
		case set && ratelimit.IsSet(name):
			item.IDs[name] = marks
		default:
			item.Unread = append(item.Unread, name)
		}
	}
	return item
}

// marksOf returns the elements of a set of ids. It returns false if v is not a
// set of ids.
func marksOf(v types.AttributeValue) ([]ratelimit.Mark, bool) {
	set, ok := v.(*types.AttributeValueMemberBS)
	if !ok {
		return nil, false
	}
	marks := make([]ratelimit.Mark, len(set.Value))
	for i, element := range set.Value {
		if marks[i], ok = readMark(element); !ok {
			return nil, false
		}
	}
	return marks, true
}

const idSize, noteSize = len(ratelimit.ID{}), 8

// readMark reads an element of a set: an id, or an id followed by a note. It
// returns false if the element is neither.
func readMark(element []byte) (m ratelimit.Mark, ok bool) {
	switch len(element) {
	case idSize:
		return ratelimit.Mark{ID: ratelimit.ID(element)}, true
	case idSize + noteSize:
		return ratelimit.Mark{ID: ratelimit.ID(element[:idSize]), Note: int64(binary.BigEndian.Uint64(element[idSize:]))}, true
	}
	return m, false
}

// elements returns the elements that a set holds for a request: its id and, if
// it has a note, also the id with the note.
func elements(m ratelimit.Mark) types.AttributeValue {
	set := [][]byte{m.ID[:]}
	if m.Note != 0 {
		set = append(set, binary.BigEndian.AppendUint64(slices.Clone(m.ID[:]), uint64(m.Note)))
	}
	return &types.AttributeValueMemberBS{Value: set}
}

// Text returns a string attribute.
func Text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// Number returns a number attribute.
func Number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// TextOf returns the value of a string attribute, or "" if v is not a string.
func TextOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// NumberOf returns the value of a number attribute. It returns false if v is
// not a whole number.
func NumberOf(v types.AttributeValue) (int64, bool) {
	s, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(s.Value, 10, 64)
	return n, err == nil
}
