package table

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/retry"
)

// batchSize is the greatest number of statements in one request to DynamoDB.
const batchSize = 25

// deleteAll deletes items, of which it needs only the keys. If o.Now is set, it
// deletes an item only if the item is still expired when the delete arrives.
// After a pause it sends throttled items again. It returns how many items are
// known to be deleted, and whether it got through all items in time.
func (d *DynamoDB) deleteAll(ctx context.Context, items []attributes, o Sweep) (deleted int64, done bool, err error) {
	for batch := range slices.Chunk(items, batchSize) {
		pause := retry.Pause{First: 50 * time.Millisecond, Longest: 2 * time.Second}
		for len(batch) > 0 {
			if o.Over() {
				return deleted, false, nil
			}
			n, again, err := d.deleteBatch(ctx, batch, o)
			deleted += n
			if err != nil {
				return deleted, false, err
			}
			if batch = again; len(batch) > 0 {
				pause.Wait(ctx)
				if ctx.Err() != nil {
					return deleted, false, context.Cause(ctx)
				}
			}
		}
	}
	return deleted, true, nil
}

// deleteBatch sends one request, and returns the items to send again. The
// request is a batch of PartiQL statements, because a statement can carry a
// condition and a batch write cannot. Each statement succeeds or fails alone.
func (d *DynamoDB) deleteBatch(ctx context.Context, batch []attributes, o Sweep) (deleted int64, again []attributes, err error) {
	in := &dynamodb.BatchExecuteStatementInput{Statements: make([]types.BatchStatementRequest, len(batch))}
	for i, item := range batch {
		in.Statements[i] = d.deleteStatement(item, o)
	}
	out, err := d.client.BatchExecuteStatement(ctx, in, Patient)
	if err != nil {
		return 0, nil, dynamostore.Classify(err)
	}
	for i, answer := range out.Responses {
		if answer.Error == nil {
			deleted++
			continue
		}
		switch answer.Error.Code {
		case types.BatchStatementErrorCodeEnumConditionalCheckFailed:
			// Since the scan, an action was counted in the item, or somebody
			// deleted it.
		case types.BatchStatementErrorCodeEnumThrottlingError,
			types.BatchStatementErrorCodeEnumProvisionedThroughputExceeded,
			types.BatchStatementErrorCodeEnumRequestLimitExceeded,
			types.BatchStatementErrorCodeEnumTransactionConflict,
			types.BatchStatementErrorCodeEnumInternalServerError:
			again = append(again, batch[i])
		default:
			// DynamoDB's message is left out, because it may name the key.
			return deleted, nil, &ratelimit.StoreError{
				Failure: ratelimit.Misconfigured,
				What:    "the table refused to delete items",
				Err:     fmt.Errorf("a delete statement failed: %w", errors.New(string(answer.Error.Code))),
			}
		}
	}
	return deleted, again, nil
}

func (d *DynamoDB) deleteStatement(item attributes, o Sweep) types.BatchStatementRequest {
	statement := `DELETE FROM "` + d.table + `" WHERE ` + userID + ` = ? AND ` + activityWindow + ` = ?`
	parameters := []types.AttributeValue{item[userID], item[activityWindow]}
	if o.Now != 0 {
		statement += ` AND ` + expiresAt + ` < ?`
		parameters = append(parameters, dynamostore.Number(o.Now))
	}
	return types.BatchStatementRequest{Statement: &statement, Parameters: parameters}
}
