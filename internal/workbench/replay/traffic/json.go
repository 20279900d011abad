package traffic

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cric-talk/guards/internal/input"
)

// jsonFile finds the fields of a request in an object on each line.
type jsonFile struct {
	wanted   [3]string // paths of the fields: time, user and activity
	required bool      // each line must name an activity
	found    [3][]byte // values; nil: missing
	record   bytes.Reader
	decoder  *jsontext.Decoder
}

func newJSON(c Columns) *jsonFile {
	f := &jsonFile{wanted: [3]string{c.time(), c.user(), c.activity()}, required: c.Activity != ""}
	f.decoder = jsontext.NewDecoder(&f.record)
	return f
}

// parse implements [parser].
func (f *jsonFile) parse(record []byte) (found fields, err error) {
	f.record.Reset(record)
	f.decoder.Reset(&f.record)
	f.found = [3][]byte{}
	if err := f.object(""); err != nil {
		return found, problem(record, err)
	}
	if _, err := f.decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return found, errors.New("it continues after the JSON object, want one JSON object on each line")
	}
	texts := [3][]byte{}
	for i, field := range []string{"time", "user", "activity"} {
		if texts[i], err = f.text(i, field); err != nil {
			return found, err
		}
	}
	return fields{time: texts[0], user: texts[1], activity: texts[2], noActivity: f.found[2] == nil}, nil
}

var errNoObject = errors.New("it is not a JSON object")

// object reads an object. Path leads to it: it is empty or ends with a dot.
func (f *jsonFile) object(path string) error {
	if f.decoder.PeekKind() != '{' {
		if path == "" && f.decoder.PeekKind() != 0 {
			return errNoObject
		}
		return f.decoder.SkipValue()
	}
	if _, err := f.decoder.ReadToken(); err != nil {
		return err
	}
	for f.decoder.PeekKind() != '}' {
		token, err := f.decoder.ReadToken()
		if err != nil {
			return err
		}
		if err := f.member(path + token.String()); err != nil {
			return err
		}
	}
	_, err := f.decoder.ReadToken()
	return err
}

// member reads the value at path.
func (f *jsonFile) member(path string) error {
	for i, wanted := range f.wanted {
		if wanted == path {
			value, err := f.decoder.ReadValue()
			f.found[i] = bytes.Clone(value)
			return err
		}
	}
	for _, wanted := range f.wanted {
		if len(wanted) > len(path) && strings.HasPrefix(wanted, path) && wanted[len(path)] == '.' {
			return f.object(path + ".")
		}
	}
	return f.decoder.SkipValue()
}

// text returns the text of a value. A number counts as its digits.
func (f *jsonFile) text(i int, field string) ([]byte, error) {
	value := jsontext.Value(f.found[i])
	if value == nil {
		if field == "activity" && !f.required {
			return nil, nil
		}
		return nil, fmt.Errorf("it has no field %.40q for the %s; --columns %s=NAME names another", f.wanted[i], field, field)
	}
	switch value.Kind() {
	case '"':
		return jsontext.AppendUnquote(nil, value)
	case '0':
		return value, nil
	default:
		return nil, input.Invalid(field, "neither a string nor a number", "one of them")
	}
}

// problem describes why a record cannot be read, without its content.
func problem(record []byte, err error) error {
	switch {
	case errors.Is(err, errNoObject):
		return err
	case errors.Is(err, jsontext.ErrDuplicateName):
		return errors.New("it repeats a name")
	case !utf8.Valid(record):
		return errors.New("it is not UTF-8")
	}
	return errors.New("it is not valid JSON")
}
