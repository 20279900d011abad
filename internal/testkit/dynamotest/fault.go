package dynamotest

import (
	"net/http"
	"slices"
)

// Fault is what goes wrong with one request. Its text can serve as the name of
// a subtest.
type Fault string

// Pass means that nothing goes wrong.
const Pass Fault = ""

// With these faults a request never reaches the table, and the client learns
// it.
const (
	Throttle            Fault = "throughput exceeded"       // 400 ProvisionedThroughputExceededException
	ThrottlingException Fault = "throttled"                 // 400 ThrottlingException
	RequestLimit        Fault = "request limit exceeded"    // 400 RequestLimitExceeded
	LimitExceeded       Fault = "limit exceeded"            // 400 LimitExceededException
	ReplicaConflict     Fault = "conflict between replicas" // 400 ReplicatedWriteConflictException
	AccessDenied        Fault = "access denied"             // 400 AccessDeniedException
	BadCredentials      Fault = "bad credentials"           // 400 UnrecognizedClientException
	ExpiredCredentials  Fault = "expired credentials"       // 400 ExpiredTokenException
)

// With these faults a request never reaches the table, but the client can't
// know that.
const (
	Refuse      Fault = "connection dropped before the write"
	ResetBefore Fault = "connection reset before the write"
	HangBefore  Fault = "no answer and no write" // lasts until the client gives up or the test ends
	Status500   Fault = "500 before the write"   // InternalServerError
	Status503   Fault = "503 before the write"   // ServiceUnavailable
)

// With these faults the table performs the request, but the client doesn't
// learn it.
const (
	LoseResponse   Fault = "answer lost"              // the connection is closed: EOF
	Reset          Fault = "connection reset"         // the client sees ECONNRESET
	HangAfter      Fault = "written but no answer"    // lasts until the client gives up or the test ends
	Status500After Fault = "500 after the write"      // InternalServerError
	Status503After Fault = "503 after the write"      // ServiceUnavailable
	Truncate       Fault = "answer cut short"         // the connection is closed within the body
	Stall          Fault = "answer stalls"            // half of the body arrives, then nothing more, as with HangAfter
	Garbage        Fault = "answer is not valid JSON" // half of the body, with a header that fits it
)

// BadChecksum lets the table perform the request. The answer arrives intact, but
// its checksum is wrong. The SDK at most logs a warning.
const BadChecksum Fault = "wrong checksum"

// Late is a request that the table performs only when the test calls
// [Attempt.Deliver]. Until the client gives up, it gets no answer. Late needs a
// [Plan].
const Late Fault = "written later"

// UnprocessedStatements answers the first, third, fifth ... statement of a
// BatchExecuteStatement with a ThrottlingError and lets the table execute the
// others. For any other operation it is a Pass.
const UnprocessedStatements Fault = "unprocessed statements"

// told, unsure and unseen are the faults of the groups above.
var (
	told = []Fault{
		Throttle, ThrottlingException, RequestLimit, LimitExceeded, ReplicaConflict,
		AccessDenied, BadCredentials, ExpiredCredentials,
	}
	unsure = []Fault{Refuse, ResetBefore, HangBefore, Status500, Status503}
	unseen = []Fault{LoseResponse, Reset, HangAfter, Status500After, Status503After, Truncate, Stall, Garbage}
)

// Faults returns every Fault that affects a whole request, so that a test can
// try all of them. Pass, Late and UnprocessedStatements are not included.
func Faults() []Fault { return append(slices.Concat(told, unsure, unseen), BadChecksum) }

// Applied reports whether the table performs a request that has the fault f.
func (f Fault) Applied() bool {
	return f == Pass || f == BadChecksum || f == Late || f == UnprocessedStatements || slices.Contains(unseen, f)
}

// Unknown reports whether the client cannot know if the table performed a
// request that has the fault f.
func (f Fault) Unknown() bool {
	return f == Late || slices.Contains(unsure, f) || slices.Contains(unseen, f)
}

// Hangs reports whether a request that has the fault f lasts until the client
// gives up.
func (f Fault) Hangs() bool {
	return f == HangBefore || f == HangAfter || f == Stall || f == Late
}

// refusals holds the error of each fault that makes one up.
var refusals = map[Fault]string{
	Throttle:            "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
	ThrottlingException: "com.amazon.coral.availability#ThrottlingException",
	RequestLimit:        "com.amazonaws.dynamodb.v20120810#RequestLimitExceeded",
	LimitExceeded:       "com.amazonaws.dynamodb.v20120810#LimitExceededException",
	ReplicaConflict:     "com.amazonaws.dynamodb.v20120810#ReplicatedWriteConflictException",
	AccessDenied:        "com.amazon.coral.service#AccessDeniedException",
	BadCredentials:      "com.amazon.coral.service#UnrecognizedClientException",
	ExpiredCredentials:  "com.amazon.coral.service#ExpiredTokenException",
	Status500:           internalServerError,
	Status500After:      internalServerError,
	Status503:           serviceUnavailable,
	Status503After:      serviceUnavailable,
}

const (
	internalServerError = "com.amazonaws.dynamodb.v20120810#InternalServerError"
	serviceUnavailable  = "com.amazonaws.dynamodb.v20120810#ServiceUnavailable"
)

// refusal returns the made-up response for f. ok is false if f has none.
func (f Fault) refusal() (a answer, ok bool) {
	kind, ok := refusals[f]
	status := http.StatusBadRequest
	switch kind {
	case internalServerError:
		status = http.StatusInternalServerError
	case serviceUnavailable:
		status = http.StatusServiceUnavailable
	}
	return errorAnswer(status, kind), ok
}

// errorAnswer returns the response for an error of the given type.
func errorAnswer(status int, kind string) answer {
	header := http.Header{"Content-Type": {"application/x-amz-json-1.0"}}
	return answer{status, header, []byte(`{"__type":"` + kind + `","message":"made up for a test"}`)}.summed()
}
