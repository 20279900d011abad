// Package scan reads every item of the table with all of its attributes, as
// guards top needs it. It tells beforehand what that costs.
package scan

import (
	"context"
	"math"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/table"
)

// A Table is a table in DynamoDB. It is safe for concurrent use.
type Table struct {
	client *dynamodb.Client
	name   string
}

// New returns the table with this name. It sends no requests.
func New(client *dynamodb.Client, name string) *Table { return &Table{client: client, name: name} }

// A Cost is what a scan reads.
type Cost struct {
	Items int64   // items
	Units float64 // read units
}

// Estimate returns about what a scan will read. DynamoDB updates these figures
// every six hours.
func (t *Table) Estimate(ctx context.Context) (Cost, error) {
	out, err := t.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &t.name}, table.Patient)
	if err != nil {
		return Cost{}, dynamostore.Classify(err)
	}
	// A scan reads 8 KB with one unit, and each segment at least half a unit.
	units := math.Ceil(float64(aws.ToInt64(out.Table.TableSizeBytes)) / 8192)
	return Cost{Items: aws.ToInt64(out.Table.ItemCount), Units: max(units, segments*0.5)}, nil
}

const (
	segments = 4    // that are read at the same time
	pageSize = 1000 // items that each of them holds at once
)

// Items calls each with every item of every user, never twice at once. It
// returns what the scan read. With an error it also returns what was read until
// then.
func (t *Table) Items(ctx context.Context, each func(ratelimit.Key, ratelimit.Item)) (Cost, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	var total Cost
	var wg sync.WaitGroup
	for segment := range int32(segments) {
		wg.Go(func() {
			err := t.segment(ctx, segment, func(page *dynamodb.ScanOutput) {
				mu.Lock()
				defer mu.Unlock()
				total.Items += int64(len(page.Items))
				if page.ConsumedCapacity != nil {
					total.Units += aws.ToFloat64(page.ConsumedCapacity.CapacityUnits)
				}
				for _, attributes := range page.Items {
					if key, item := dynamostore.Parse(attributes); !strings.HasPrefix(key.UserID, " ") { // the project's own
						each(key, item)
					}
				}
			})
			if err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return total, context.Cause(ctx)
}

// segment calls each with every page of a segment.
func (t *Table) segment(ctx context.Context, segment int32, each func(*dynamodb.ScanOutput)) error {
	pages := dynamodb.NewScanPaginator(t.client, &dynamodb.ScanInput{
		TableName:              &t.name,
		Segment:                aws.Int32(segment),
		TotalSegments:          aws.Int32(segments),
		Limit:                  aws.Int32(pageSize),
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, table.Patient)
		if err != nil {
			return dynamostore.Classify(err)
		}
		each(page)
	}
	return nil
}
