package table

import (
	"strconv"
	"strings"
	"time"

	sdklimit "github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The attributes that this package uses. Package dynamostore writes them.
const (
	userID         = "userId"
	activityWindow = "activityWindow"
	expiresAt      = "expiresAt" // Unix seconds
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

// Patient is an option for one request. It turns the SDK's retryer on, for a
// request that may safely be sent twice and may take minutes.
func Patient(o *dynamodb.Options) {
	o.Retryer = retry.NewStandard(func(r *retry.StandardOptions) {
		r.MaxAttempts = 10
		r.MaxBackoff = 2 * time.Second
		r.RateLimiter = sdklimit.None // a throttled table needs patience, not fewer attempts
	})
}

// attributes are an item, or a part of one.
type attributes = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// textOf returns the value of a string attribute, or "" if v is not a string.
func textOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// numberOf returns the value of a number attribute. It returns false if v is
// not a whole number.
func numberOf(v types.AttributeValue) (int64, bool) {
	s, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(s.Value, 10, 64)
	return n, err == nil
}

// expired reports whether an item expired before now, in Unix seconds.
func expired(item attributes, now int64) bool {
	expires, ok := numberOf(item[expiresAt])
	return ok && expires < now
}

// ours reports whether an item belongs to this project and not to a user. Such
// keys begin with a space, which no user id contains.
func ours(item attributes) bool {
	return strings.HasPrefix(textOf(item[userID]), " ")
}
