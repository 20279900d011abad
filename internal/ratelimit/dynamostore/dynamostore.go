// Package dynamostore keeps a limiter's items in DynamoDB. Each write is one
// UpdateItem request, whose condition is the guard of the update. For example,
// the request r1 counts one action of 10/1m (shortened):
//
//	Key                  userId u1, activityWindow create_post#28333333
//	ConditionExpression  NOT contains(ids, r1) AND activityCount <= 9
//	UpdateExpression     SET expiresAt = 1700000160 ADD activityCount 1, ids r1
//
// If the condition fails, DynamoDB returns the item in the same answer, so the
// limiter can plan again without a read.
//
// An item has its keys userId and activityWindow, the integers of the policy's
// state, and expiresAt (Unix seconds), which is the table's TTL attribute. A
// window's item also has activity, windowKey and createdAt (Unix milliseconds).
//
// Request ids are kept in the binary sets ids and i00 to i36 (see
// [ratelimit.Write.LookIn]). An element is an id of 6 bytes, or an id followed by
// a note of 8 bytes. The ids of an earlier version had 8 bytes. They are ignored.
package dynamostore

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore/dynamohttp"
)

// The attributes that each kind of item in the table has.
const (
	UserID         = "userId"         // the partition key
	ActivityWindow = "activityWindow" // the sort key
	ExpiresAt      = "expiresAt"      // Unix seconds; none: the item never expires
)

// The store's own attributes of a window's item. No policy uses them.
const (
	activity  = "activity"
	windowKey = "windowKey"
	createdAt = "createdAt"
)

// A Store keeps items in one table. It is safe for concurrent use.
type Store struct {
	client *dynamodb.Client   // for operators, and for what is not a decision
	http   *dynamohttp.Client // for decisions
	beside *Store             // the same with connections of its own; nil: it has none
	table  string
}

// New returns a Store for an existing table. It sends no requests.
//
// New turns the SDK's retryer off, whatever cfg, the environment or the options
// set. That retryer would send an update of unknown outcome again as if it were
// new. The limiter retries instead.
func New(cfg aws.Config, table string, options ...func(*dynamodb.Options)) *Store {
	client := dynamodb.NewFromConfig(cfg, append(options, func(o *dynamodb.Options) {
		o.Retryer = aws.NopRetryer{}
		o.RetryMaxAttempts = 0
		// DynamoDB Local sends a wrong checksum with each failed condition. TLS
		// protects the bytes already.
		o.DisableValidateResponseChecksum = true
	})...)
	s := &Store{client: client, http: dynamohttp.New(client), table: table}
	if http, ok := s.http.WithOwnConnections(); ok {
		s.beside = &Store{client: client, http: http, table: table}
	}
	return s
}

// Redial implements [ratelimit.Redialer]. It needs the SDK's HTTP client, or an
// [http.Client] with an [http.Transport]. Otherwise it returns s.
func (s *Store) Redial() ratelimit.Store {
	if s.beside == nil {
		return s
	}
	s.beside.http.CloseIdleConnections()
	return s.beside
}

// Update implements [ratelimit.Store] with one UpdateItem.
func (s *Store) Update(ctx context.Context, w ratelimit.Write) (ratelimit.Item, bool, error) {
	answer, err := s.http.Do(ctx, "UpdateItem", s.table, updateBody(s.table, w))
	if err != nil && !isFailedCondition(err) {
		return ratelimit.Item{}, false, Classify(err)
	}
	done := err == nil
	item, found, err := readItem(answer)
	if err == nil && done && !found {
		err = &smithy.DeserializationError{Err: errors.New("the answer to an update has no item")}
	}
	return item, done && err == nil, Classify(err)
}

// Read implements [ratelimit.Store] with one consistent GetItem.
func (s *Store) Read(ctx context.Context, k ratelimit.Key) (ratelimit.Item, error) {
	answer, err := s.http.Do(ctx, "GetItem", s.table, readBody(s.table, k))
	if err != nil {
		return ratelimit.Item{}, Classify(err)
	}
	item, _, err := readItem(answer)
	return item, Classify(err)
}

