// Package input reads the events that functions receive, and defines the errors
// that their callers see.
//
// [Decode] is strict. It refuses input that encoding/json accepts: an unknown
// field, a repeated field, a field name in another case such as USERID, and
// bytes that are not UTF-8. A misspelled or repeated field could otherwise
// limit the wrong user, or nobody.
package input

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/strictjson"
)

// maxBytes is the size of the largest event that Decode accepts.
const maxBytes = 64 << 10

// A Field describes one member that an event may have. Read checks its value and
// stores it in to. Functions such as [Text] and [Whole] do that for common types.
type Field[T any] struct {
	Name string
	Read func(to *T, field string, value strictjson.Value) error
}

// Decode reads an event, which must be one JSON object with no members other
// than fields. Its errors have the type *ValidationError.
func Decode[T any](event []byte, fields []Field[T]) (to T, err error) {
	if len(event) > maxBytes {
		return to, Invalid("event", strconv.Itoa(len(event))+" bytes long", "at most "+strconv.Itoa(maxBytes))
	}
	d := strictjson.NewDecoder(bytes.NewBuffer(event))
	if kind := d.PeekKind(); kind != '{' {
		return to, Invalid("event", kindName(kind, event), `a JSON object`)
	}
	if _, err := d.ReadToken(); err != nil {
		return to, unreadable("event", event, err)
	}
	for d.PeekKind() != '}' {
		if err := readField(d, event, fields, &to); err != nil {
			return to, err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return to, unreadable("event", event, err)
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return to, &ValidationError{"event", "continues after the JSON object, want one JSON object"}
	}
	return to, nil
}

// readField reads the next member of an event.
func readField[T any](d *strictjson.Decoder, event []byte, fields []Field[T], to *T) error {
	token, err := d.ReadToken()
	if err != nil {
		return unreadable("event", event, err)
	}
	name := token.String()
	for _, f := range fields {
		if f.Name != name {
			continue
		}
		value, err := d.ReadValue()
		if errors.Is(err, strictjson.ErrDuplicateName) {
			return &ValidationError{name, "repeats one of its own names"}
		}
		if err != nil {
			return unreadable(name, event, err)
		}
		return f.Read(to, name, value)
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	return &ValidationError{"event", "has the unknown field " + Show(name) + ", want only " + strings.Join(names, ", ")}
}

// unreadable returns the error for an event whose JSON cannot be read at field.
func unreadable(field string, event []byte, err error) error {
	if e, ok := errors.AsType[*strictjson.SyntacticError](err); ok && errors.Is(e, strictjson.ErrDuplicateName) {
		return &ValidationError{e.JSONPointer.LastToken(), "is repeated"}
	}
	if !utf8.Valid(event) {
		return &ValidationError{field, "is not UTF-8"}
	}
	return &ValidationError{field, "is not valid JSON"}
}

// Text reads a string.
func Text(to *string, field string, v strictjson.Value) error {
	if v.Kind() != '"' {
		return Invalid(field, showValue(v), "a string")
	}
	text, err := strictjson.AppendUnquote(nil, v)
	*to = string(text)
	return err
}

// ID reads a string that is not empty. Its errors never show the value.
func ID(to *string, field string, v strictjson.Value) error {
	if v.Kind() != '"' {
		return Invalid(field, kindName(v.Kind(), v), "a string")
	}
	if len(v) == len(`""`) {
		return Invalid(field, "empty", "at least 1 character")
	}
	return Text(to, field, v)
}

// CheckUserID returns a *ValidationError unless id has 1 to 128 characters,
// each from ! to ~. The error never shows the id.
func CheckUserID(id string) error { return checkID("userId", id, 128) }

// CheckRequestID returns a *ValidationError unless id has 1 to 64 characters,
// each from ! to ~. The error never shows the id.
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

// Whole reads a whole number of at least 1, which can be written as 1.0 or 1e0.
func Whole(to *int64, field string, v strictjson.Value) error {
	n, ok := exact(string(v))
	if !ok || n < 1 {
		return Invalid(field, showValue(v), "a whole number of at least 1")
	}
	*to = n
	return nil
}

// MaxNumber is the highest number that a caller can give for a limit.
const MaxNumber = 1_000_000

// Number reads a text that is such a number. It returns false for any other text.
func Number(text string) (n int64, ok bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= 0 && n <= MaxNumber
}

// exact returns the value of a number that can have a fraction or an exponent. It returns
// false if that is no whole number from 0 to 2^63 - 1. Values that are far out of range
// are found first, because as fractions they would fill the memory.
func exact(number string) (int64, bool) {
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		return n, n >= 0
	}
	near, err := strconv.ParseFloat(number, 64)
	if err != nil || near != 0 && near < 1 || near > 1<<63 {
		return 0, false
	}
	if near == 0 {
		digits, _, _ := strings.Cut(strings.ToLower(number), "e")
		return 0, !strings.ContainsAny(digits, "123456789")
	}
	r, ok := new(big.Rat).SetString(number)
	if !ok || !r.IsInt() || !r.Num().IsInt64() {
		return 0, false
	}
	return r.Num().Int64(), true
}

// Numbers reads a whole number, whose name is then empty, or an object of such numbers by name.
// They are 0 or more. Want tells what a number is, such as "a whole number from 0 to 9", and
// OrByName is added to it where an object is accepted.
func Numbers(to *map[string]int64, field string, v strictjson.Value, want string) error {
	if v.Kind() != '{' {
		n, ok := exact(string(v))
		if !ok {
			return Invalid(field, showScalar(v), want+OrByName)
		}
		*to = map[string]int64{"": n}
		return nil
	}
	var values map[string]strictjson.Value
	if err := strictjson.Unmarshal(v, &values); err != nil {
		return unreadable(field, v, err)
	}
	if len(values) == 0 {
		return Invalid(field, "an empty object", want+OrByName)
	}
	*to = make(map[string]int64, len(values))
	for name, value := range values {
		n, ok := exact(string(value))
		switch {
		case name == "":
			return &ValidationError{field, "has an empty name, want " + want + OrByName}
		case !ok:
			return Invalid(Member(field, name), showScalar(value), want)
		}
		(*to)[name] = n
	}
	return nil
}

// OrByName is what [Numbers] accepts besides a number.
const OrByName = ", or an object of such numbers by the names of limits"

// Member returns the name of a member of an object field, such as limit.minute. A name that no
// limit can have could be a user's id, so then it is the field alone.
func Member(field, name string) string {
	if len(name) > maxShown || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_.") != "" {
		return field
	}
	return field + "." + name
}

