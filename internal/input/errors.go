package input

import (
	"errors"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// A ValidationError reports bad input. Nothing was counted. Lambda sends the
// name of a Go error's type to the caller as the errorType, so this name is
// part of the contract.
type ValidationError struct {
	Field   string // the field at fault
	Problem string // what the field holds and what it accepts
}

// Error implements error. It returns a sentence such as "userId is missing".
func (e *ValidationError) Error() string { return e.Field + " " + e.Problem }

// Unavailable reports that the table gave no answer, so nothing is known.
// Lambda sends the type's name to the caller as the errorType.
type Unavailable struct {
	What  string // what failed, without a key, an address or a user id
	Cause error  // for the log, never for callers; nil if unknown
}

// Error implements error. It returns What, without the cause.
func (e *Unavailable) Error() string { return e.What }

// Unwrap returns the cause.
func (e *Unavailable) Unwrap() error { return e.Cause }

// NewUnavailable turns a store's error into the error that callers see. It
// returns an error that is an *Unavailable already as it is.
func NewUnavailable(err error) *Unavailable {
	if e, ok := errors.AsType[*Unavailable](err); ok {
		return e
	}
	if e, ok := errors.AsType[*ratelimit.StoreError](err); ok {
		return &Unavailable{e.What, e.Err}
	}
	return &Unavailable{"the table could not be reached", err}
}

// Invalid returns a ValidationError such as "count is 0, want a whole number of
// at least 1" from the field, what it got and what it accepts.
func Invalid(field, got, want string) error {
	return &ValidationError{field, "is " + got + ", want " + want}
}
