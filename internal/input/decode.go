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
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxBytes is the size of the largest event that Decode accepts.
const maxBytes = 64 << 10

// A Field describes one member that an event may have. Read checks the member's
// value and stores it in to. Functions such as [Text] and [Whole] do that for
// common types.
type Field[T any] struct {
	Name string
	Read func(to *T, field string, value jsontext.Value) error
}

// Decode reads an event, which must be one JSON object with no members other
// than fields. Its errors have the type *ValidationError.
func Decode[T any](event []byte, fields []Field[T]) (to T, err error) {
	if len(event) > maxBytes {
		return to, Invalid("event", strconv.Itoa(len(event))+" bytes long", "at most "+strconv.Itoa(maxBytes))
	}
	d := jsontext.NewDecoder(bytes.NewReader(event))
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
func readField[T any](d *jsontext.Decoder, event []byte, fields []Field[T], to *T) error {
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
		if errors.Is(err, jsontext.ErrDuplicateName) {
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
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok && errors.Is(e, jsontext.ErrDuplicateName) {
		return &ValidationError{e.JSONPointer.LastToken(), "is repeated"}
	}
	if !utf8.Valid(event) {
		return &ValidationError{field, "is not UTF-8"}
	}
	return &ValidationError{field, "is not valid JSON"}
}
