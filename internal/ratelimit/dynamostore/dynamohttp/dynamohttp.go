// Package dynamohttp sends single requests to DynamoDB with less work than the
// SDK's client. The caller writes and reads the JSON of a request and of its
// answer. The package adds what the SDK's client adds around them: the endpoint,
// the credentials, the signature and the correction of a wrong clock.
//
// The SDK's client passes each request through 30 middleware steps, and it makes
// a generic map of each item. This client makes one HTTP request, and a second
// one only if a wrong clock spoiled the signature of the first. It has no other
// retries, no tracing, no metrics and no log, and it discovers no endpoints.
package dynamohttp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/cric-talk/guards/internal/strictjson"
)

// A Client sends requests. It is safe for concurrent use.
type Client struct {
	*settings

	http aws.HTTPClient
}

// settings are what the clients of one table share.
type settings struct {
	stock    *dynamodb.Client
	options  dynamodb.Options // of stock
	endpoint atomic.Pointer[endpoint]
	key      atomic.Pointer[signingKey]
	skew     atomic.Int64 // how far DynamoDB's clock is ahead of this one, in ns
}

// New returns a client with the settings of c: region, endpoint, credentials,
// HTTP client, and the correction of clocks. It sends no requests.
func New(c *dynamodb.Client) *Client {
	s := &settings{stock: c, options: c.Options()}
	return &Client{s, s.options.HTTPClient}
}

// WithOwnConnections returns a client with the same settings that shares no connection with
// c. It returns false if the HTTP client of c is neither the SDK's nor an [http.Client] with
// an [http.Transport].
func (c *Client) WithOwnConnections() (*Client, bool) {
	var transport *http.Transport
	switch h := c.http.(type) {
	case *awshttp.BuildableClient:
		transport = h.GetTransport()
	case *http.Client:
		if t, ok := h.Transport.(*http.Transport); ok {
			transport = t.Clone()
		}
	}
	if transport == nil {
		return nil, false
	}
	noRedirects := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{c.settings, &http.Client{Transport: transport, CheckRedirect: noRedirects}}, true
}

// CloseIdleConnections closes the connections that wait for a request, so the next one opens
// a new connection.
func (c *Client) CloseIdleConnections() {
	if h, ok := c.http.(*http.Client); ok {
		h.CloseIdleConnections()
	}
}

// Do sends body as one request of an operation, such as UpdateItem, and returns the
// answer's body. Body is not empty. Table is the name or the ARN of the table in body.
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
	response, err := c.http.Do(request)
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
			"User-Agent":      {"guards"},
			"X-Amz-Target":    {"DynamoDB_20120810." + operation},
		},
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
	}
	c.sign(request.Header, body, credentials, to, time.Now().Add(time.Duration(c.skew.Load())))
	return request.WithContext(ctx), nil
}

// maxAnswer bounds the memory for an answer. An item has at most 400 KB,
// which base64 makes a third longer.
const maxAnswer = 1 << 20

// read reads the whole body.
func read(r *http.Response) ([]byte, error) {
	if r.ContentLength > maxAnswer {
		return nil, fmt.Errorf("the answer has %d bytes, want at most %d", r.ContentLength, maxAnswer)
	}
	if r.ContentLength <= 0 {
		return io.ReadAll(io.LimitReader(r.Body, maxAnswer))
	}
	body := make([]byte, r.ContentLength)
	_, err := io.ReadFull(r.Body, body)
	return body, err
}

// apiError returns the error in an answer that is not a success. An answer that
// is not JSON comes from a proxy and not from DynamoDB.
func apiError(r *http.Response, body []byte) error {
	var e struct {
		Type    string `json:"__type"`
		Code    string `json:"code"`
		Message string `json:"message,case:ignore"`
	}
	if len(body) > 0 {
		if err := strictjson.Unmarshal(body, &e, strictjson.RepeatedNames, strictjson.AnyBytes); err != nil {
			return wrap(r, &smithy.DeserializationError{Err: err, Snapshot: body[:min(len(body), 1024)]})
		}
	}
	return wrap(r, &smithy.GenericAPIError{
		Code:    errorCode(cmp.Or(r.Header.Get("X-Amzn-ErrorType"), e.Type, e.Code)),
		Message: e.Message,
	})
}

// wrap adds the answer to its error, with the id that AWS's support asks for.
func wrap(r *http.Response, err error) error {
	return &awshttp.ResponseError{
		ResponseError: &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: r}, Err: err},
		RequestID:     r.Header.Get("X-Amzn-Requestid"),
	}
}

// errorCode returns the name of an error without its namespace and its address:
// ThrottlingException for com.amazonaws.dynamodb.v20120810#ThrottlingException.
func errorCode(name string) string {
	name, _, _ = strings.Cut(name, ":")
	return cmp.Or(name[strings.Index(name, "#")+1:], "UnknownError")
}

const (
	maxRoundTrip = 15 * time.Minute // noteSkew does not trust the date of an answer that took longer
	wrongClock   = 4 * time.Minute  // how far off a clock must be for another attempt: the SDK's bound, a minute less than DynamoDB's
)

// refusesSignature reports whether an answer refuses the signature of a request,
// which the server then did not apply. These are the SDK's codes. Each of them can
// have other causes, too.
func refusesSignature(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && slices.Contains([]string{
		"InvalidSignatureException", "SignatureDoesNotMatch", "AuthFailure", "RequestTimeTooSkewed", "AccessDeniedException",
	}, api.ErrorCode())
}

// noteSkew notes how far DynamoDB's clock is ahead, by the answer's date, as the
// SDK does. An error's date counts, too. DynamoDB refuses a signature that is
// more than 5 minutes off. The next request is signed with the corrected time.
func (c *Client) noteSkew(header http.Header, sent, received time.Time) {
	if c.options.DisableClockSkewCorrection || header.Get("Age") != "" || received.Sub(sent) > maxRoundTrip {
		return
	}
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		c.skew.Store(int64(date.Sub(sent.Add(received.Sub(sent) / 2))))
	}
}
