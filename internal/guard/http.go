package guard

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/strictjson"
)

// A call is an HTTP request, as a Function URL or API Gateway v2 sends it.
type call struct {
	RequestContext struct {
		HTTP *struct {
			Method string `json:"method"`
		} `json:"http"`
	} `json:"requestContext"`
	Body            string `json:"body"`
	IsBase64Encoded bool   `json:"isBase64Encoded"`
}

// parseCall reads an event as a call. It returns false if the event is no call.
func parseCall(payload []byte) (c call, ok bool) {
	if !bytes.Contains(payload, []byte(`"requestContext"`)) {
		return c, false
	}
	// AWS writes the envelope, so it is read leniently. The caller writes the
	// body, which is decoded strictly.
	err := strictjson.Unmarshal(payload, &c, strictjson.RepeatedNames, strictjson.AnyBytes)
	return c, err == nil && c.RequestContext.HTTP != nil
}

// answerCall answers a call. Lambda turns the result into an HTTP response.
func (h *Handler) answerCall(ctx context.Context, payload []byte, c call) []byte {
	if c.RequestContext.HTTP.Method != http.MethodPost {
		r := Problem(http.StatusMethodNotAllowed, "method is "+input.Show(c.RequestContext.HTTP.Method)+", want POST")
		r.Header["Allow"] = http.MethodPost
		return r.event()
	}
	if !utf8.Valid(payload) {
		return ProblemOf(&input.ValidationError{Field: "body", Problem: "is not UTF-8"}).event()
	}
	body := []byte(c.Body)
	if c.IsBase64Encoded {
		decoded, err := base64.StdEncoding.DecodeString(c.Body)
		if err != nil {
			return ProblemOf(&input.ValidationError{Field: "body", Problem: "is not base64, but isBase64Encoded is true"}).event()
		}
		body = decoded
	}
	return h.Respond(ctx, body).event()
}

// A Response is what a guard answers over HTTP.
type Response struct {
	Status int               `json:"statusCode"`
	Header map[string]string `json:"headers"`
	Body   []byte            `json:"-"` // JSON
}

// Respond answers an event that came as the body of a POST.
func (h *Handler) Respond(ctx context.Context, body []byte) Response {
	a, err := h.handle(ctx, body)
	if err != nil {
		return ProblemOf(err)
	}
	var r Response
	if a.Refused() {
		r = refusal(a)
	} else {
		r = Response{http.StatusOK, map[string]string{"Content-Type": "application/json"}, a.JSON()}
	}
	addRateLimit(r.Header, a, h.Limiter.Clock())
	return r
}

// ActivityOf returns the activity that an event names. The error is the same as that of a
// guard that can't read the event.
func ActivityOf(event []byte) (string, error) {
	r, err := input.Decode(event, fields)
	return r.Activity, err
}

// event returns the response in the form in which a function returns it to its URL.
func (r Response) event() []byte {
	return encode(struct {
		Response
		Body            string `json:"body"`
		IsBase64Encoded bool   `json:"isBase64Encoded"`
	}{r, string(r.Body), false})
}

// addRateLimit adds the fields of draft-ietf-httpapi-ratelimit-headers-11 to a header. A later
// draft may rename the parameters; only this function knows them. For example:
//
//	RateLimit-Policy: "create_post";q=10;w=60
//	RateLimit: "create_post";r=3;t=42
func addRateLimit(header map[string]string, a Answer, now time.Time) {
	d := a.Decision
	if d == nil || d.Limit == 0 {
		return
	}
	limits := d.Limits()
	policies, left := make([]string, len(limits)), make([]string, len(limits))
	for i, l := range limits {
		name := cmp.Or(l.Name, a.Activity) // a single limit has none
		policies[i] = fmt.Sprintf("%q;q=%d;w=%d", name, l.Limit, ceilSeconds(l.Window.Milliseconds()))
		left[i] = fmt.Sprintf("%q;r=%d;t=%d", name, l.Remaining, max(0, ceilSeconds(l.ResetAt-now.UnixMilli())))
	}
	header["RateLimit-Policy"], header["RateLimit"] = strings.Join(policies, ", "), strings.Join(left, ", ")
}

// ceilSeconds converts milliseconds to seconds, rounded up.
func ceilSeconds(millis int64) int64 { return (millis + 999) / 1000 }

// A problem is an RFC 9457 problem document.
type problem struct {
	Type      string           `json:"type,omitzero"` // empty means about:blank: the status says it all
	Title     string           `json:"title"`
	Status    int              `json:"status"`
	Detail    string           `json:"detail,omitzero"`
	ErrorType string           `json:"errorType,omitzero"`
	Violated  []string         `json:"violated-policies,omitempty"` // their names are as in the RateLimit-Policy header
	Answer    strictjson.Value `json:",embed"`                      // the fields of a refusal
}

// refusal returns the response for a refusal. A block violates no policy, and neither does a
// number of the caller's that is too low, for which no wait helps.
func refusal(a Answer) Response {
	p := problem{Status: http.StatusTooManyRequests, Answer: a.JSON()}
	if !a.blocked() && !a.tooLow() {
		p.Type = "https://iana.org/assignments/http-problem-types#quota-exceeded"
		p.Violated = []string{cmp.Or(a.Decision.LimitedBy, a.Activity)}
	}
	r := p.response()
	if !a.tooLow() {
		r.Header["Retry-After"] = strconv.FormatInt(max(1, ceilSeconds(a.Decision.Wait.Milliseconds())), 10)
	}
	return r
}

// ProblemOf returns the response for an error of [Handler.Decide].
func ProblemOf(err error) Response {
	p := problem{Status: http.StatusBadRequest, Detail: err.Error(), ErrorType: "ValidationError"}
	if _, ok := errors.AsType[*input.Unavailable](err); ok {
		p.Type = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
		p.Status, p.ErrorType = http.StatusServiceUnavailable, "Unavailable"
	}
	return p.response()
}

// Problem returns the response for a request that no guard has seen.
func Problem(status int, detail string) Response {
	return problem{Status: status, Detail: detail}.response()
}

// response returns the problem as a response.
func (p problem) response() Response {
	p.Title = http.StatusText(p.Status)
	return Response{p.Status, map[string]string{"Content-Type": "application/problem+json"}, encode(p)}
}

// encode returns v, whose fields can always be written, as JSON.
func encode(v any) []byte {
	b, err := strictjson.Marshal(v, strictjson.Sorted, strictjson.AnyBytes)
	if err != nil {
		panic(err)
	}
	return b
}
