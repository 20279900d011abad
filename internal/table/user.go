package table

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
)

// User returns every item of a user, by key. It sends one consistent Query for
// each MB of items.
func (d *DynamoDB) User(ctx context.Context, user string) (map[ratelimit.Key]ratelimit.Item, error) {
	items := make(map[ratelimit.Key]ratelimit.Item)
	pages := dynamodb.NewQueryPaginator(d.client, d.queryUser(user))
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, Patient)
		if err != nil {
			return nil, dynamostore.Classify(err)
		}
		for _, attributes := range page.Items {
			key, item := dynamostore.Parse(attributes)
			items[key] = item
		}
	}
	return items, nil
}
