package dynamohttp

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// longestAnswer bounds the memory for an answer. An item has at most 400 KB,
// which base64 makes a third longer.
const longestAnswer = 1 << 20

// read reads the whole body.
func read(r *http.Response) ([]byte, error) {
	if r.ContentLength > longestAnswer {
		return nil, fmt.Errorf("the answer has %d bytes, want at most %d", r.ContentLength, longestAnswer)
	}
	if r.ContentLength <= 0 {
		return io.ReadAll(io.LimitReader(r.Body, longestAnswer))
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
		if err := json.Unmarshal(body, &e, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
			return wrap(r, &smithy.DeserializationError{Err: err, Snapshot: body[:min(len(body), 1024)]})
		}
	}
	return wrap(r, &smithy.GenericAPIError{
		Code:    errorCode(cmp.Or(r.Header.Get("X-Amzn-ErrorType"), e.Type, e.Code)),
		Message: e.Message,
	})
}

// wrap adds the answer to its error, with the id of the request that AWS's support
// asks for.
func wrap(r *http.Response, err error) error {
	return &awshttp.ResponseError{
		ResponseError: &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: r}, Err: err},
		RequestID:     r.Header.Get("X-Amzn-Requestid"),
	}
}

// errorCode returns the name of an error without its namespace and its address. For
// example, com.amazonaws.dynamodb.v20120810#ThrottlingException is
// ThrottlingException.
func errorCode(name string) string {
	name, _, _ = strings.Cut(name, ":")
	if _, after, found := strings.Cut(name, "#"); found {
		name = after
	}
	return cmp.Or(name, "UnknownError")
}

// longestRoundTrip is the longest time between a request and its answer in which
// noteSkew still trusts the answer's date.
const longestRoundTrip = 15 * time.Minute

// wrongClock is how far off a clock must have been for another attempt. It is the
// SDK's bound, a minute less than DynamoDB's.
const wrongClock = 4 * time.Minute

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
// SDK does, also by that of an error. DynamoDB refuses a signature that is more
// than 5 minutes off. The next request is signed with the corrected time.
func (c *Client) noteSkew(header http.Header, sent, received time.Time) {
	if c.options.DisableClockSkewCorrection || header.Get("Age") != "" || received.Sub(sent) > longestRoundTrip {
		return
	}
	date, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return
	}
	middle := sent.Add(received.Sub(sent) / 2)
	c.skew.Store(int64(date.Sub(middle)))
}
