// Package dynamohttp sends single requests to DynamoDB with less work than the
// SDK's client. The caller writes and reads the JSON of a request and of its
// answer. The package adds what the SDK's client adds around them: the endpoint,
// the credentials, the signature and the correction of a wrong clock.
//
// For example, this reads an item:
//
//	c := dynamohttp.New(dynamodb.NewFromConfig(cfg))
//	answer, err := c.Do(ctx, "GetItem", "rateLimit", []byte(`{"TableName": ...}`))
//
// The SDK's client passes each request through 30 middleware steps, and it makes
// a generic map of each item. This client makes one HTTP request, and a second
// one only if a wrong clock spoiled the signature of the first. It has no other
// retries, no tracing, no metrics and no log, and it discovers no endpoints.
package dynamohttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// A Client sends requests. It is safe for concurrent use.
type Client struct {
	stock    *dynamodb.Client
	options  dynamodb.Options // of stock
	endpoint atomic.Pointer[endpoint]
	key      atomic.Pointer[signingKey]
	skew     atomic.Int64 // how far DynamoDB's clock is ahead of this one, in ns
}

// New returns a client with the settings of c: region, endpoint, credentials,
// HTTP client, and the correction of clocks. It sends no requests.
func New(c *dynamodb.Client) *Client {
	return &Client{stock: c, options: c.Options()}
}

// Do sends body as one request of an operation, such as UpdateItem, and returns
// the body of the answer. Body is not empty. Table is the name or the ARN of the
// table that body names.
//
// Do returns errors of the same types as the SDK's client:
//
//	*smithyhttp.RequestSendError   no answer, or ctx ended; the request may have been applied
//	*smithy.DeserializationError   an answer that ended early; the request may have been applied
//	*smithyhttp.ResponseError      an answer that is an error. It contains a
//	                               smithy.APIError with the code. Do then also
//	                               returns the body.
//	*NotSentError                  nothing was sent, because credentials, region
//	                               or endpoint are missing
//
// DynamoDB refuses the signature of a request if this machine's clock is wrong,
// and its answer has the right time. Do then sends the request again, once.
func (c *Client) Do(ctx context.Context, operation, table string, body []byte) ([]byte, error) {
	before := c.skew.Load()
	answer, err := c.send(ctx, operation, table, body)
	if corrected := time.Duration(c.skew.Load() - before).Abs(); corrected > wrongClock && refusesSignature(err) {
		return c.send(ctx, operation, table, body)
	}
	return answer, err
}

// send sends one request.
func (c *Client) send(ctx context.Context, operation, table string, body []byte) ([]byte, error) {
	request, err := c.request(ctx, operation, table, body)
	if err != nil && ctx.Err() != nil { // there was no time for credentials
		return nil, unanswered(ctx, operation, err)
	}
	if err != nil {
		return nil, &NotSentError{fmt.Errorf("DynamoDB %s: %w", operation, err)}
	}
	sent := time.Now()
	response, err := c.options.HTTPClient.Do(request)
	if err != nil {
		return nil, unanswered(ctx, operation, err)
	}
	defer func() { _ = response.Body.Close() }() // read has the error already
	c.noteSkew(response.Header, sent, time.Now())
	answer, err := read(response)
	if err != nil {
		return nil, wrap(response, &smithy.DeserializationError{Err: fmt.Errorf("DynamoDB %s: %w", operation, err)})
	}
	if response.StatusCode < 200 || response.StatusCode >= 300 {
		return answer, apiError(response, answer)
	}
	return answer, nil
}

// A NotSentError means that there was no request. Its cause may be an answer of
// another service, which refused credentials, so it has no Unwrap.
type NotSentError struct{ cause error }

// Error implements error.
func (e *NotSentError) Error() string { return e.cause.Error() }

// unanswered returns the error of a request without an answer. As in the SDK, it
// shows if the caller's context ended.
func unanswered(ctx context.Context, operation string, err error) error {
	err = &smithyhttp.RequestSendError{Err: fmt.Errorf("DynamoDB %s: %w", operation, err)}
	if ctx.Err() != nil {
		return &aws.RequestCanceledError{Err: err}
	}
	return err
}

// request returns the signed request.
func (c *Client) request(ctx context.Context, operation, table string, body []byte) (*http.Request, error) {
	if c.options.Credentials == nil {
		return nil, errors.New("there are no credentials")
	}
	credentials, err := c.options.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	to, err := c.resolve(ctx, table, credentials)
	if err != nil {
		return nil, err
	}
	url := to.url // a copy, because HTTP clients can change it
	request := &http.Request{
		Method: http.MethodPost, URL: &url, Host: to.host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{
			"Accept-Encoding": {"identity"},
			"Content-Type":    {"application/x-amz-json-1.0"},
			"User-Agent":      {userAgent},
			"X-Amz-Target":    {"DynamoDB_20120810." + operation},
		},
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
	}
	c.sign(request.Header, body, credentials, to, time.Now().Add(time.Duration(c.skew.Load())))
	return request.WithContext(ctx), nil
}

const userAgent = "guards"
