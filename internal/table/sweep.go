package table

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/retry"
)

// A Sweep holds the options of a sweep or an erasure.
type Sweep struct {
	Now      int64       // Unix seconds; a sweep deletes what expired before it, an erasure ignores it
	Until    time.Time   // when to stop even if work is left; zero: no limit
	DryRun   bool        // count, but delete nothing
	Progress func(Swept) // if set, called with the work done so far, never twice at once; an erasure ignores it

	// Each is called with each item of a user or a subject and all of its attributes, if it is
	// set, and never twice at once. An erasure ignores it.
	Each func(ratelimit.Key, ratelimit.Item)
}

// Swept is what a sweep or an erasure found and did.
type Swept struct {
	Scanned  int64    `json:"scanned"`            // items read
	Stale    int64    `json:"stale"`              // how many of them had expired; for an erasure, all of them
	Deleted  int64    `json:"deleted"`            // how many of them are known to be deleted
	Users    int64    `json:"users"`              // users who own the items that were read
	Subjects Subjects `json:"subjects,omitempty"` // subjects that own the others of these items
	Finished bool     `json:"finished"`           // whether everything was read and deleted in time
}

// Sweep reads the whole table and deletes each item that has expired, if it is
// still expired when the delete arrives. The memory it needs does not grow with
// the table. It reads the table's parts in random order, so that later sweeps reach
// the rest. With an error it also returns the work done so far.
func (d *DynamoDB) Sweep(ctx context.Context, o Sweep) (Swept, error) {
	var mu sync.Mutex
	total := Swept{Finished: true}
	if each := o.Each; each != nil {
		o.Each = func(k ratelimit.Key, item ratelimit.Item) {
			mu.Lock()
			defer mu.Unlock()
			each(k, item)
		}
	}
	err := d.eachSegment(ctx, inParts(o.Each != nil), func(ctx context.Context, segment *dynamodb.ScanPaginator) error {
		swept, err := d.sweepSegment(ctx, o, segment)
		mu.Lock()
		defer mu.Unlock()
		total.Scanned += swept.Scanned
		total.Stale += swept.Stale
		total.Deleted += swept.Deleted
		total.Users += swept.Users
		for name, n := range swept.Subjects {
			total.Subjects.add(name, n)
		}
		total.Finished = total.Finished && swept.Finished
		if o.Progress != nil {
			o.Progress(total)
		}
		return err
	})
	return total, err
}

// inParts returns a scan of all items, whole or with only what a sweep needs of each. Both
// cost the same.
func inParts(whole bool) dynamodb.ScanInput {
	scan := dynamodb.ScanInput{TotalSegments: aws.Int32(Parts)}
	if !whole {
		scan.ProjectionExpression = aws.String(dynamostore.UserID + ", " + dynamostore.ActivityWindow + ", " + dynamostore.ExpiresAt)
	}
	return scan
}

func (d *DynamoDB) sweepSegment(ctx context.Context, o Sweep, segment *dynamodb.ScanPaginator) (swept Swept, err error) {
	var last lastOwner
	for page, err := range pages(ctx, segment, o.Until) {
		if err != nil {
			return swept, err
		}
		show(page.Items, o.Each)
		var stale []attributes
		for _, item := range page.Items {
			swept.Scanned++
			if key, another := last.next(item); another {
				swept.Subjects.count(key, &swept.Users)
			}
			if expired(item, o.Now) {
				stale = append(stale, item)
			}
		}
		if done, err := d.deleteAll(ctx, stale, o, &swept); err != nil || !done {
			return swept, err
		}
	}
	swept.Finished = !segment.HasMorePages()
	return swept, nil
}

// Erase deletes every item of a user, or of the subject with this key, expired or not. It
// ignores o.Now. With an error it also returns the work done so far.
func (d *DynamoDB) Erase(ctx context.Context, user string, o Sweep) (swept Swept, err error) {
	o.Now = 0
	query := d.queryUser(user)
	query.ProjectionExpression = aws.String(dynamostore.UserID + ", " + dynamostore.ActivityWindow)
	query.Limit = aws.Int32(pageSize)
	items := dynamodb.NewQueryPaginator(d.client, query)
	for page, err := range pages(ctx, items, o.Until) {
		if err != nil {
			return swept, err
		}
		if swept.Scanned == 0 && len(page.Items) > 0 {
			swept.Subjects.count(user, &swept.Users)
		}
		swept.Scanned += int64(len(page.Items))
		if done, err := d.deleteAll(ctx, page.Items, o, &swept); err != nil || !done {
			return swept, err
		}
	}
	swept.Finished = !items.HasMorePages()
	return swept, nil
}

// batchSize is the greatest number of statements in one request to DynamoDB.
const batchSize = 25

