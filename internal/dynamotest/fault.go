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
	Throttle            Fault = "throughput exceeded" // 400 ProvisionedThroughputExceededException
	ThrottlingException Fault = "throttled"           // 400 ThrottlingException
	AccessDenied        Fault = "access denied"       // 400 AccessDeniedException
	BadCredentials      Fault = "bad credentials"     // 400 UnrecognizedClientException
)

// With these faults a request never reaches the table, but the client can't
// know that.
const (
	Refuse     Fault = "connection dropped before the write"
	HangBefore Fault = "no answer and no write" // lasts until the client gives up or the test ends
	Status500  Fault = "500 before the write"   // InternalServerError
	Status503  Fault = "503 before the write"   // ServiceUnavailable
)

// With these faults the table performs the request, but the client doesn't
// learn it.
const (
	LoseResponse   Fault = "answer lost"              // the connection is closed: EOF
	Reset          Fault = "connection reset"         // the client sees ECONNRESET
	HangAfter      Fault = "written but no answer"    // lasts until the client gives up or the test ends
	Status500After Fault = "500 after the write"      // InternalServerError
	Truncate       Fault = "answer cut short"         // the connection is closed within the body
	Stall          Fault = "answer stalls"            // half of the body arrives, then nothing more, as with HangAfter
	Garbage        Fault = "answer is not valid JSON" // half of the body, with a header that fits it
)

// UnprocessedStatements answers the first, third, fifth ... statement of a
// BatchExecuteStatement with a ThrottlingError and lets the table execute the
// others. For any other operation it is a Pass.
const UnprocessedStatements Fault = "unprocessed statements"

// Faults returns every Fault that affects a whole request, so that a test can
// try all of them. Pass and UnprocessedStatements are not included.
func Faults() []Fault {
	return []Fault{
		Throttle, ThrottlingException, AccessDenied, BadCredentials,
		Refuse, HangBefore, Status500, Status503,
		LoseResponse, Reset, HangAfter, Status500After, Truncate, Stall, Garbage,
	}
}

// Applied reports whether the table performs a request that has the fault f.
func (f Fault) Applied() bool {
	return f == Pass || slices.Contains([]Fault{
		LoseResponse, Reset, HangAfter, Status500After, Truncate, Stall, Garbage, UnprocessedStatements,
	}, f)
}

// refusal returns the made-up response for f. ok is false if f has none.
func (f Fault) refusal() (a answer, ok bool) {
	switch f {
	case Throttle:
		return errorAnswer(http.StatusBadRequest, "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"), true
	case ThrottlingException:
		return errorAnswer(http.StatusBadRequest, "com.amazon.coral.availability#ThrottlingException"), true
	case AccessDenied:
		return errorAnswer(http.StatusBadRequest, "com.amazon.coral.service#AccessDeniedException"), true
	case BadCredentials:
		return errorAnswer(http.StatusBadRequest, "com.amazon.coral.service#UnrecognizedClientException"), true
	case Status500, Status500After:
		return errorAnswer(http.StatusInternalServerError, "com.amazonaws.dynamodb.v20120810#InternalServerError"), true
	case Status503:
		return errorAnswer(http.StatusServiceUnavailable, "com.amazonaws.dynamodb.v20120810#ServiceUnavailable"), true
	default:
		return answer{}, false
	}
}

// errorAnswer returns the response for an error of the given type.
func errorAnswer(status int, kind string) answer {
	header := http.Header{"Content-Type": {"application/x-amz-json-1.0"}}
	return answer{status, header, []byte(`{"__type":"` + kind + `","message":"made up for a test"}`)}.summed()
}
