package scenarios_test

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/agentd"
	"github.com/cric-talk/guards/internal/testkit/cricket"
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

// In these scenarios the guard does not answer, or not at first.
var outages = []scenario{
	{name: "unavailable, allow", invoke: true, url: true, options: map[string]any{"prefix": "deny-"}, steps: []step{
		{call: check, requests: 1, answer: `{"allowed":true,"reason":"unavailable","op":"check","activity":"create_post","granted":1,"message":null,
			"limit":null,"at":null,"outage":"{F} did not answer: *"}`},
		{call: fails, requests: 1, class: "SaveError", message: "*"},
	}},
	{name: "unavailable, deny", invoke: true, url: true, options: map[string]any{"prefix": "deny-", "onOutage": "deny"}, steps: []step{
		{call: check, requests: 1, answer: `{"allowed":false,"reason":"unavailable","op":"check","granted":0,"message":"Please try again later.",
			"outage":"{F} did not answer: *"}`},
		{call: saves, requests: 1, class: "LimitedError", message: "Please try again later."},
	}},
	{name: "unavailable, other verbs", invoke: true, url: true, options: map[string]any{"prefix": "deny-"}, steps: []step{
		{call: status, requests: 1, class: "OutageError", message: "{F} did not answer: *"},
		{call: `{"call":"ready","activity":"create_post"}`, requests: 1, class: "OutageError", message: "{F} did not answer: *"},
		{call: `{"call":"reset","activity":"create_post"}`, requests: 1, class: "OutageError", message: "{F} did not answer: *"},
		{call: `{"call":"release","activity":"create_post","args":{"at":1700000000000,"requestId":"ID"}}`, requests: 1,
			class: "OutageError", message: "{F} did not answer: *"},
	}},
	{name: "the guard decides alone", invoke: true, url: true, options: map[string]any{"prefix": "alone-"}, steps: []step{
		{call: `{"call":"check","activity":"create_post","args":{"count":10}}`, requests: 1, answer: `{"allowed":true,"reason":"unavailable","granted":10,"limit":10,"outage":null}`},
		{call: check, requests: 1, answer: `{"allowed":false,"reason":"unavailable","granted":0,"message":"` + tooMany + `","outage":null}`},
	}},
	one(scenario{name: "throttled once", invoke: true, url: true, noAgent: ofLambda, counted: 1}, step{faults: times(1, throttle), requests: 2, answer: fine}),
	one(scenario{name: "throttled", invoke: true, url: true, noAgent: ofLambda}, step{faults: times(3, throttle), requests: 3, answer: lost}),
	one(scenario{name: "5xx once", invoke: true, url: true, noAgent: ofLambda, counted: 1}, step{faults: []fault{unavailable, failure}, requests: 3, answer: fine}),
	one(scenario{name: "5xx", invoke: true, url: true, noAgent: ofLambda, options: map[string]any{"onOutage": "deny", "maxTries": 2}}, step{faults: times(2, unavailable), requests: 2, answer: `{"allowed":false,"reason":"unavailable","outage":"{F} did not answer: *"}`}),
	one(scenario{name: "502 of a proxy", invoke: true, noAgent: noProxy}, step{faults: times(3, httpError(http.StatusBadGateway)), requests: 3, answer: lost}),
	one(scenario{name: "5xx of a proxy", invoke: true, url: true, noAgent: noProxy}, step{faults: times(3, httpError(http.StatusGatewayTimeout)), requests: 3, answer: lost}),
	one(scenario{name: "reset connection", invoke: true, url: true, counted: 1}, step{faults: times(1, reset), requests: 2, answer: fine}),
	one(scenario{name: "an answer cut short", invoke: true, url: true, counted: 1}, step{faults: times(1, cut), requests: 2, answer: fine}),
	one(scenario{name: "a lost answer", invoke: true, url: true, counted: 1}, step{faults: times(1, lose), requests: 2, answer: `{"allowed":true,"reason":"duplicate","granted":1,"outage":null}`}),
	one(scenario{name: "lost answers", invoke: true, counted: 1}, step{faults: times(3, lose), requests: 3, answer: lost}),
	{name: "a lost answer of a partial check", invoke: true, counted: 10, steps: []step{
		{faults: times(1, lose), call: `{"call":"check","activity":"create_post","args":{"count":12,"partial":true}}`, requests: 1,
			answer: `{"allowed":true,"reason":"unavailable","granted":12,"outage":"*"}`},
	}},
	one(scenario{name: "a late answer", invoke: true, url: true, options: hasty, counted: 1}, step{faults: times(1, late), requests: 2, most: inHaste, answer: `{"allowed":true,"reason":"duplicate","outage":null}`}),
	one(scenario{name: "no answer", invoke: true, url: true, options: hasty}, step{faults: times(3, hang), requests: 2, most: inHaste, answer: lost}),
	one(scenario{name: "no server", invoke: true, noAgent: "an agent that has never answered is missing: see beside", env: map[string]string{"AWS_ENDPOINT_URL_LAMBDA": "http://127.0.0.1:1"}}, step{requests: 0, answer: lost}),
	one(scenario{name: "a function that timed out", invoke: true, noAgent: ofLambda}, step{faults: times(1, timedOut), requests: 1, answer: lost}),
	one(scenario{name: "a lost answer of a status", invoke: true}, step{faults: times(1, lose), call: status, requests: 2, answer: `{"allowed":true,"activityCount":0}`}),
	{name: "a lost answer of a reset", invoke: true, url: true, counted: 1, steps: []step{
		{call: check, requests: 1, answer: `{"activityCount":1}`},
		{faults: times(1, lose), call: `{"call":"reset","activity":"create_post"}`, requests: 1, class: "OutageError", message: "{F} did not answer: *"},
		{pause: 1100 * time.Millisecond, call: check, requests: 1, answer: `{"activityCount":1}`},
	}},
	{name: "the guard's own outage is for one call only", invoke: true, url: true, counted: 2, steps: []step{
		{faults: times(1, withoutTable), call: check, requests: 1, answer: lost},
		{call: check, requests: 1, answer: fine},
		{faults: times(3, absence), call: status, requests: 3, class: "OutageError", message: "{F} did not answer: *"},
		{pause: 1100 * time.Millisecond, faults: times(1, withoutTable), call: check, requests: 1, answer: `{"reason":"unavailable","outage":"{F} did not answer: *"}`},
		{call: check, requests: 1, answer: fine},
	}},
	{name: "fail fast after an outage", invoke: true, url: true, counted: 2, steps: []step{
		{faults: times(3, absence), call: check, requests: 3, answer: `{"outage":"{F} did not answer: *"}`},
		{call: check, requests: 0, answer: `{"allowed":true,"reason":"unavailable","outage":"{F} did not answer a moment ago"}`},
		{call: status, requests: 0, class: "OutageError", message: "{F} did not answer a moment ago"},
		{pause: 1100 * time.Millisecond, call: check, requests: 1, answer: fine},
		{call: check, requests: 1, answer: fine},
	}},
}

