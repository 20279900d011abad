package input

import (
	"bytes"
	"cmp"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Text reads a string.
func Text(to *string, field string, v jsontext.Value) error {
	if v.Kind() != '"' {
		return Invalid(field, showValue(v), "a string")
	}
	text, err := jsontext.AppendUnquote(nil, v)
	*to = string(text)
	return err
}

// ID reads a string that is not empty. Its errors never show the value.
func ID(to *string, field string, v jsontext.Value) error {
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

// Whole reads a whole number of at least 1. As in JSON Schema, 1.0 and 1e0 are
// whole numbers.
func Whole(to *int64, field string, v jsontext.Value) (err error) {
	if *to, err = strconv.ParseInt(string(v), 10, 64); err != nil {
		*to = exact(string(v))
	}
	if *to < 1 {
		return Invalid(field, showValue(v), "a whole number of at least 1")
	}
	return nil
}

// exact returns the value of a number with a fraction or an exponent. It returns
// 0 if that is no whole number from 1 to 2^63 - 1. Values that are far out of
// range are found first, because as fractions they would fill the memory.
func exact(number string) int64 {
	if near, err := strconv.ParseFloat(number, 64); err != nil || near < 1 || near > 1<<63 {
		return 0
	}
	r, ok := new(big.Rat).SetString(number)
	if !ok || !r.IsInt() || !r.Num().IsInt64() {
		return 0
	}
	return r.Num().Int64()
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
func showValue(v jsontext.Value) string {
	if v.Kind() == '"' {
		text, _ := jsontext.AppendUnquote(nil, v)
		return Show(string(text))
	}
	return strings.Trim(Show(string(v)), `"`)
}

var kinds = map[jsontext.Kind]string{
	'n': "null", 't': "a boolean", 'f': "a boolean", '"': "a string", '0': "a number", '{': "an object", '[': "an array",
}

// kindName returns the kind of a JSON value in words.
func kindName(k jsontext.Kind, v []byte) string {
	if len(bytes.TrimSpace(v)) == 0 {
		return "empty"
	}
	return cmp.Or(kinds[k], "not valid JSON")
}
