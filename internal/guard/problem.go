package guard

import (
	"errors"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cric-talk/guards/internal/input"
)

// A problem is an RFC 9457 problem document.
type problem struct {
	kind   string // its type; empty: about:blank, the status says it all
	status int
	detail string
	fields func(*object) // adds further members; nil: there are none
}

// quotaExceeded returns a refusal as a problem, with all the answer's fields.
func quotaExceeded(a Answer) problem {
	return problem{
		kind:   "https://iana.org/assignments/http-problem-types#quota-exceeded",
		status: http.StatusTooManyRequests,
		fields: func(o *object) {
			violated, _ := jsontext.AppendQuote(nil, a.Activity)
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
