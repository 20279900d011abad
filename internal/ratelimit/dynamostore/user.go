package dynamostore

import (
	"context"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// User reads everything that is kept of a user, as one consistent Query for
// each MB.
func (s *Store) User(ctx context.Context, user string) (map[ratelimit.Key]ratelimit.Item, error) {
	items := make(map[ratelimit.Key]ratelimit.Item)
	pages := dynamodb.NewQueryPaginator(s.client, &dynamodb.QueryInput{
		TableName:                 &s.table,
		ConsistentRead:            aws.Bool(true),
		KeyConditionExpression:    aws.String(userID + " = :u"),
		ExpressionAttributeValues: attributes{":u": text(user)},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, patient)
		if err != nil {
			return nil, classify(err)
		}
		for _, item := range page.Items {
			name, window, _ := strings.Cut(textOf(item[activityWindow]), "#")
			number, _ := strconv.ParseInt(window, 10, 64) // 0 where the item serves for ever
			items[ratelimit.Key{UserID: user, Activity: name, Window: number}] = parse(item)
		}
	}
	return items, nil
}
