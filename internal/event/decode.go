package event

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxBytes is the longest event.
const maxBytes = 64 << 10

// A Field is a member that an event may have.
type Field[T any] struct {
	Name string
	Read func(to *T, field string, value jsontext.Value) error
}

// Decode reads an event of these fields. It refuses what encoding/json lets
// pass (a name in another case, a repeated one, bytes that are not UTF-8, an
// unknown field), for that could limit somebody else, or nobody. The error is a
// *ValidationError.
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
		return to, &ValidationError{"event", "goes on after its end, want one JSON object"}
	}
	return to, nil
}

// readField reads a name and its value.
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
			return &ValidationError{name, "has a name twice, want each once"}
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

// unreadable is the error of JSON that can't be read at field.
func unreadable(field string, event []byte, err error) error {
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok && errors.Is(e, jsontext.ErrDuplicateName) {
		return &ValidationError{e.JSONPointer.LastToken(), "stands there twice, want it once"}
	}
	if !utf8.Valid(event) {
		return &ValidationError{field, "is not UTF-8"}
	}
	return &ValidationError{field, "is not valid JSON"}
}

// Text reads a string.
func Text(to *string, field string, v jsontext.Value) error {
	if v.Kind() != '"' {
		return Invalid(field, showValue(v), "a string")
	}
	text, err := jsontext.AppendUnquote(nil, v)
	*to = string(text)
	return err
}

// ID reads a string that no error may repeat, and that is not empty.
func ID(to *string, field string, v jsontext.Value) error {
	if v.Kind() != '"' {
		return Invalid(field, kindName(v.Kind(), v), "a string")
	}
	if len(v) == len(`""`) {
		return Invalid(field, "empty", "at least 1 character")
	}
	return Text(to, field, v)
}

// Whole reads a whole number of at least 1.
func Whole(to *int64, field string, v jsontext.Value) (err error) {
	if *to, err = strconv.ParseInt(string(v), 10, 64); err != nil || *to < 1 {
		return Invalid(field, showValue(v), "a whole number of at least 1")
	}
	return nil
}

// Bool reads true or false.
func Bool(to *bool, field string, v jsontext.Value) error {
	if v.Kind() != 't' && v.Kind() != 'f' {
		return Invalid(field, showValue(v), "true or false")
	}
	*to = v.Kind() == 't'
	return nil
}

// Texts reads an array of strings.
func Texts(to *[]string, field string, v jsontext.Value) error {
	d := jsontext.NewDecoder(bytes.NewReader(v))
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

func kindName(k jsontext.Kind, v []byte) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{':
		return "an object"
	case '[':
		return "an array"
	}
	if len(bytes.TrimSpace(v)) == 0 {
		return "empty"
	}
	return "not valid JSON"
}
