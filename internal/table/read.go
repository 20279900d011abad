package table

import (
	"context"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
)

// User returns every item of a user, by key. It sends one consistent Query for
// each MB of items.
func (d *DynamoDB) User(ctx context.Context, user string) (map[ratelimit.Key]ratelimit.Item, error) {
	items := make(map[ratelimit.Key]ratelimit.Item)
	for page, err := range pages(ctx, dynamodb.NewQueryPaginator(d.client, d.queryUser(user)), time.Time{}) {
		if err != nil {
			return nil, err
		}
		for _, attributes := range page.Items {
			key, item := dynamostore.Parse(attributes)
			items[key] = item
		}
	}
	return items, nil
}

// queryUser returns the consistent query for all items of a user.
func (d *DynamoDB) queryUser(user string) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName:                 &d.table,
		ConsistentRead:            aws.Bool(true),
		KeyConditionExpression:    aws.String(dynamostore.UserID + " = :u"),
		ExpressionAttributeValues: attributes{":u": dynamostore.Text(user)},
	}
}

// Stats are the figures of a whole table.
type Stats struct {
	Users      int64            // users who have items
	Items      int64            // their items
	Stale      int64            // how many of the items had expired
	Activities map[string]int64 // users of each activity
}

// Stats counts the users and items of the whole table. now is in Unix seconds.
// The memory it needs does not grow with the table. After each page it calls
// progress with the figures so far and the number of parts they cover, never
// twice at once. progress must not keep soFar.Activities.
func (d *DynamoDB) Stats(ctx context.Context, now int64, progress func(soFar Stats, parts int)) (Stats, error) {
	var mu sync.Mutex
	total := Stats{Activities: make(map[string]int64)}
	parts := 0
	err := d.eachSegment(ctx, keysAndExpiry(), func(ctx context.Context, segment *dynamodb.ScanPaginator) error {
		var user lastUser
		counted := make(map[string]bool) // activities of the user
		for page, err := range pages(ctx, segment, time.Time{}) {
			if err != nil {
				return err
			}
			mu.Lock()
			for _, item := range page.Items {
				if user.next(item) {
					total.Users++
					clear(counted)
				}
				total.add(item, now, counted)
			}
			progress(total, parts)
			mu.Unlock()
		}
		mu.Lock()
		defer mu.Unlock()
		parts++
		progress(total, parts)
		return nil
	})
	return total, err
}

// add adds an item of a user, of whom some activities are counted already.
func (s *Stats) add(item attributes, now int64, counted map[string]bool) {
	if ours(item) {
		return
	}
	s.Items++
	if expired(item, now) {
		s.Stale++
	}
	if name, _, _ := strings.Cut(dynamostore.TextOf(item[dynamostore.ActivityWindow]), "#"); !counted[name] {
		counted[name] = true
		s.Activities[name]++
	}
}

// A Cost is what Items reads.
type Cost struct {
	Items int64   // items
	Units float64 // read units
}

// segments is the number of segments in which Items scans the table. They are
// few, because each costs at least half a read unit.
const segments = 4

// Estimate returns about what Items will read. DynamoDB updates these figures
// every six hours.
func (d *DynamoDB) Estimate(ctx context.Context) (Cost, error) {
	out, err := d.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &d.table}, Patient)
	if err != nil {
		return Cost{}, dynamostore.Classify(err)
	}
	units := math.Ceil(float64(aws.ToInt64(out.Table.TableSizeBytes)) / 8192) // a scan reads 8 KB with one unit
	return Cost{Items: aws.ToInt64(out.Table.ItemCount), Units: max(units, segments*0.5)}, nil
}

// Items calls each with every item of every user and all of its attributes,
// never twice at once. It returns what the scan read. With an error it also
// returns what was read until then.
func (d *DynamoDB) Items(ctx context.Context, each func(ratelimit.Key, ratelimit.Item)) (Cost, error) {
	var mu sync.Mutex
	var total Cost
	scan := dynamodb.ScanInput{TotalSegments: aws.Int32(segments), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal}
	err := d.eachSegment(ctx, scan, func(ctx context.Context, segment *dynamodb.ScanPaginator) error {
		for page, err := range pages(ctx, segment, time.Time{}) {
			if err != nil {
				return err
			}
			mu.Lock()
			total.Items += int64(len(page.Items))
			if page.ConsumedCapacity != nil {
				total.Units += aws.ToFloat64(page.ConsumedCapacity.CapacityUnits)
			}
			for _, item := range page.Items {
				if !ours(item) {
					each(dynamostore.Parse(item))
				}
			}
			mu.Unlock()
		}
		return nil
	})
	return total, err
}
