package table

import (
	"context"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
)

// Sweep reads the whole table and deletes each item that has expired, if it is
// still expired when the delete arrives. The memory it needs does not grow with
// the table. It reads the table's parts in random order, so that later sweeps
// reach what this one has no time for. With an error it also returns the work
// done so far.
func (d *DynamoDB) Sweep(ctx context.Context, o Sweep) (Swept, error) {
	var mu sync.Mutex
	total := Swept{Finished: true}
	err := eachSegment(ctx, func(ctx context.Context, segment int32) error {
		swept, err := d.sweepSegment(ctx, o, segment)
		mu.Lock()
		defer mu.Unlock()
		total = Swept{
			Scanned:  total.Scanned + swept.Scanned,
			Stale:    total.Stale + swept.Stale,
			Deleted:  total.Deleted + swept.Deleted,
			Users:    total.Users + swept.Users,
			Finished: total.Finished && swept.Finished,
		}
		if o.Progress != nil {
			o.Progress(total)
		}
		return err
	})
	return total, err
}

// sweepSegment sweeps one segment.
func (d *DynamoDB) sweepSegment(ctx context.Context, o Sweep, segment int32) (swept Swept, err error) {
	var users userCount
	swept.Finished, err = d.scan(ctx, segment, o.Over, func(items []attributes) (bool, error) {
		var stale []attributes
		for _, item := range items {
			swept.Scanned++
			users.add(item)
			if expired(item, o.Now) {
				stale = append(stale, item)
			}
		}
		swept.Stale += int64(len(stale))
		if o.DryRun {
			return true, nil
		}
		deleted, done, err := d.deleteAll(ctx, stale, o)
		swept.Deleted += deleted
		return done, err
	})
	swept.Users = users.n
	return swept, err
}

// Erase deletes every item of a user, expired or not. It ignores o.Now. With an
// error it also returns the work done so far.
func (d *DynamoDB) Erase(ctx context.Context, user string, o Sweep) (Swept, error) {
	var swept Swept
	o.Now = 0
	query := d.queryUser(user)
	query.ProjectionExpression = aws.String(userID + ", " + activityWindow)
	query.Limit = aws.Int32(pageSize)
	pages := dynamodb.NewQueryPaginator(d.client, query)
	for pages.HasMorePages() {
		if o.Over() {
			return swept, nil
		}
		page, err := pages.NextPage(ctx, Patient)
		if err != nil {
			return swept, dynamostore.Classify(err)
		}
		swept.Scanned += int64(len(page.Items))
		swept.Stale += int64(len(page.Items))
		if swept.Scanned > 0 {
			swept.Users = 1
		}
		if !o.DryRun {
			deleted, done, err := d.deleteAll(ctx, page.Items, o)
			swept.Deleted += deleted
			if err != nil || !done {
				return swept, err
			}
		}
	}
	swept.Finished = true
	return swept, nil
}

// queryUser returns the consistent query for all items of a user.
func (d *DynamoDB) queryUser(user string) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName:                 &d.table,
		ConsistentRead:            aws.Bool(true),
		KeyConditionExpression:    aws.String(userID + " = :u"),
		ExpressionAttributeValues: attributes{":u": dynamostore.Text(user)},
	}
}
