package command

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
)

// An outage is an HTTP client that takes the place of the network between the
// guards and DynamoDB. Every request fails in the same way. So the guards
// retry, open their circuit breakers and decide from memory as in a real
// outage.
type outage string

const (
	unavailable outage = "unavailable" // nothing listens at the table's address
	throttled   outage = "throttled"   // DynamoDB refuses each request
	slow        outage = "slow"        // no answer comes in the time of a decision
)

// slowest is how long a request waits in the outage slow. It is longer than any
// DECISION_TIMEOUT.
const slowest = 10 * time.Second

// open returns the store of a table that fails. It needs no table, no region
// and no credentials.
func (o outage) open(name string) store {
	cfg := aws.Config{Region: "us-east-1", Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "none", SecretAccessKey: "none"}, nil
	})}
	return storeOf(dynamostore.New(cfg, name, func(options *dynamodb.Options) {
		options.BaseEndpoint = aws.String("http://outage.invalid")
		options.HTTPClient = o
	}))
}

// Do implements the SDK's HTTP client.
func (o outage) Do(r *http.Request) (*http.Response, error) {
	switch o {
	case throttled:
		const answer = `{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException","message":"guards serve --fail throttled"}`
		return &http.Response{
			Status: "400 Bad Request", StatusCode: http.StatusBadRequest, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header:        http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amzn-Requestid": {"none"}},
			Body:          io.NopCloser(strings.NewReader(answer)),
			ContentLength: int64(len(answer)), Request: r,
		}, nil
	case slow:
		select {
		case <-r.Context().Done():
			return nil, r.Context().Err()
		case <-time.After(slowest):
			return nil, fmt.Errorf("no answer in %s", wait(slowest))
		}
	default:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
}
