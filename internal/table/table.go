// Package table works on the whole table of counted actions, as operators need
// it. It creates the table, deletes what has expired, shows or erases one user,
// and counts or reads all items.
//
// [DynamoDB] works on a DynamoDB table, and [Memory] on the embedded store. No
// decision waits for this package, so its requests may take minutes.
package table

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdklimit "github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
)

// DynamoDB is a table in DynamoDB. It is safe for concurrent use.
type DynamoDB struct {
	client *dynamodb.Client
	table  string
}

// New returns a DynamoDB for the table with this name. It sends no requests.
func New(client *dynamodb.Client, name string) *DynamoDB { return &DynamoDB{client, name} }

// Create creates the table as template.yaml describes it, with TTL, and waits
// until it can be used. If the table exists already, Create changes only TTL:
// an earlier run may have stopped before it turned TTL on.
func (d *DynamoDB) Create(ctx context.Context) error {
	_, err := d.client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:   &d.table,
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String(dynamostore.UserID), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String(dynamostore.ActivityWindow), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String(dynamostore.UserID), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String(dynamostore.ActivityWindow), KeyType: types.KeyTypeRange},
		},
	}, Patient)
	if _, exists := errors.AsType[*types.ResourceInUseException](err); err != nil && !exists {
		return dynamostore.Classify(err)
	}
	created := dynamodb.NewTableExistsWaiter(d.client)
	if err := created.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &d.table}, time.Minute); err != nil {
		return fmt.Errorf("wait for the table %s: %w", d.table, err)
	}
	return d.expire(ctx)
}

// expire turns TTL on, unless it is on or about to be.
func (d *DynamoDB) expire(ctx context.Context) error {
	now, err := d.client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &d.table}, Patient)
	if err != nil {
		return dynamostore.Classify(err)
	}
	if ttl := now.TimeToLiveDescription; ttl != nil && ttl.TimeToLiveStatus != types.TimeToLiveStatusDisabled {
		return nil
	}
	_, err = d.client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               &d.table,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(dynamostore.ExpiresAt), Enabled: aws.Bool(true)},
	}, Patient)
	return dynamostore.Classify(err)
}

// Patient is an option for one request. It turns the SDK's retryer on, for a
// request that may safely be sent twice and may take minutes.
func Patient(o *dynamodb.Options) {
	o.Retryer = retry.NewStandard(func(r *retry.StandardOptions) {
		r.MaxAttempts = 10
		r.MaxBackoff = 2 * time.Second
		r.RateLimiter = sdklimit.None // a throttled table needs patience, not fewer attempts
	})
}

// Parts is how many segments of the table a sweep and [DynamoDB.Stats] scan. Each costs a
// request, even if it is empty. With many users they are about equal.
const Parts = 64

const (
	workers  = 4    // segments that are read at the same time
	pageSize = 1000 // items that each worker holds at once
)

