package table

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
)

// Parts is the number of parts in which a whole table is read. With many users
// the parts have about the same size. A sweep reports its progress after each.
const Parts = 64 // segments of a parallel scan; each costs a request, even if it is empty

const (
	workers  = 4    // segments that are read at the same time
	pageSize = 1000 // items that each worker holds at once
)

// eachSegment calls do for every segment in random order, for several segments
// at the same time. It stops at the first error and returns it.
func eachSegment(ctx context.Context, do func(context.Context, int32) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int32, Parts)
	for _, segment := range rand.Perm(Parts) {
		next <- int32(segment)
	}
	close(next)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for segment := range next {
				if err := do(ctx, segment); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// scan reads one segment and calls page for each page of items. It stops early
// if over reports true, or if page returns false or an error. It returns
// whether it read the whole segment.
func (d *DynamoDB) scan(ctx context.Context, segment int32, over func() bool, page func([]attributes) (bool, error)) (bool, error) {
	pages := dynamodb.NewScanPaginator(d.client, &dynamodb.ScanInput{
		TableName:            &d.table,
		ProjectionExpression: aws.String(strings.Join([]string{userID, activityWindow, expiresAt}, ", ")),
		Segment:              aws.Int32(segment),
		TotalSegments:        aws.Int32(Parts),
		Limit:                aws.Int32(pageSize),
	})
	for pages.HasMorePages() {
		if over() {
			return false, nil
		}
		out, err := pages.NextPage(ctx, Patient)
		if err != nil {
			return false, dynamostore.Classify(err)
		}
		if done, err := page(out.Items); err != nil || !done {
			return false, err
		}
	}
	return true, nil
}

// A userCount counts the users in a segment while their items pass by. A user's
// items follow each other, all in one segment.
type userCount struct {
	n    int64
	last string
}

// add counts the user of an item, and reports whether the user is a new one.
func (c *userCount) add(item attributes) bool {
	user := dynamostore.TextOf(item[userID])
	if user == c.last || ours(item) {
		return false
	}
	c.last = user
	c.n++
	return true
}
