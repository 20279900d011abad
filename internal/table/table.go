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
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdklimit "github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
)

// DynamoDB is a table in DynamoDB. It is safe for concurrent use.
type DynamoDB struct {
	client *dynamodb.Client
	table  string
}

// New returns a DynamoDB for the table with this name. It sends no requests.
func New(client *dynamodb.Client, name string) *DynamoDB {
	return &DynamoDB{client: client, table: name}
}

// Create creates the table as template.yaml describes it, with TTL, and waits
// until it can be used. If the table exists already, Create changes nothing but
// TTL: an earlier run may have stopped before it turned TTL on.
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

// Parts is the number of segments in which a sweep and [DynamoDB.Stats] scan the
// table. Each costs a request, even if it is empty. With many users they have
// about the same size.
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

// ours reports whether an item belongs to this project and not to a user. Such
// keys begin with a space, which no user id contains.
func ours(item attributes) bool {
	return strings.HasPrefix(dynamostore.TextOf(item[dynamostore.UserID]), " ")
}

// lastUser is the user of the last item of a segment. A user's items follow each
// other, all in one segment.
type lastUser string

// next reports whether an item belongs to another user than the last one.
func (last *lastUser) next(item attributes) bool {
	user := lastUser(dynamostore.TextOf(item[dynamostore.UserID]))
	if user == *last || ours(item) {
		return false
	}
	*last = user
	return true
}
