package guard

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// A call is a Function URL's or API Gateway v2's event.
type call struct {
	RequestContext struct {
		HTTP *struct {
			Method string `json:"method"`
		} `json:"http"`
	} `json:"requestContext"`
	Body            string `json:"body"`
	IsBase64Encoded bool   `json:"isBase64Encoded"`
}

// parseCall reads an event as a call, if it is one.
func parseCall(payload []byte) (c call, ok bool) {
	if !bytes.Contains(payload, []byte(`"requestContext"`)) {
		return c, false
	}
	// The envelope is AWS's and read as it comes; the body in it is the caller's.
	err := json.Unmarshal(payload, &c, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return c, err == nil && c.RequestContext.HTTP != nil
}

// answerCall answers a call by an event that Lambda turns into HTTP.
func (g *Guard) answerCall(ctx context.Context, c call) []byte {
	if c.RequestContext.HTTP.Method != http.MethodPost {
		p := problem{status: http.StatusMethodNotAllowed, detail: "method is " + input.Show(c.RequestContext.HTTP.Method) + ", want POST"}
		return p.reply("Allow", http.MethodPost)
	}
	body := []byte(c.Body)
	if c.IsBase64Encoded {
		decoded, err := base64.StdEncoding.DecodeString(c.Body)
		if err != nil {
			return problemOf(&input.ValidationError{Field: "body", Problem: "is not base64, as isBase64Encoded says it is"}).reply()
		}
		body = decoded
	}
	a, err := g.handle(ctx, body)
	if err != nil {
		return problemOf(err).reply()
	}
	headers := rateLimitHeaders(a, g.Limiter.Clock())
	if !a.Refused() {
		return reply(http.StatusOK, "application/json", a.AppendJSON(nil), headers...)
	}
	after := ceilSeconds(a.Decision.Wait.Milliseconds()) // whoever is refused waits at least a millisecond
	headers = append(headers, "Retry-After", strconv.FormatInt(after, 10))
	return quotaExceeded(a).reply(headers...)
}

// rateLimitHeaders are the fields of draft-ietf-httpapi-ratelimit-headers-11,
// which may yet rename their parameters: this is the one place that knows them.
func rateLimitHeaders(a Answer, now time.Time) []string {
	d := a.Decision
	if d == nil || d.Limit == 0 {
		return nil
	}
	limits := d.Each
	if len(limits) == 0 {
		limits = []ratelimit.Each{{Name: a.Activity, Limit: d.Limit, Window: d.Window, Figures: d.Figures}}
	}
	policies, left := make([]string, len(limits)), make([]string, len(limits))
	for i, l := range limits {
		reset := max(0, ceilSeconds(l.ResetAt-now.UnixMilli()))
		policies[i] = fmt.Sprintf("%q;q=%d;w=%d", l.Name, l.Limit, ceilSeconds(l.Window.Milliseconds()))
		left[i] = fmt.Sprintf("%q;r=%d;t=%d", l.Name, l.Remaining, reset)
	}
	return []string{"RateLimit-Policy", strings.Join(policies, ", "), "RateLimit", strings.Join(left, ", ")}
}

func ceilSeconds(millis int64) int64 { return (millis + 999) / 1000 }

// A problem is an RFC 9457 problem document.
type problem struct {
	kind   string // its type; empty: about:blank, the status says it all
	status int
	detail string
	fields func(*object) // further members
}

// quotaExceeded is a refusal as a problem, with all the answer's own fields.
func quotaExceeded(a Answer) problem {
	return problem{
		kind:   "https://iana.org/assignments/http-problem-types#quota-exceeded",
		status: http.StatusTooManyRequests,
		fields: func(o *object) {
			policy, _ := jsontext.AppendQuote(nil, a.Activity)
			o.rawArray("violated-policies", policy)
			a.appendFields(o)
		},
	}
}

// problemOf is an error as a problem.
func problemOf(err error) problem {
	p := problem{status: http.StatusBadRequest, detail: err.Error()}
	name := "ValidationError"
	if _, ok := errors.AsType[*input.Unavailable](err); ok {
		p.kind = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
		p.status = http.StatusServiceUnavailable
		name = "Unavailable"
	}
	p.fields = func(o *object) { o.string("errorType", name) }
	return p
}

func (p problem) reply(headers ...string) []byte {
	o := newObject()
	if p.kind != "" {
		o.string("type", p.kind)
	}
	o.string("title", http.StatusText(p.status))
	o.int("status", int64(p.status))
	if p.detail != "" {
		o.string("detail", p.detail)
	}
	if p.fields != nil {
		p.fields(o)
	}
	return reply(p.status, "application/problem+json", o.end(), headers...)
}

// reply is a Function URL's answer; headers are names and values in turn.
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
