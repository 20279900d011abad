package dynamostore

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore/dynamohttp"
)

// Classify turns an error of the SDK into a [ratelimit.StoreError], whose
// Failure shows whether the request may have been applied. Nil stays nil.
func Classify(err error) error {
	if err == nil {
		return nil
	}
	e := &ratelimit.StoreError{Err: err}
	e.Failure, e.What = class(err)
	return e
}

// class returns the class of an error and a sentence for callers.
func class(err error) (ratelimit.Failure, string) {
	if !sent(err) {
		return ratelimit.Misconfigured, "the table could not be reached: the AWS settings (credentials, region or endpoint) are incomplete"
	}
	answer, answered := errors.AsType[*smithyhttp.ResponseError](err)
	api, readable := errors.AsType[smithy.APIError](err)
	if !answered || !readable {
		return ratelimit.Unknown, "the table did not answer in time"
	}
	if _, ok := retry.DefaultThrottleErrorCodes[api.ErrorCode()]; ok {
		return ratelimit.NotApplied, "the table is throttled"
	}
	if answer.HTTPStatusCode() >= 500 {
		return ratelimit.Unknown, "the table failed"
	}
	switch api.ErrorCode() {
	case "ReplicatedWriteConflictException":
		return ratelimit.NotApplied, "the table was written in another region at the same time"
	case "ValidationException":
		if strings.Contains(api.ErrorMessage(), "incorrect data type") {
			return ratelimit.Unreadable, "an attribute of the item has the wrong type"
		}
	case "ResourceNotFoundException":
		return ratelimit.Misconfigured, "the table does not exist"
	case "AccessDeniedException", "UnrecognizedClientException", "ExpiredTokenException",
		"InvalidSignatureException", "MissingAuthenticationToken", "MissingAuthenticationTokenException":
		return ratelimit.Misconfigured, "access to the table is denied"
	}
	return ratelimit.Invalid, "the table refused the request"
}

// sent reports whether the request may have left this process. Without
// credentials, a region or a valid endpoint, the SDK sends nothing.
func sent(err error) bool {
	if _, ok := errors.AsType[*dynamohttp.NotSentError](err); ok {
		return false
	}
	_, began := errors.AsType[*smithyhttp.RequestSendError](err)
	_, answered := errors.AsType[*smithyhttp.ResponseError](err)
	_, network := errors.AsType[net.Error](err)
	_, unread := errors.AsType[*smithy.DeserializationError](err)
	return began || answered || network || unread || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// isFailedCondition reports whether the condition of an update failed.
func isFailedCondition(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && api.ErrorCode() == "ConditionalCheckFailedException"
}