const (
	noRegion      = "No AWS region is set. Set {AWS_REGION}, or pass a Lambda client that has one."
	noCredentials = "No AWS credentials were found. Give the app a role, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
	notAllowed    = "The app may not invoke {F} in {R}. Allow its role the action lambda:InvokeFunction on this function."
	urlNotAllowed = "The app may not call the URL of {F}. Allow its role lambda:InvokeFunctionUrl and lambda:InvokeFunction on this function."
	noFunction    = "There is no function {F} in {R}. Deploy it, or check the region and the name."
	refusedKeys   = "AWS refused the credentials (%s*). Renew them, and check this machine's clock."
	noHost        = "There is no host " + absentHost + ". Check the region {R}."
	noHostOfURL   = "There is no host " + absentHost + ". Check the URL of {F}."
	noGuard       = "{F} answered something that no guard answers: *. Check the function's name."
)

// In these scenarios the app can't reach the guard because of a mistake. Each is
// repeated with guarded, and must not let the save happen, although onOutage is
// "allow".
var mistakes = []scenario{
	mistake(scenario{name: "no region", invoke: true, url: true, noAgent: noAWS, env: map[string]string{"AWS_REGION": "", "AWS_DEFAULT_REGION": ""}}, step{message: noRegion}),
	mistake(scenario{name: "no credentials", invoke: true, url: true, noAgent: noAWS, env: map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}}, step{message: noCredentials}),
	mistake(scenario{name: "access denied", invoke: true, noAgent: ofLambda}, step{faults: times(1, denied), requests: 1, message: notAllowed}),
	mistake(scenario{name: "access to the URL denied", url: true, noAgent: ofLambda}, step{faults: times(1, denied), requests: 1, message: urlNotAllowed}),
	mistake(scenario{name: "no such function", invoke: true, url: true, noAgent: ofLambda, options: map[string]any{"prefix": "absent-"}}, step{requests: 1, message: noFunction}),
	{name: "not ready", invoke: true, noAgent: ofLambda, mistake: true, steps: []step{
		{call: `{"call":"ready"}`, requests: len(cricket.All), class: "ConfigurationError", message: "*There is no function * in {R}.*"},
		{faults: times(1, absent), call: check, requests: 1, class: "ConfigurationError", message: noFunction},
	}},
	mistake(scenario{name: "expired credentials", invoke: true, url: true, noAgent: noAWS}, step{faults: times(1, expired), requests: 1, message: fmt.Sprintf(refusedKeys, "ExpiredToken")}),
	mistake(scenario{name: "an unknown key", invoke: true, url: true, noAgent: noAWS}, step{faults: times(1, unknownKey), requests: 1, message: fmt.Sprintf(refusedKeys, "UnrecognizedClient")}),
	mistake(scenario{name: "a wrong key", invoke: true, url: true, noAgent: noAWS, env: map[string]string{"AWS_SECRET_ACCESS_KEY": "wrong"}}, step{message: fmt.Sprintf(refusedKeys, "InvalidSignature")}),
	mistake(scenario{name: "another error of Lambda", invoke: true, url: true, noAgent: ofLambda}, step{faults: times(1, badContentType), requests: 1, message: "{F} could not be invoked: *"}),
	mistake(scenario{name: "garbage", invoke: true, url: true, noAgent: another}, step{faults: times(1, garbage), requests: 1, class: "AnswerError", message: noGuard}),
	mistake(scenario{name: "no guard", invoke: true, url: true, noAgent: another, options: map[string]any{"prefix": "hello-"}}, step{requests: 1, class: "AnswerError", message: noGuard}),
	mistake(scenario{name: "a crash", invoke: true, noAgent: ofLambda, options: map[string]any{"prefix": "broken-"}}, step{requests: 1, class: "AnswerError", message: "{F} failed: Runtime.ExitError. Its log says why."}),
	mistake(scenario{name: "a crash behind a URL", url: true, noAgent: ofLambda, options: map[string]any{"prefix": "broken-"}}, step{requests: 1, class: "AnswerError", message: "{F} failed*"}),
	mistake(scenario{name: "a URL of an unknown guard", invoke: true, noAgent: "urls does not go with agent", options: map[string]any{"urls": map[string]string{"post-guard": "https://x.lambda-url.us-east-1.on.aws/"}}}, step{message: "*post-guard*posts-guard*"}),
	mistake(scenario{name: "an unknown certificate", invoke: true, noAgent: "the address is Lambda's", env: map[string]string{"AWS_ENDPOINT_URL_LAMBDA": untrusted}}, step{message: "{F} could not be invoked: *"}),
	mistake(scenario{name: "no such host", invoke: true, noAgent: "the address is Lambda's", resolver: true, env: map[string]string{"AWS_ENDPOINT_URL_LAMBDA": "http://" + absentHost}}, step{message: noHost}),
	mistake(scenario{name: "no such host of the URL", invoke: true, noAgent: "the address is Lambda's", resolver: true, options: map[string]any{"urls": map[string]string{"posts-guard": "http://" + absentHost + "/"}}}, step{message: noHostOfURL}),
	mistake(scenario{name: "a timeout that is too short", invoke: true, url: true, options: map[string]any{"timeout": 5_000}}, step{class: "any"}),
}

