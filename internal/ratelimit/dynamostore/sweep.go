package dynamostore

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdklimit "github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/ratelimit"
)

const (
	segments = 64   // of a sweep; each costs a request, also where it is empty
	workers  = 4    // that sweep at once
	pageSize = 1000 // items held at once by each
)

// Sweep looks through the whole table and deletes each item that has expired,
// and is still expired when the delete arrives. Its memory does not grow with
// the table. It takes the table's segments in random order, so that what one
// sweep has no time for another reaches. The error, if any, comes with what was
// done until then.
func (s *Store) Sweep(ctx context.Context, o ratelimit.Sweep) (ratelimit.Swept, error) {
	var mu sync.Mutex
	total := ratelimit.Swept{Finished: true}
	err := s.eachSegment(ctx, func(ctx context.Context, segment int32) error {
		swept, err := s.sweepSegment(ctx, o, segment)
		mu.Lock()
		defer mu.Unlock()
		total = ratelimit.Swept{
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

// eachSegment runs do on every segment, in random order and several at once. It
// ends at the first error, and returns that.
func (s *Store) eachSegment(ctx context.Context, do func(context.Context, int32) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int32, segments)
	for _, segment := range rand.Perm(segments) {
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

// scan goes through one segment, page by page, until it is over, or page returns
// false or an error. It returns whether that was the whole segment.
func (s *Store) scan(ctx context.Context, segment int32, names []string, over func() bool, page func([]attributes) (bool, error)) (bool, error) {
	in := &dynamodb.ScanInput{
		TableName:            &s.table,
		ProjectionExpression: aws.String(strings.Join(names, ", ")),
		Segment:              aws.Int32(segment),
		TotalSegments:        aws.Int32(segments),
		Limit:                aws.Int32(pageSize),
	}
	for {
		if over() {
			return false, nil
		}
		out, err := s.client.Scan(ctx, in, patient)
		if err != nil {
			return false, classify(err)
		}
		if done, err := page(out.Items); err != nil || !done {
			return false, err
		}
		if out.LastEvaluatedKey == nil {
			return true, nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// sweepSegment goes through one segment.
func (s *Store) sweepSegment(ctx context.Context, o ratelimit.Sweep, segment int32) (swept ratelimit.Swept, err error) {
	var users userCount
	swept.Finished, err = s.scan(ctx, segment, []string{userID, activityWindow, expiresAt}, o.Over, func(items []attributes) (bool, error) {
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
		deleted, done, err := s.deleteAll(ctx, stale, o)
		swept.Deleted += deleted
		return done, err
	})
	swept.Users = users.n
	return swept, err
}

// A userCount counts the users of a segment as their items go by: a user's lie
// together, and in one segment.
type userCount struct {
	n    int64
	last string
}

// add counts an item's user, and says whether it is a new one. The project's
// own keys begin with a space.
func (c *userCount) add(item attributes) bool {
	user := textOf(item[userID])
	if user == c.last || strings.HasPrefix(user, " ") {
		return false
	}
	c.last = user
	c.n++
	return true
}

// expired says whether an item had expired before now, in Unix seconds.
func expired(item attributes, now int64) bool {
	expires, ok := numberOf(item[expiresAt])
	return ok && expires < now
}

// Erase deletes everything that is kept of a user, expired or not: o.Now does
// not count.
func (s *Store) Erase(ctx context.Context, user string, o ratelimit.Sweep) (ratelimit.Swept, error) {
	var swept ratelimit.Swept
	o.Now = 0
	query := &dynamodb.QueryInput{
		TableName:                 &s.table,
		ConsistentRead:            aws.Bool(true),
		KeyConditionExpression:    aws.String(userID + " = :u"),
		ExpressionAttributeValues: attributes{":u": text(user)},
		ProjectionExpression:      aws.String(userID + ", " + activityWindow),
		Limit:                     aws.Int32(pageSize),
	}
	for {
		if o.Over() {
			return swept, nil
		}
		page, err := s.client.Query(ctx, query, patient)
		if err != nil {
			return swept, classify(err)
		}
		swept.Scanned += int64(len(page.Items))
		swept.Stale += int64(len(page.Items))
		if swept.Scanned > 0 {
			swept.Users = 1
		}
		if !o.DryRun {
			deleted, done, err := s.deleteAll(ctx, page.Items, o)
			swept.Deleted += deleted
			if err != nil || !done {
				return swept, err
			}
		}
		if page.LastEvaluatedKey == nil {
			swept.Finished = true
			return swept, nil
		}
		query.ExclusiveStartKey = page.LastEvaluatedKey
	}
}

// patient turns the SDK's retryer on for a request that may be sent twice and
// has minutes.
func patient(o *dynamodb.Options) {
	o.Retryer = retry.NewStandard(func(r *retry.StandardOptions) {
		r.MaxAttempts = 10
		r.MaxBackoff = 2 * time.Second
		r.RateLimiter = sdklimit.None // a throttled table needs patience, not fewer tries
	})
}

type attributes = map[string]types.AttributeValue

func textOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

func numberOf(v types.AttributeValue) (int64, bool) {
	s, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(s.Value, 10, 64)
	return n, err == nil
}
