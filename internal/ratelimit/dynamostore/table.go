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
	if user, ok := attributes[userID].(*types.AttributeValueMemberS); ok {
		k.UserID = user.Value
	}
	if sort, ok := attributes[activityWindow].(*types.AttributeValueMemberS); ok {
		name, window, _ := strings.Cut(sort.Value, "#")
		k.Activity = name
		k.Window, _ = strconv.ParseInt(window, 10, 64) // 0 if the item serves forever
	}
	return k, parse(attributes)
}