// mistake returns a scenario with one step, which is an error. Its class is
// ConfigurationError unless it says otherwise.
func mistake(s scenario, only step) scenario {
	s.mistake, only.class = true, cmp.Or(only.class, "ConfigurationError")
	return one(s, only)
}

// In these scenarios Lambda can't run the guard until somebody corrects it,
// although the status is 502.
var lasting = everyCode(scenario{invoke: true, url: true, noAgent: ofLambda, mistake: true}, step{requests: 1, class: "ConfigurationError"},
	"EC2AccessDeniedException", "InvalidRuntimeException", "InvalidSecurityGroupIDException", "InvalidSubnetIDException",
	"InvalidZipFileException", "KMSAccessDeniedException", "KMSDisabledException", "KMSInvalidStateException", "KMSNotFoundException")

// In these it will soon.
var passing = everyCode(scenario{invoke: true, noAgent: ofLambda}, step{requests: 3, answer: lost},
	"EC2ThrottledException", "EC2UnexpectedException", "ENILimitReachedException", "ResourceNotReadyException", "SubnetIPAddressLimitReachedException")

// everyCode returns a scenario for each of Lambda's codes with status 502.
func everyCode(s scenario, want step, codes ...string) (list []scenario) {
	for _, code := range codes {
		want.call, want.faults = check, times(3, byLambda(http.StatusBadGateway, code, "the cause"))
		if want.class != "" {
			want.message = "*{F}*" + code + "*"
		}
		s.name, s.steps = code, []step{want}
		list = append(list, s)
	}
	return list
}
