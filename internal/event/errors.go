// Package event reads a function's event strictly, and names what is wrong with
// it.
package event

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// A ValidationError is bad input: nothing was counted. Lambda reports a Go
// type's name as the errorType, so the names here are the callers' too.
type ValidationError struct {
	Field   string // at fault
	Problem string // what it holds, and what it takes
}

func (e *ValidationError) Error() string { return e.Field + " " + e.Problem }

// Unavailable is a table that gave no answer: nobody knows.
type Unavailable struct {
	What  string // failed: no key, address or user id
	Cause error  // for whoever runs the table, never for callers; nil: unknown
}

func (e *Unavailable) Error() string { return e.What }
func (e *Unavailable) Unwrap() error { return e.Cause }

// NewUnavailable is a store's error as callers may see it.
func NewUnavailable(err error) *Unavailable {
	if e, ok := errors.AsType[*ratelimit.StoreError](err); ok {
		return &Unavailable{e.What, e.Err}
	}
	return &Unavailable{"the table could not be asked", err}
}

// Invalid makes a ValidationError of a field, what it got and what it takes.
func Invalid(field, got, want string) error {
	return &ValidationError{field, "is " + got + ", want " + want}
}

// CheckUserID checks a user's id: 1 to 36 characters from ! to ~. Its error
// does not repeat it.
func CheckUserID(id string) error { return checkID("userId", id, 36) }

// CheckRequestID checks a request's id: as a user's, up to 64 characters.
func CheckRequestID(id string) error { return checkID("requestId", id, 64) }

func checkID(field, id string, longest int) error {
	invalid := func(problem string) error {
		return &ValidationError{field, fmt.Sprintf("%s, want 1 to %d printable ASCII characters without a space", problem, longest)}
	}
	if id == "" {
		return invalid("is missing or empty")
	}
	for i, c := range id {
		if c < '!' || c > '~' {
			return invalid(fmt.Sprintf("has %U as character %d", c, i+1))
		}
	}
	if len(id) > longest {
		return invalid(fmt.Sprintf("has %d characters", len(id)))
	}
	return nil
}

// shown is the most that an error repeats of what it got, in characters.
const shown = 40

// Show cuts and escapes what a caller sent.
func Show(s string) string {
	if cut := []rune(s); len(cut) > shown {
		s = string(cut[:shown]) + "..."
	}
	return strconv.QuoteToASCII(s)
}

// showValue is Show for a JSON value.
func showValue(v jsontext.Value) string {
	if v.Kind() == '"' {
		text, _ := jsontext.AppendUnquote(nil, v)
		return Show(string(text))
	}
	return strings.Trim(Show(string(v)), `"`)
}