// Bool reads true or false.
func Bool(to *bool, field string, v strictjson.Value) error {
	if v.Kind() != 't' && v.Kind() != 'f' {
		return Invalid(field, showValue(v), "true or false")
	}
	*to = v.Kind() == 't'
	return nil
}

// Texts reads an array of strings.
func Texts(to *[]string, field string, v strictjson.Value) error {
	d := strictjson.NewDecoder(bytes.NewBuffer(v))
	if open, err := d.ReadToken(); err != nil || open.Kind() != '[' {
		return Invalid(field, showValue(v), "an array of strings")
	}
	for d.PeekKind() != ']' {
		text, err := d.ReadToken()
		if err != nil || text.Kind() != '"' {
			return Invalid(field, showValue(v), "an array of strings")
		}
		*to = append(*to, text.String())
	}
	return nil
}

// TextsByName reads an object whose values are strings, and which can be empty. Its error
// tells what is wanted, and never shows the value.
func TextsByName(to *map[string]string, field string, v strictjson.Value, want string) error {
	if err := strictjson.Unmarshal(v, to); err != nil || *to == nil {
		return Invalid(field, "something else", want)
	}
	return nil
}

// maxShown is how many characters of a caller's input an error shows.
const maxShown = 40

// Show returns s quoted and escaped. It cuts s after 40 characters.
func Show(s string) string {
	if cut := []rune(s); len(cut) > maxShown {
		s = string(cut[:maxShown]) + "..."
	}
	return strconv.QuoteToASCII(s)
}

// showValue returns a JSON value for an error message, escaped and cut as Show
// does. It leaves out the quotes unless the value is a string.
func showValue(v strictjson.Value) string {
	if v.Kind() == '"' {
		text, _ := strictjson.AppendUnquote(nil, v)
		return Show(string(text))
	}
	return strings.Trim(Show(string(v)), `"`)
}

// showScalar returns what showValue does, and the kind of an array or an object, which can
// have lines and members.
func showScalar(v strictjson.Value) string {
	if k := v.Kind(); k == '[' || k == '{' {
		return kindName(k, v)
	}
	return showValue(v)
}

var kinds = map[strictjson.Kind]string{
	'n': "null", 't': "a boolean", 'f': "a boolean", '"': "a string", '0': "a number", '{': "an object", '[': "an array",
}

// kindName returns the kind of a JSON value in words.
func kindName(k strictjson.Kind, v []byte) string {
	if len(bytes.TrimSpace(v)) == 0 {
		return "empty"
	}
	return cmp.Or(kinds[k], "not valid JSON")
}

// A ValidationError reports bad input. Nothing was counted. Lambda sends the type's
// name to the caller as the errorType, so this name is part of the contract.
type ValidationError struct {
	Field   string // the field at fault
	Problem string // what the field holds and what it accepts
}

// Is makes the error an [guards.ErrValidation].
func (e *ValidationError) Is(target error) bool { return target == guards.ErrValidation }

// Error implements error. It returns a sentence such as "userId is missing".
func (e *ValidationError) Error() string { return e.Field + " " + e.Problem }

// Unavailable reports that the table gave no answer, so nothing is known.
// Lambda sends the type's name to the caller as the errorType.
type Unavailable struct {
	What  string // what failed, without a key, an address or a user id
	Cause error  // for the log, never for callers; nil if unknown
}

// Is makes the error an [guards.ErrUnavailable].
func (e *Unavailable) Is(target error) bool { return target == guards.ErrUnavailable }

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
