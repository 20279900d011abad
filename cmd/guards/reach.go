package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// firstWait is how long a command waits for an address that has not answered
// yet. People notice a mistyped address within 3 s.
const firstWait = 2500 * time.Millisecond

// A reacher is the HTTP client of a command. Until the address has answered
// once, a failed request is an *unreached error, which the SDK does not retry.
// After that, the SDK retries as usual.
type reacher struct {
	client   aws.HTTPClient
	wait     time.Duration // how long the first answer may take; 0: as long as the request's context allows
	answered atomic.Bool
}

// Do implements the SDK's HTTP client.
func (c *reacher) Do(r *http.Request) (*http.Response, error) {
	if c.answered.Load() {
		return c.client.Do(r)
	}
	ctx, cancel := context.WithCancel(r.Context())
	if c.wait > 0 {
		defer time.AfterFunc(c.wait, cancel).Stop()
	}
	response, err := c.client.Do(r.WithContext(ctx))
	switch {
	case err == nil:
		c.answered.Store(true)
		response.Body = body{response.Body, cancel}
		return response, nil
	case r.Context().Err() == nil && ctx.Err() != nil:
		err = fmt.Errorf("no answer in %s", wait(c.wait))
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
