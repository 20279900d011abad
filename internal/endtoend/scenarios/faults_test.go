package scenarios_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/cric-talk/guards/internal/agentd"
)

// A fault answers a request instead of the function. forward lets the function
// have the request, and drops its answer.
type fault func(w http.ResponseWriter, r *http.Request, forward func())

// hang gives no answer until the client gives up.
func hang(_ http.ResponseWriter, r *http.Request, _ func()) {
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// lose closes the connection after the guard has counted.
func lose(_ http.ResponseWriter, _ *http.Request, forward func()) {
	forward()
	panic(http.ErrAbortHandler)
}

// late lets the guard count, but its answer never arrives.
func late(w http.ResponseWriter, r *http.Request, forward func()) {
	forward()
	hang(w, r, nil)
}

// reset ends the connection with an RST before the guard gets the request.
func reset(w http.ResponseWriter, _ *http.Request, _ func()) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = connection.Close()
}

// cut sends only the beginning of an answer.
func cut(w http.ResponseWriter, _ *http.Request, _ func()) {
	w.Header().Set(agentd.Mark, "1")
	w.Header().Set("Content-Length", "400")
	_, _ = io.WriteString(w, `{"allowed":true,"reason":"ok"`)
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// garbage is what a proxy or a captive portal sends.
func garbage(w http.ResponseWriter, _ *http.Request, _ func()) {
	w.Header().Set("Content-Type", "text/html")
	_, _ = io.WriteString(w, "<html>Welcome</html>")
}

// These are Lambda's own errors.
var (
	throttle       = byLambda(http.StatusTooManyRequests, "TooManyRequestsException", "Rate Exceeded.")
	unavailable    = byLambda(http.StatusServiceUnavailable, "ServiceUnavailableException", "Service unavailable")
	failure        = byLambda(http.StatusInternalServerError, "ServiceException", "Internal failure")
	denied         = byLambda(http.StatusForbidden, "AccessDeniedException", "User is not authorized to perform: lambda:InvokeFunction")
	absent         = byLambda(http.StatusNotFound, "ResourceNotFoundException", "Function not found")
	expired        = byLambda(http.StatusForbidden, "ExpiredTokenException", "The security token included in the request is expired")
	unknownKey     = byLambda(http.StatusForbidden, "UnrecognizedClientException", "The security token included in the request is invalid.")
	badContentType = byLambda(http.StatusUnsupportedMediaType, "UnsupportedMediaTypeException", "Unsupported media type")
)

// absence is what an overloaded guard looks like: Lambda throttles, and an agent resets the
// connection.
func absence(w http.ResponseWriter, r *http.Request, forward func()) {
	if r.Header.Get(agentd.TokenHeader) != "" {
		reset(w, r, forward)
		return
	}
	throttle(w, r, forward)
}

// timedOut is a function that Lambda stopped at its timeout.
func timedOut(w http.ResponseWriter, _ *http.Request, _ func()) {
	w.Header().Set("X-Amz-Function-Error", "Unhandled")
	_, _ = io.WriteString(w, `{"errorType":"Sandbox.Timedout","errorMessage":"RequestId: 1 Error: Task timed out after 3.00 seconds"}`)
}

// withoutTable is what a guard with ON_OUTAGE=deny reports if its table does not
// answer, or throttles one key.
func withoutTable(w http.ResponseWriter, r *http.Request, _ func()) {
	const why = "the table did not answer in time"
	if byInvoke := strings.HasSuffix(r.URL.Path, "/invocations"); byInvoke {
		w.Header().Set("X-Amz-Function-Error", "Unhandled")
		_, _ = fmt.Fprintf(w, `{"errorType":"Unavailable","errorMessage":%q}`, why)
		return
	}
	w.Header().Set(agentd.Mark, "1")
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = fmt.Fprintf(w, `{"title":"Service Unavailable","status":503,"errorType":"Unavailable","detail":%q}`, why)
}

func byLambda(status int, code, message string) fault {
	return func(w http.ResponseWriter, _ *http.Request, _ func()) { refuse(w, status, code, message) }
}

// refuse sends an error of Lambda itself.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-Errortype", code)
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"Type":"User","message":%q}`, message)
}

// times returns a fault for n requests.
func times(n int, f fault) (faults []fault) {
	for range n {
		faults = append(faults, f)
	}
	return faults
}
