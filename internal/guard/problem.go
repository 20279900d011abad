package guard

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cric-talk/guards/internal/input"
)

// A problem is an RFC 9457 problem document.
type problem struct {
	kind   string        // the member "type"; empty means about:blank: the status says it all
	status int           // the HTTP status
	detail string        // what went wrong; may be empty
	fields func(*object) // adds further members; nil for none
}

// quotaExceeded returns a refusal as a problem, with all fields of the answer.
// The violated policy has the same name as in the RateLimit-Policy header.
func quotaExceeded(a Answer) problem {
	return problem{
		kind:   "https://iana.org/assignments/http-problem-types#quota-exceeded",
		status: http.StatusTooManyRequests,
		fields: func(o *object) {
			violated, _ := jsontext.AppendQuote(nil, cmp.Or(a.Decision.LimitedBy, a.Activity))
			o.rawArray("violated-policies", violated)
			a.appendFields(o)
		},
	}
}

// problemOf returns an error as a problem.
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

// reply returns the problem as a Function URL's response.
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
