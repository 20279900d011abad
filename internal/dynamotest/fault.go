package dynamotest

import (
	"net/http"
	"slices"
)

// Fault is what happens to one request. Each has a text that reads well as the
// name of a subtest.
type Fault string

// Pass is no fault.
const Pass Fault = ""

// With these a request never reaches the table, and the client is told so.
const (
	Throttle            Fault = "throughput exceeded" // 400 ProvisionedThroughputExceededException
	ThrottlingException Fault = "throttled"           // 400 ThrottlingException
	AccessDenied        Fault = "access denied"       // 400 AccessDeniedException
	BadCredentials      Fault = "bad credentials"     // 400 UnrecognizedClientException
)

// With these a request never reaches the table, but for all the client can
// tell it may have.
const (
	Refuse     Fault = "connection dropped before the write"
	HangBefore Fault = "no answer and no write" // until the client gives up or the test ends
	Status500  Fault = "500 before the write"   // InternalServerError
	Status503  Fault = "503 before the write"   // ServiceUnavailable
)

// With these a request is carried out, and the client does not learn it.
const (
	LoseResponse   Fault = "answer lost"              // the connection is closed: EOF
	Reset          Fault = "connection reset"         // closed hard: ECONNRESET
	HangAfter      Fault = "written but no answer"    // until the client gives up or the test ends
	Status500After Fault = "500 after the write"      // InternalServerError
	Truncate       Fault = "answer cut short"         // closed in the middle of the body
	Stall          Fault = "answer stalls"            // half the body, then as HangAfter
	Garbage        Fault = "answer is not valid JSON" // half the body, passed off as all of it
)

// UnprocessedStatements answers the first, third, fifth ... statement of a
// BatchExecuteStatement with a ThrottlingError and carries out the others. On
// any other operation it is a Pass.
const UnprocessedStatements Fault = "unprocessed statements"

// Faults is every Fault that strikes a whole request, for a test that tries
// them all: Pass and UnprocessedStatements are not among them.
func Faults() []Fault {
	return []Fault{
		Throttle, ThrottlingException, AccessDenied, BadCredentials,
		Refuse, HangBefore, Status500, Status503,
		LoseResponse, Reset, HangAfter, Status500After, Truncate, Stall, Garbage,
	}
}

// Applied says whether the table carries a request out in spite of f.
func (f Fault) Applied() bool {
	return f == Pass || slices.Contains([]Fault{
		LoseResponse, Reset, HangAfter, Status500After, Truncate, Stall, Garbage, UnprocessedStatements,
	}, f)
}

// refusal is the answer made up for f; ok is false where f has none.
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

func errorAnswer(status int, kind string) answer {
	header := http.Header{"Content-Type": {"application/x-amz-json-1.0"}}
	return answer{status, header, []byte(`{"__type":"` + kind + `","message":"made up for a test"}`)}.summed()
}
