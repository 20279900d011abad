package client

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Each error of this package is one of these, for errors.Is. The only exception
// is an error of the caller's own context.
var (
	ErrConfiguration = errors.New("the app can't reach the guard") // region, credentials, permission, function or host
	ErrValidation    = errors.New("the request is wrong")
	ErrAnswer        = errors.New("the function gave no guard's answer")
	ErrOutage        = errors.New("the guard did not answer")
	ErrLimited       = errors.New("the guard refused")
)

// An Error is why a guard gave no decision or, in Guarded and Attempt, that it refused.
type Error struct {
	Kind     error     // ErrConfiguration, ErrValidation, ErrAnswer, ErrOutage or ErrLimited
	Guard    string    // the name of the function, with its prefix; empty if the error concerns no single one
	Message  string    // what happened and what to do; never contains a user id
	Decision *Decision // of ErrLimited; otherwise nil
	Cause    error     // the SDK's error, for debugging; may be nil. Of ErrLimited in an outage: the ErrOutage

	// repeatable is set for an outage if the guard perhaps never got the request.
	// It is not set for the guard's own Unavailable, because the guard has made
	// all its attempts already.
	repeatable bool

	// answered is set for the guard's own Unavailable and for what its memory
	// decided. The guard works, and it may decide about other users.
	answered bool

	// missing is set for an agent that has never answered this process, and refused if nobody
	// listens at its address.
	missing, refused bool
}

// Error implements error. It returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// configuration returns an ErrConfiguration about a function.
func (t target) configuration(cause error, format string, args ...any) *Error {
	return &Error{Kind: ErrConfiguration, Guard: t.name(), Message: fmt.Sprintf(format, args...), Cause: cause}
}

// validation returns an ErrValidation.
func (t target) validation(message string) *Error {
	return &Error{Kind: ErrValidation, Guard: t.name(), Message: message}
}

// answer returns an ErrAnswer about a function.
func (t target) answer(format string, args ...any) *Error {
	return &Error{Kind: ErrAnswer, Guard: t.name(), Message: t.function + " " + fmt.Sprintf(format, args...)}
}

// outage returns an ErrOutage. Why is a short text without ids.
func (t target) outage(why string, cause error) *Error {
	return &Error{Kind: ErrOutage, Guard: t.name(), Message: t.function + " did not answer: " + why, Cause: cause}
}

// broken returns an ErrOutage that allows the call to be repeated.
func (t target) broken(why string, cause error) *Error {
	e := t.outage(why, cause)
	e.repeatable = true
	return e
}

// unavailable returns an ErrOutage that the guard itself reported.
func (t target) unavailable(why string) *Error {
	e := t.outage(why, nil)
	e.answered = true
	return e
}

// fromMemory returns an ErrOutage for what a guard decided without its table.
func (t target) fromMemory() *Error {
	return &Error{Kind: ErrOutage, Guard: t.name(), Message: t.function + " decided from its memory, because its table did not answer", answered: true}
}

// limited returns an ErrLimited for a refusal. In an outage, that is its cause.
func (t target) limited(d Decision) *Error {
	return &Error{Kind: ErrLimited, Guard: t.name(), Message: d.Message, Decision: &d, Cause: d.Outage}
}

// isOutage reports whether err is an outage.
func isOutage(err error) bool { return errors.Is(err, ErrOutage) }

// isSilence reports whether err is an outage without any answer of the guard.
func isSilence(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && isOutage(e) && !e.answered
}

// A text from outside that becomes part of a message has at most so many
// characters.
const (
	maxText    = 500
	maxExcerpt = 100 // of an answer
)

// shortID is the length of the longest id that is hidden only as a whole word. A
// short id such as "a" is part of ordinary words. Longer ids are hidden anywhere.
const shortID = 7

// foreign returns a text from outside for a message: without the call's own ids,
// and not too long.
func (c *call) foreign(text string) string {
	ids := []string{c.event.UserID, c.event.RequestID}
	for _, id := range slices.AppendSeq(ids, maps.Values(c.event.Subjects)) {
		for _, form := range []string{escaped(id), quoted(id), id} {
			if form != "" {
				text = hide(text, form, len(id) <= shortID)
			}
		}
	}
	return first(maxText, text)
}

// hide replaces an id in a text. With whole set, it leaves an id alone that has a
// letter or a digit before or after it.
func hide(text, id string, whole bool) string {
	for from := 0; ; {
		at := strings.Index(text[from:], id)
		if at < 0 {
			return text
		}
		at += from
		end := at + len(id)
		if whole && (isWord(text, at-1) || isWord(text, end)) {
			from = at + 1
			continue
		}
		text = text[:at] + "***" + text[end:]
		from = at + len("***")
	}
}

// isWord reports whether text has a letter or a digit at i.
func isWord(text string, i int) bool {
	if i < 0 || i >= len(text) {
		return false
	}
	c := text[i]
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// noAnswer returns an ErrAnswer with the beginning of what the function answered.
func (c *call) noAnswer(text string) *Error {
	excerpt := quoted(first(maxExcerpt, c.foreign(text)))
	return c.answer("answered something that no guard answers: %s. Check the function's name.", excerpt)
}

// escaped returns a text as encoding/json writes it, for example a\u003cb.
func escaped(text string) string {
	return strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`).Replace(quoted(text))
}

// quoted returns a text with escapes only for quotes, backslashes and characters
// that can't be printed.
func quoted(text string) string {
	q := strconv.Quote(text)
	return q[1 : len(q)-1]
}

// first returns the first n characters of a text.
func first(n int, text string) string {
	if r := []rune(text); len(r) > n {
		return string(r[:n])
	}
	return text
}
