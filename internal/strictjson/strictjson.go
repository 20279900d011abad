// Package strictjson reads and writes JSON as the next version of encoding/json will.
//
// It refuses what encoding/json accepts: a repeated name, a name in another case such as
// USERID, and bytes that are not UTF-8. It gives values and tokens as they stand in the text.
// The module that does this has no stable version yet. Only this file imports it, so a new
// version, or Go's own encoding/json/v2, changes only this file.
package strictjson

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

type (
	// Value is one value, as it stands in the text.
	Value = jsontext.Value

	// Decoder reads a text token by token.
	Decoder = jsontext.Decoder

	// Kind is the first byte of a token.
	Kind = jsontext.Kind

	// SyntacticError tells where a text is not JSON.
	SyntacticError = jsontext.SyntacticError

	// Option is an option of Marshal, Unmarshal and NewDecoder.
	Option = json.Options
)

// ErrDuplicateName means that an object has a name twice.
var ErrDuplicateName = jsontext.ErrDuplicateName

// Options.
var (
	KnownMembers  = json.RejectUnknownMembers(true)    // an unknown name is an error
	RepeatedNames = jsontext.AllowDuplicateNames(true) // a name may stand twice, which saves the check
	AnyBytes      = jsontext.AllowInvalidUTF8(true)    // a text need not be UTF-8
	AsWritten     = jsontext.PreserveRawStrings(true)  // a text keeps its escapes
	Sorted        = json.Deterministic(true)           // maps are written in the order of their names
)

// NewDecoder returns a Decoder of the texts in r.
func NewDecoder(r io.Reader, options ...Option) *Decoder { return jsontext.NewDecoder(r, options...) }

// Marshal returns v as JSON.
func Marshal(v any, options ...Option) ([]byte, error) { return json.Marshal(v, options...) }

// Unmarshal reads one JSON value into v.
func Unmarshal(b []byte, v any, options ...Option) error { return json.Unmarshal(b, v, options...) }

// Problem tells in words what is wrong with a text that Unmarshal could not read, and where:
// "/limit is a number" or "/limt is unknown".
func Problem(err error) string {
	e, ok := errors.AsType[*json.SemanticError](err)
	switch {
	case !ok:
		return strings.TrimPrefix(err.Error(), "jsontext: ")
	case errors.Is(e.Err, json.ErrUnknownName):
		return string(e.JSONPointer) + " is unknown"
	case e.Err != nil:
		return fmt.Sprintf("%s: %v", e.JSONPointer, e.Err)
	}
	return strings.TrimSpace(fmt.Sprintf("%s is a %s, which does not fit", e.JSONPointer, e.JSONKind))
}

// AppendQuote appends a JSON string with this text. Its error is about bytes that are not
// UTF-8; it has replaced them.
func AppendQuote[T ~[]byte | ~string](b []byte, text T) ([]byte, error) {
	return jsontext.AppendQuote(b, text)
}

// AppendUnquote appends the text of a JSON string.
func AppendUnquote[T ~[]byte | ~string](b []byte, value T) ([]byte, error) {
	return jsontext.AppendUnquote(b, value)
}
