package table

import (
	"strings"
	"time"

	sdklimit "github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
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

// expired reports whether an item expired before now, in Unix seconds.
func expired(item attributes, now int64) bool {
	expires, ok := dynamostore.NumberOf(item[expiresAt])
	return ok && expires < now
}

// ours reports whether an item belongs to this project and not to a user. Such
// keys begin with a space, which no user id contains.
func ours(item attributes) bool {
	return strings.HasPrefix(dynamostore.TextOf(item[userID]), " ")
}
