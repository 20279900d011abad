package dynamostore_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/cric-talk/guards/internal/ratelimit"
	. "github.com/cric-talk/guards/internal/ratelimit/dynamostore"
)

// answered returns the error of a response with the status and the code.
func answered(status int, code, message string) error {
	return &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}},
		Err:      &smithy.GenericAPIError{Code: code, Message: message},
	}
}

func TestClassify(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want ratelimit.Failure
		what string // what it says; empty: anything
	}{
		"throughput exceeded":         {answered(400, "ProvisionedThroughputExceededException", ""), ratelimit.NotApplied, "the table is throttled"},
		"throttling":                  {answered(400, "ThrottlingException", ""), ratelimit.NotApplied, ""},
		"request limit":               {answered(400, "RequestLimitExceeded", ""), ratelimit.NotApplied, ""},
		"conflict of two regions":     {answered(400, "ReplicatedWriteConflictException", ""), ratelimit.NotApplied, ""},
		"internal error":              {answered(500, "InternalServerError", ""), ratelimit.Unknown, "the table failed"},
		"service unavailable":         {answered(503, "ServiceUnavailable", ""), ratelimit.Unknown, ""},
		"connection lost":             {&smithyhttp.RequestSendError{Err: io.ErrUnexpectedEOF}, ratelimit.Unknown, "the table did not answer in time"},
		"timeout":                     {context.DeadlineExceeded, ratelimit.Unknown, "the table did not answer in time"},
		"canceled":                    {context.Canceled, ratelimit.Unknown, ""},
		"unreadable body":             {&smithy.DeserializationError{Err: io.ErrUnexpectedEOF}, ratelimit.Unknown, ""},
		"wrong type of an attribute":  {answered(400, "ValidationException", "An operand in the update expression has an incorrect data type"), ratelimit.Unreadable, ""},
		"another fault of validation": {answered(400, "ValidationException", "Item size has exceeded the maximum"), ratelimit.Invalid, ""},
		"no table":                    {answered(400, "ResourceNotFoundException", ""), ratelimit.Misconfigured, "the table does not exist"},
		"no access":                   {answered(400, "AccessDeniedException", ""), ratelimit.Misconfigured, "access to the table is denied"},
		"expired credentials":         {answered(400, "ExpiredTokenException", ""), ratelimit.Misconfigured, "access to the table is denied"},
		"no credentials":              {errors.New("no credentials anywhere"), ratelimit.Misconfigured, ""},
	} {
		e, ok := errors.AsType[*ratelimit.StoreError](Classify(tt.err))
		if !ok || e.Failure != tt.want || e.What == "" || tt.what != "" && e.What != tt.what || !errors.Is(e, tt.err) {
			t.Errorf("%s: Classify = %+v, want class %d with its cause, and %q", name, e, tt.want, tt.what)
		}
	}
	if err := Classify(nil); err != nil {
		t.Errorf("Classify(nil) = %v, want nil", err)
	}
}
