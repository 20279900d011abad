package client

import (
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

// maxBytes is how much of a response a client reads. A guard's answer has at most a few
// KiB.
const maxBytes = 64 << 10

// spoken holds each address, such as http://127.0.0.1:3001, that has answered this
// process in HTTP. An answer in another language is a wrong address before that, and an
// outage afterwards.
var spoken sync.Map

// A sender sends requests by an HTTP client. It follows no redirect: another address
// must not get the user's id, and could be any server.
type sender struct {
	client  lambda.HTTPClient
	reached *atomic.Bool // becomes true with the first response
}

// newSender returns a sender that shares the connections of an HTTP client.
func newSender(client lambda.HTTPClient, reached *atomic.Bool) sender {
	if own, ok := client.(*http.Client); ok {
		still := *own
		still.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		return sender{&still, reached}
	}
	return sender{client, reached}
}

// A sendError is a request that got no response.
type sendError struct {
	error
	spoken bool // whether the address has answered before
	proxy  bool // whether a connection was made that did not lead to the address
}

func (e *sendError) Unwrap() error { return e.error }

var errRedirected = errors.New("the request was redirected to another address")

// Do implements [lambda.HTTPClient]. It returns at most maxBytes of a body, and then an
// *http.MaxBytesError.
func (s sender) Do(request *http.Request) (*http.Response, error) {
	var dialed, connected atomic.Bool
	ctx := httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{
		ConnectDone: func(_, _ string, err error) {
			if err == nil {
				dialed.Store(true)
			}
		},
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	address := request.URL.Scheme + "://" + request.URL.Host
	request = request.WithContext(ctx)
	request.GetBody = nil // without it, no client of net/http sends the body to another URL
	response, err := s.client.Do(request)
	switch {
	case err != nil:
		_, before := spoken.Load(address)
		return nil, &sendError{err, before, dialed.Load() && !connected.Load()}
	case response.Request != nil && response.Request.Response != nil: // it follows a redirect
		_ = response.Body.Close()
		return nil, errRedirected
	}
	spoken.Store(address, true)
	s.reached.Store(true)
	response.Body = http.MaxBytesReader(nil, response.Body, maxBytes)
	return response, nil
}