// deleteAll deletes stale items and adds them to swept. It needs only the
// items' keys. In a dry run it only counts them. If o.Now is set, it deletes an
// item only if the item is still expired when the delete arrives. After a pause
// it sends throttled items again. It reports whether it finished in time.
func (d *DynamoDB) deleteAll(ctx context.Context, items []attributes, o Sweep, swept *Swept) (done bool, err error) {
	swept.Stale += int64(len(items))
	if o.DryRun {
		return true, nil
	}
	for batch := range slices.Chunk(items, batchSize) {
		pause := retry.Pause{First: 50 * time.Millisecond, Longest: 2 * time.Second}
		for len(batch) > 0 {
			if over(o.Until) {
				return false, nil
			}
			again, err := d.deleteBatch(ctx, batch, o.Now, swept)
			if err != nil {
				return false, err
			}
			if batch = again; len(batch) > 0 {
				if !pause.Wait(ctx) { // ctx ends before the pause
					<-ctx.Done()
					return false, context.Cause(ctx)
				}
			}
		}
	}
	return true, nil
}

// deleteBatch sends one request, and returns the items to send again. The
// request is a batch of PartiQL statements, because a statement can carry a
// condition and a batch write cannot. Each statement succeeds or fails alone.
func (d *DynamoDB) deleteBatch(ctx context.Context, batch []attributes, now int64, swept *Swept) (again []attributes, err error) {
	in := &dynamodb.BatchExecuteStatementInput{}
	for _, item := range batch {
		in.Statements = append(in.Statements, d.deleteStatement(item, now))
	}
	out, err := d.client.BatchExecuteStatement(ctx, in, Patient)
	if err != nil {
		return nil, dynamostore.Classify(err)
	}
	for i, answer := range out.Responses {
		if answer.Error == nil {
			swept.Deleted++
			continue
		}
		switch answer.Error.Code {
		case types.BatchStatementErrorCodeEnumConditionalCheckFailed:
			// An action was counted since the scan, or somebody deleted the item.
		case types.BatchStatementErrorCodeEnumThrottlingError,
			types.BatchStatementErrorCodeEnumProvisionedThroughputExceeded,
			types.BatchStatementErrorCodeEnumRequestLimitExceeded,
			types.BatchStatementErrorCodeEnumTransactionConflict,
			types.BatchStatementErrorCodeEnumInternalServerError:
			again = append(again, batch[i])
		default:
			// DynamoDB's message is left out, because it may name the key.
			return nil, &ratelimit.StoreError{
				Failure: ratelimit.Misconfigured,
				What:    "the table refused to delete items",
				Err:     errors.New("a delete statement failed: " + string(answer.Error.Code)),
			}
		}
	}
	return again, nil
}

// deleteStatement returns the statement that deletes an item if it expired
// before now, or in any case if now is 0.
func (d *DynamoDB) deleteStatement(item attributes, now int64) types.BatchStatementRequest {
	statement := `DELETE FROM "` + d.table + `" WHERE ` + dynamostore.UserID + ` = ? AND ` + dynamostore.ActivityWindow + ` = ?`
	parameters := []types.AttributeValue{item[dynamostore.UserID], item[dynamostore.ActivityWindow]}
	if now != 0 {
		statement += ` AND ` + dynamostore.ExpiresAt + ` < ?`
		parameters = append(parameters, dynamostore.Number(now))
	}
	return types.BatchStatementRequest{Statement: &statement, Parameters: parameters}
}

// Memory sweeps and erases in the embedded store. Its methods finish at once,
// so they ignore o.Until, o.Progress and o.Each, and never fail.
type Memory struct{ Store *memstore.Store }

// Sweep deletes each item that has expired.
func (m Memory) Sweep(_ context.Context, o Sweep) (Swept, error) {
	return m.sweep(o, func(string) bool { return true }), nil
}

// Erase deletes every item of a user or a subject, expired or not. It ignores o.Now.
func (m Memory) Erase(_ context.Context, user string, o Sweep) (Swept, error) {
	o.Now = math.MaxInt64
	return m.sweep(o, func(owner string) bool { return owner == user }), nil
}

// sweep deletes the items of some owners that expire before o.Now.
func (m Memory) sweep(o Sweep, of func(owner string) bool) Swept {
	owners := make(map[string]bool)
	swept := Swept{Finished: true}
	m.Store.DeleteFunc(func(k ratelimit.Key, expires int64) bool {
		if !of(k.UserID) {
			return false
		}
		swept.Scanned++
		if !owners[k.UserID] {
			owners[k.UserID] = true
			swept.Subjects.count(k.UserID, &swept.Users)
		}
		if expires >= o.Now {
			return false
		}
		swept.Stale++
		return !o.DryRun
	})
	if !o.DryRun {
		swept.Deleted = swept.Stale
	}
	return swept
}