// eachSegment calls do for every segment of a scan in random order, for several
// segments at the same time. It stops at the first error and returns it.
func (d *DynamoDB) eachSegment(ctx context.Context, scan dynamodb.ScanInput, do func(context.Context, *dynamodb.ScanPaginator) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	scan.TableName, scan.Limit = &d.table, aws.Int32(pageSize)
	next := make(chan int, *scan.TotalSegments)
	for _, segment := range rand.Perm(cap(next)) {
		next <- segment
	}
	close(next)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for segment := range next {
				one := scan
				one.Segment = aws.Int32(int32(segment))
				if err := do(ctx, dynamodb.NewScanPaginator(d.client, &one)); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// A pager is one of the SDK's paginators.
type pager[Page any] interface {
	HasMorePages() bool
	NextPage(context.Context, ...func(*dynamodb.Options)) (*Page, error)
}

// pages yields the pages of a scan or a query. It stops early after an error, or
// when it is time to stop (see [Sweep]).
func pages[Page any](ctx context.Context, p pager[Page], until time.Time) iter.Seq2[*Page, error] {
	return func(yield func(*Page, error) bool) {
		for p.HasMorePages() && !over(until) {
			page, err := p.NextPage(ctx, Patient)
			if !yield(page, dynamostore.Classify(err)) || err != nil {
				return
			}
		}
	}
}

// over reports whether it is time to stop.
func over(until time.Time) bool { return !until.IsZero() && !time.Now().Before(until) }

// attributes are an item, or a part of one.
type attributes = map[string]types.AttributeValue

// expired reports whether an item expired before now, in Unix seconds.
func expired(item attributes, now int64) bool {
	expires, ok := dynamostore.NumberOf(item[dynamostore.ExpiresAt])
	return ok && expires < now
}

// ours reports whether a key belongs to this project, and to no user or subject.
func ours(key string) bool {
	_, _, subject := limits.SubjectOf(key)
	return strings.HasPrefix(key, " ") && !subject
}

// keyOf returns whose item this is: the id of a user, the key of a subject, or ours.
func keyOf(item attributes) string { return dynamostore.TextOf(item[dynamostore.UserID]) }

// lastOwner is the user or the subject of the last item of a segment. The items of one
// follow each other, all in one segment.
type lastOwner string

// next returns the owner of an item, and whether it is another one than the last.
func (last *lastOwner) next(item attributes) (key string, another bool) {
	key = keyOf(item)
	if key == string(*last) || ours(key) {
		return key, false
	}
	*last = lastOwner(key)
	return key, true
}

// Subjects are numbers of subjects by their names, such as room. Nil: none.
type Subjects map[string]int64

// count adds one to users or, if the key is a subject's, to its name in s.
func (s *Subjects) count(key string, users *int64) {
	if name, _, ok := limits.SubjectOf(key); ok {
		s.add(name, 1)
	} else {
		*users++
	}
}

func (s *Subjects) add(name string, n int64) {
	if *s == nil {
		*s = make(Subjects)
	}
	(*s)[name] += n
}

// User returns a user's items by key. It sends one consistent Query for each MB.
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
	Subjects   Subjects         // subjects that have items
	Items      int64            // of users and subjects
	Stale      int64            // how many of the items had expired
	Activities map[string]int64 // users of each activity
}

// Stats counts the users, subjects and items of the whole table. now is in Unix seconds.
// The memory it needs does not grow with the table. After each page it calls progress with
// the figures so far and the number of parts they cover, never twice at once. The func
// progress must not keep the maps of soFar. If each is set, Stats calls it as
// [DynamoDB.Items] does.
func (d *DynamoDB) Stats(ctx context.Context, now int64, each func(ratelimit.Key, ratelimit.Item), progress func(soFar Stats, parts int)) (Stats, error) {
	var mu sync.Mutex
	total := Stats{Activities: make(map[string]int64)}
	parts := 0
	err := d.eachSegment(ctx, inParts(each != nil), func(ctx context.Context, segment *dynamodb.ScanPaginator) error {
		var last lastOwner
		counted := make(map[string]bool) // activities of the user
		for page, err := range pages(ctx, segment, time.Time{}) {
			if err != nil {
				return err
			}
			mu.Lock()
			for _, item := range page.Items {
				if key, another := last.next(item); another {
					total.Subjects.count(key, &total.Users)
					clear(counted)
				}
				total.add(item, now, counted)
			}
			show(page.Items, each)
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

// add adds an item of a subject, or of a user with some activities that are counted
// already.
func (s *Stats) add(item attributes, now int64, counted map[string]bool) {
	key := keyOf(item)
	if ours(key) {
		return
	}
	s.Items++
	if expired(item, now) {
		s.Stale++
	}
	if _, _, subject := limits.SubjectOf(key); subject {
		return
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

// segments is how many segments of the table Items scans. They are few, because
// each costs at least half a read unit.
const segments = 4

// Estimate returns about what Items will read, by figures up to six hours old.
func (d *DynamoDB) Estimate(ctx context.Context) (Cost, error) {
	out, err := d.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &d.table}, Patient)
	if err != nil {
		return Cost{}, dynamostore.Classify(err)
	}
	units := math.Ceil(float64(aws.ToInt64(out.Table.TableSizeBytes)) / 8192) // a scan reads 8 KB with one unit
	return Cost{Items: aws.ToInt64(out.Table.ItemCount), Units: max(units, segments*0.5)}, nil
}

// Items calls each with every item of every user and subject and all of its attributes,
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
			show(page.Items, each)
			mu.Unlock()
		}
		return nil
	})
	return total, err
}

// show calls each with the items of users and subjects, if it is set.
func show(items []attributes, each func(ratelimit.Key, ratelimit.Item)) {
	if each == nil {
		return
	}
	for _, item := range items {
		if !ours(keyOf(item)) {
			each(dynamostore.Parse(item))
		}
	}
}
