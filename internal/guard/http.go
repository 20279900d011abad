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
		p := newProblem(http.StatusMethodNotAllowed, "")
		p.string("detail", "method is "+input.Show(c.RequestContext.HTTP.Method)+", want POST")
		return p.reply("Allow", http.MethodPost)
	}
	if !utf8.Valid(payload) {
		return problemOf(&input.ValidationError{Field: "body", Problem: "is not UTF-8"}).reply()
	}
	body := []byte(c.Body)
	if c.IsBase64Encoded {
		decoded, err := base64.StdEncoding.DecodeString(c.Body)
		if err != nil {
			return problemOf(&input.ValidationError{Field: "body", Problem: "is not base64, but isBase64Encoded is true"}).reply()
		}
		body = decoded
	}
	a, err := h.handle(ctx, body)
	if err != nil {
		return problemOf(err).reply()
	}
	headers := rateLimitHeaders(a, h.Limiter.Clock())
	if !a.Refused() {
		return reply(http.StatusOK, "application/json", a.AppendJSON(nil), headers...)
	}
	after := max(1, ceilSeconds(a.Decision.Wait.Milliseconds()))
	return refusal(a).reply(append(headers, "Retry-After", strconv.FormatInt(after, 10))...)
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

// reply returns a Function URL's response. Headers alternates names and values.
func reply(status int, contentType string, body []byte, headers ...string) []byte {
	h := newObject()
	h.string("Content-Type", contentType)
	for i := 0; i < len(headers); i += 2 {
		h.string(headers[i], headers[i+1])
	}
	o := newObject()
	o.int("statusCode", int64(status))
	o.raw("headers", h.end())
	o.string("body", string(body))
	o.bool("isBase64Encoded", false)
	return o.end()
}

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
// policy has the same name as in the RateLimit-Policy header. A block violates none.
func refusal(a Answer) *problem {
	kind := "https://iana.org/assignments/http-problem-types#quota-exceeded"
	if a.blocked() {
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

// problemOf returns an error as a problem.
func problemOf(err error) *problem {
	status, kind, name := http.StatusBadRequest, "", "ValidationError"
	if _, ok := errors.AsType[*input.Unavailable](err); ok {
		status, kind, name = http.StatusServiceUnavailable, "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity", "Unavailable"
	}
	p := newProblem(status, kind)
	p.string("detail", err.Error())
	p.string("errorType", name)
	return p
}

// reply returns the problem as a Function URL's response.
func (p *problem) reply(headers ...string) []byte {
	return reply(p.status, "application/problem+json", p.end(), headers...)
}
