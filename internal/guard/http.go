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
		r.Header = append(r.Header, "Allow", http.MethodPost)
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
	Status int
	Header []string // names and values in turn
	Body   []byte
}

// Respond answers an event that came as the body of a POST.
func (h *Handler) Respond(ctx context.Context, body []byte) Response {
	a, err := h.handle(ctx, body)
	if err != nil {
		return ProblemOf(err)
	}
	header := rateLimitHeaders(a, h.Limiter.Clock())
	if !a.Refused() {
		return Response{http.StatusOK, append([]string{"Content-Type", "application/json"}, header...), a.AppendJSON(nil)}
	}
	r := refusal(a).response()
	r.Header = append(r.Header, header...)
	if !a.tooLow() {
		after := max(1, ceilSeconds(a.Decision.Wait.Milliseconds()))
		r.Header = append(r.Header, "Retry-After", strconv.FormatInt(after, 10))
	}
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
	h := newObject()
	for i := 0; i < len(r.Header); i += 2 {
		h.string(r.Header[i], r.Header[i+1])
	}
	o := newObject()
	o.int("statusCode", int64(r.Status))
	o.raw("headers", h.end())
	o.string("body", string(r.Body))
	o.bool("isBase64Encoded", false)
	return o.end()
}

// rateLimitHeaders returns the header fields of
// draft-ietf-httpapi-ratelimit-headers-11. A later draft may rename the
// parameters; only this function knows them. For example:
//
//	RateLimit-Policy: "create_post";q=10;w=60
//	RateLimit: "create_post";r=3;t=42
func rateLimitHeaders(a Answer, now time.Time) []string {
	d := a.Decision
	if d == nil || d.Limit == 0 {
		return nil
	}
	limits := d.Limits()
	policies, left := make([]string, len(limits)), make([]string, len(limits))
	for i, l := range limits {
		name := cmp.Or(l.Name, a.Activity) // a single limit has none
		policies[i] = fmt.Sprintf("%q;q=%d;w=%d", name, l.Limit, ceilSeconds(l.Window.Milliseconds()))
		left[i] = fmt.Sprintf("%q;r=%d;t=%d", name, l.Remaining, max(0, ceilSeconds(l.ResetAt-now.UnixMilli())))
	}
	return []string{"RateLimit-Policy", strings.Join(policies, ", "), "RateLimit", strings.Join(left, ", ")}
}

// ceilSeconds converts milliseconds to seconds, rounded up.
func ceilSeconds(millis int64) int64 { return (millis + 999) / 1000 }

// A problem is an RFC 9457 problem document in progress.
type problem struct {
	object
	status int // the HTTP status
}

// newProblem begins a problem. An empty kind, the member "type", means
// about:blank: the status says it all.
func newProblem(status int, kind string) *problem {
	p := &problem{*newObject(), status}
	if kind != "" {
		p.string("type", kind)
	}
	p.string("title", http.StatusText(status))
	p.int("status", int64(status))
	return p
}

// refusal returns a refusal as a problem, with all fields of the answer. The violated
// policy has the same name as in the RateLimit-Policy header. A block violates none, and
// neither does a number of the caller's that is too low.
func refusal(a Answer) *problem {
	kind := "https://iana.org/assignments/http-problem-types#quota-exceeded"
	if a.blocked() || a.tooLow() {
		kind = ""
	}
	p := newProblem(http.StatusTooManyRequests, kind)
	if kind != "" {
		violated, _ := strictjson.AppendQuote(nil, cmp.Or(a.Decision.LimitedBy, a.Activity))
		p.rawArray("violated-policies", violated)
	}
	a.appendFields(&p.object)
	return p
}

// ProblemOf returns the response for an error of [Handler.Decide].
func ProblemOf(err error) Response {
	status, kind, name := http.StatusBadRequest, "", "ValidationError"
	if _, ok := errors.AsType[*input.Unavailable](err); ok {
		status, kind, name = http.StatusServiceUnavailable, "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity", "Unavailable"
	}
	p := newProblem(status, kind)
	p.string("detail", err.Error())
	p.string("errorType", name)
	return p.response()
}

// Problem returns the response for a request that no guard has seen.
func Problem(status int, detail string) Response {
	p := newProblem(status, "")
	p.string("detail", detail)
	return p.response()
}

// response returns the problem as a response.
func (p *problem) response() Response {
	return Response{p.status, []string{"Content-Type", "application/problem+json"}, p.end()}
}