// Delete implements [ratelimit.Store] with one DeleteItem.
func (s *Store) Delete(ctx context.Context, k ratelimit.Key) error {
	_, err := s.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &s.table, Key: key(k)})
	return Classify(err)
}

func key(k ratelimit.Key) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{UserID: Text(k.UserID), ActivityWindow: Text(sortKey(k))}
}

// sortKey returns the sort key of an item, such as create_post#28953450.
func sortKey(k ratelimit.Key) string {
	if k.Window == 0 {
		return k.Activity
	}
	return k.Activity + "#" + strconv.FormatInt(k.Window, 10)
}

// Table returns the client and the name of the table, for other packages that
// work on the same table. The client does not retry.
func (s *Store) Table() (client *dynamodb.Client, name string) { return s.client, s.table }

// Parse reads an item of the table and its key.
func Parse(attributes map[string]types.AttributeValue) (ratelimit.Key, ratelimit.Item) {
	var k ratelimit.Key
	k.UserID = TextOf(attributes[UserID])
	name, window, _ := strings.Cut(TextOf(attributes[ActivityWindow]), "#")
	k.Activity = name
	k.Window, _ = strconv.ParseInt(window, 10, 64) // 0 if the item serves forever
	return k, parse(attributes)
}

// Text returns a string attribute.
func Text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// Number returns a number attribute.
func Number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// TextOf returns the value of a string attribute, or "" if v is not a string.
func TextOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// NumberOf returns the value of a number attribute; false if it is no whole number.
func NumberOf(v types.AttributeValue) (int64, bool) {
	s, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(s.Value, 10, 64)
	return n, err == nil
}

// Classify turns an error of the SDK into a [ratelimit.StoreError], whose
// Failure shows whether the request may have been applied. Nil stays nil.
func Classify(err error) error {
	if err == nil {
		return nil
	}
	failure, what := class(err)
	return &ratelimit.StoreError{Failure: failure, What: what, Err: err}
}

// class returns the class of an error and a sentence for callers.
func class(err error) (ratelimit.Failure, string) {
	if !sent(err) {
		return ratelimit.Misconfigured, "the table could not be reached: the AWS settings (credentials, region or endpoint) are incomplete"
	}
	answer, answered := errors.AsType[*smithyhttp.ResponseError](err)
	api, readable := errors.AsType[smithy.APIError](err)
	if !answered || !readable {
		return ratelimit.Unknown, "the table did not answer in time"
	}
	if _, ok := retry.DefaultThrottleErrorCodes[api.ErrorCode()]; ok {
		return ratelimit.NotApplied, "the table is throttled"
	}
	if answer.HTTPStatusCode() >= 500 {
		return ratelimit.Unknown, "the table failed"
	}
	switch api.ErrorCode() {
	case "ReplicatedWriteConflictException":
		return ratelimit.NotApplied, "the table was written in another region at the same time"
	case "ValidationException":
		if strings.Contains(api.ErrorMessage(), "incorrect data type") {
			return ratelimit.Unreadable, "an attribute of the item has the wrong type"
		}
	case "ResourceNotFoundException":
		return ratelimit.Misconfigured, "the table does not exist"
	case "AccessDeniedException", "UnrecognizedClientException", "ExpiredTokenException",
		"InvalidSignatureException", "MissingAuthenticationToken", "MissingAuthenticationTokenException":
		return ratelimit.Misconfigured, "access to the table is denied"
	}
	return ratelimit.Invalid, "the table refused the request"
}

// sent reports whether the request may have left this process. Without
// credentials, a region or a valid endpoint, the SDK sends nothing.
func sent(err error) bool {
	if _, ok := errors.AsType[*dynamohttp.NotSentError](err); ok {
		return false
	}
	_, began := errors.AsType[*smithyhttp.RequestSendError](err)
	_, answered := errors.AsType[*smithyhttp.ResponseError](err)
	_, network := errors.AsType[net.Error](err)
	_, unread := errors.AsType[*smithy.DeserializationError](err)
	return began || answered || network || unread || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// isFailedCondition reports whether the condition of an update failed.
func isFailedCondition(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && api.ErrorCode() == "ConditionalCheckFailedException"
}
