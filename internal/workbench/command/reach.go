package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// How long a command waits for an address that has not answered yet. People
// notice a mistyped address within 3 s. A server that accepts the connection
// exists, so it may take longer to answer when it is busy.
const (
	connectWait = 2500 * time.Millisecond
	answerWait  = 10 * time.Second
)

// A reacher is the HTTP client of a command. Until the address has answered
// once, a failed request is an *unreached error, which the SDK does not retry.
// After that, the SDK retries as usual.
type reacher struct {
	client   aws.HTTPClient
	answer   time.Duration // how long the first answer may take on a connection; 0: as long as the request's context allows
	dynamo   bool          // the first answer must be DynamoDB's
	answered atomic.Bool
}

// Do implements the SDK's HTTP client.
func (c *reacher) Do(r *http.Request) (*http.Response, error) {
	if c.answered.Load() {
		return c.client.Do(r)
	}
	ctx, cancel := context.WithCancel(r.Context())
	silent := "no connection in " + wait(connectWait)
	deadline := time.AfterFunc(connectWait, cancel)
	defer deadline.Stop()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		deadline.Stop()
		if c.answer > 0 {
			silent = "no answer in " + wait(c.answer)
			deadline.Reset(c.answer)
		}
	}})
	response, err := c.client.Do(r.WithContext(ctx))
	if err == nil && c.dynamo && !fromDynamoDB(response.Header) {
		err = fmt.Errorf("what answers there is not DynamoDB: %s", response.Status)
		_ = response.Body.Close()
	}
	switch {
	case err == nil:
		c.answered.Store(true)
		response.Body = body{response.Body, cancel}
		return response, nil
	case r.Context().Err() == nil && ctx.Err() != nil:
		err = errors.New(silent)
	}
	cancel()
	if u, ok := errors.AsType[*url.Error](err); ok { // it repeats the address
		err = u.Err
	}
	if r.Context().Err() != nil { // the caller stopped waiting
		return nil, err
	}
	return nil, &unreached{r.URL.Scheme + "://" + r.URL.Host, err}
}

// fromDynamoDB reports whether an answer can be DynamoDB's or an emulator's.
// Another server would look like an empty or a broken table.
func fromDynamoDB(h http.Header) bool {
	return h.Get("X-Amzn-Requestid") != "" || strings.HasPrefix(h.Get("Content-Type"), "application/x-amz-json")
}

// A body ends the context of its request when it is closed.
type body struct {
	io.ReadCloser
	end context.CancelFunc
}

// Close implements io.Closer.
func (b body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// An unreached error means that nothing answered at an address.
type unreached struct {
	address string
	cause   error
}

// Error implements error.
func (e *unreached) Error() string {
	return fmt.Sprintf("%s can't be reached: %v", e.address, e.cause)
}

// Unwrap returns the cause.
func (e *unreached) Unwrap() error { return e.cause }

// RetryableError tells the SDK not to send the request again.
func (e *unreached) RetryableError() bool { return false }
