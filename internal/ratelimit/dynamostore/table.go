package dynamostore

import (
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// Table returns the client and the name of the table, for other packages that
// work on the same table. The client does not retry.
func (s *Store) Table() (client *dynamodb.Client, name string) { return s.client, s.table }

// Parse reads an item of the table and its key.
func Parse(attributes map[string]types.AttributeValue) (ratelimit.Key, ratelimit.Item) {
	var k ratelimit.Key
	k.UserID = TextOf(attributes[UserID])
	name, window, _ := strings.Cut(TextOf(attributes[ActivityWindow]), "#")
	k.Activity = name
	k.Window, _ = strconv.ParseInt(window, 10, 64) // 0 if the item serves forever
	return k, parse(attributes)
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
