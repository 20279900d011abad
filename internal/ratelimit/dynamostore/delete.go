package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// batchSize is the most statements that DynamoDB takes in one request.
const batchSize = 25

// deleteAll deletes items, which need only have their keys: those that are
// still expired then or, where o.Now is 0, all. It returns how many it knows to
// have gone, and whether it had time for all.
func (s *Store) deleteAll(ctx context.Context, items []attributes, o ratelimit.Sweep) (deleted int64, done bool, err error) {
	for batch := range slices.Chunk(items, batchSize) {
		for pause := 50 * time.Millisecond; len(batch) > 0; pause = min(2*pause, 2*time.Second) {
			if o.Over() {
				return deleted, false, nil
			}
			n, again, err := s.deleteBatch(ctx, batch, o)
			deleted += n
			if err != nil {
				return deleted, false, err
			}
			if batch = again; len(batch) > 0 {
				select {
				case <-time.After(rand.N(pause)):
				case <-ctx.Done():
					return deleted, false, context.Cause(ctx)
				}
			}
		}
	}
	return deleted, true, nil
}

// deleteBatch sends one request, and returns the items that it has to be sent
// for again. A batch of writes can't carry a condition, statements can; each
// has an error of its own.
func (s *Store) deleteBatch(ctx context.Context, batch []attributes, o ratelimit.Sweep) (deleted int64, again []attributes, err error) {
	in := &dynamodb.BatchExecuteStatementInput{Statements: make([]types.BatchStatementRequest, len(batch))}
	for i, item := range batch {
		in.Statements[i] = s.deleteStatement(item, o)
	}
	out, err := s.client.BatchExecuteStatement(ctx, in, patient)
	if err != nil {
		return 0, nil, classify(err)
	}
	for i, answer := range out.Responses {
		if answer.Error == nil {
			deleted++
			continue
		}
		switch answer.Error.Code {
		case types.BatchStatementErrorCodeEnumConditionalCheckFailed:
			// Counted in since the scan, or gone.
		case types.BatchStatementErrorCodeEnumThrottlingError,
			types.BatchStatementErrorCodeEnumProvisionedThroughputExceeded,
			types.BatchStatementErrorCodeEnumRequestLimitExceeded,
			types.BatchStatementErrorCodeEnumTransactionConflict,
			types.BatchStatementErrorCodeEnumInternalServerError:
			again = append(again, batch[i])
		default:
			// Its message may name the key.
			return deleted, nil, &ratelimit.StoreError{
				Failure: ratelimit.Rejected,
				What:    "the table does not take deletes",
				Err:     fmt.Errorf("a delete statement failed: %w", errors.New(string(answer.Error.Code))),
			}
		}
	}
	return deleted, again, nil
}

func (s *Store) deleteStatement(item attributes, o ratelimit.Sweep) types.BatchStatementRequest {
	statement := `DELETE FROM "` + s.table + `" WHERE ` + userID + ` = ? AND ` + activityWindow + ` = ?`
	parameters := []types.AttributeValue{item[userID], item[activityWindow]}
	if o.Now != 0 {
		statement += ` AND ` + expiresAt + ` < ?`
		parameters = append(parameters, number(o.Now))
	}
	return types.BatchStatementRequest{Statement: &statement, Parameters: parameters}
}
