package guard

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/policy"
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

// parseCall reads an event as a call. It returns false if the event is not an
// HTTP request.
func parseCall(payload []byte) (c call, ok bool) {
	if !bytes.Contains(payload, []byte(`"requestContext"`)) {
		return c, false
	}
	// AWS writes the envelope, so it is read leniently. The caller writes the
	// body, which is decoded strictly.
	err := json.Unmarshal(payload, &c, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return c, err == nil && c.RequestContext.HTTP != nil
}

// answerCall answers a call. Lambda turns the result into an HTTP response.
func (h *Handler) answerCall(ctx context.Context, payload []byte, c call) []byte {
	if c.RequestContext.HTTP.Method != http.MethodPost {
		p := problem{status: http.StatusMethodNotAllowed, detail: "method is " + input.Show(c.RequestContext.HTTP.Method) + ", want POST"}
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
	headers = append(headers, "Retry-After", strconv.FormatInt(after, 10))
	return quotaExceeded(a).reply(headers...)
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
	limits := d.Each
	if len(limits) == 0 {
		only := d.Reading
		only.Name = a.Activity
		limits = []policy.Reading{only}
	}
	policies, left := make([]string, len(limits)), make([]string, len(limits))
	for i, l := range limits {
		reset := max(0, ceilSeconds(l.ResetAt-now.UnixMilli()))
		policies[i] = fmt.Sprintf("%q;q=%d;w=%d", l.Name, l.Limit, ceilSeconds(l.Window.Milliseconds()))
		left[i] = fmt.Sprintf("%q;r=%d;t=%d", l.Name, l.Remaining, reset)
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
