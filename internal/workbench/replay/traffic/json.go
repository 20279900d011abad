package traffic

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cric-talk/guards/internal/strictjson"
)

// A jsonSplitter finds fields of an object by their paths.
type jsonSplitter struct {
	prefixed bool // other words stand before the object
	wanted   []string
	found    [][]byte
	record   bytes.Reader
	decoder  *strictjson.Decoder
}

func newJSON() *jsonSplitter {
	s := &jsonSplitter{}
	s.decoder = strictjson.NewDecoder(&s.record)
	return s
}

func (s *jsonSplitter) want(_ int, name string) bool {
	s.wanted = append(s.wanted, name)
	return true
}

func (s *jsonSplitter) fields() string { return "" }

// otherValue replaces a value that is neither a string nor a number.
var otherValue = []byte("{}")

func isOther(text []byte) bool { return len(text) > 0 && &text[0] == &otherValue[0] }

func (s *jsonSplitter) split(record []byte, found [][]byte) error {
	if s.prefixed {
		record = record[max(0, bytes.IndexByte(record, '{')):]
	}
	s.found = found
	s.record.Reset(record)
	s.decoder.Reset(&s.record)
	if err := s.object(""); err != nil {
		return problem(record, err)
	}
	if _, err := s.decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("it continues after the JSON object, want one JSON object on each line")
	}
	return nil
}

var errNoObject = errors.New("it is not a JSON object")

// object reads an object. Path leads to it: it is empty or ends with a dot.
func (s *jsonSplitter) object(path string) error {
	if s.decoder.PeekKind() != '{' {
		if path == "" && s.decoder.PeekKind() != 0 {
			return errNoObject
		}
		return s.decoder.SkipValue()
	}
	if _, err := s.decoder.ReadToken(); err != nil {
		return err
	}
	for s.decoder.PeekKind() != '}' {
		token, err := s.decoder.ReadToken()
		if err != nil {
			return err
		}
		if err := s.member(path + token.String()); err != nil {
			return err
		}
	}
	_, err := s.decoder.ReadToken()
	return err
}

// member reads the value at path.
func (s *jsonSplitter) member(path string) error {
	if i := slices.Index(s.wanted, path); i >= 0 {
		value, err := s.decoder.ReadValue()
		if err != nil {
			return err
		}
		s.found[i], err = textOf(value)
		return err
	}
	for _, wanted := range s.wanted {
		if len(wanted) > len(path) && strings.HasPrefix(wanted, path) && wanted[len(path)] == '.' {
			return s.object(path + ".")
		}
	}
	return s.decoder.SkipValue()
}

// textOf returns the text of a value. A number counts as its digits, and null as
// a missing field.
func textOf(value strictjson.Value) ([]byte, error) {
	switch value.Kind() {
	case '"':
		return strictjson.AppendUnquote([]byte{}, value)
	case '0':
		return bytes.Clone(value), nil
	case 'n':
		return nil, nil
	default:
		return otherValue, nil
	}
}

// problem describes why a record cannot be read, without its content.
func problem(record []byte, err error) error {
	switch {
	case errors.Is(err, errNoObject):
		return err
	case errors.Is(err, strictjson.ErrDuplicateName):
		return errors.New("it repeats a name")
	case !utf8.Valid(record):
		return errors.New("it is not UTF-8")
	}
	return errors.New("it is not valid JSON")
}

// recognizeObject returns the form of a JSON object, or nil if it is of no known log.
func recognizeObject(record []byte) *form {
	for _, f := range objects {
		s := newJSON()
		s.wanted = strings.Split(strings.Join(f.objects, "|"), "|")
		found := make([][]byte, len(s.wanted))
		if s.split(record, found) != nil {
			return nil
		}
		has := func(name string) bool { return found[slices.Index(s.wanted, name)] != nil }
		lacks := func(mark string) bool { return !slices.ContainsFunc(strings.Split(mark, "|"), has) }
		if !slices.ContainsFunc(f.objects, lacks) {
			return f
		}
	}
	return nil
}

// A document is JSON that is not one object on each line. It is an array of
// objects, objects over several lines, or pages of events, which aws logs
// filter-log-events and get-log-events print. A page is an object with the array
// "events". A document implements records.
type document struct {
	decoder *strictjson.Decoder
	isPages bool
	number  int64 // of the last object
}

// pageOfEvents is how a page begins. Tokens of other pages can stand before its events.
const pageOfEvents = `\{(\s*"\w+Token"\s*:\s*"[^"]*"\s*,)*\s*"events"\s*:`

// isDocument reports whether a file that begins with this text is a document.
var isDocument = regexp.MustCompile(`^\s*(\{\s*(\n|$)|\[\s*(\{|\[|\n|$)|` + pageOfEvents + `)`).Match

// isPages reports whether a document that begins with this text consists of pages.
var isPages = regexp.MustCompile(`^\s*` + pageOfEvents + `\s*\[`).Match

func (d *document) next() ([]byte, error) {
	for {
		switch kind := d.decoder.PeekKind(); {
		case kind == '[' && d.number == 0, kind == ']', kind == '}', kind == '{' && d.isPages && d.decoder.StackDepth() == 0:
			if _, err := d.decoder.ReadToken(); err != nil {
				return nil, d.broken(err)
			}
		case kind == '"' && d.decoder.StackDepth() > 0 && d.inObject(): // a name in a page
			if err := d.member(); err != nil {
				return nil, d.broken(err)
			}
		default:
			value, err := d.decoder.ReadValue()
			if errors.Is(err, io.EOF) {
				return nil, io.EOF
			}
			if err == nil {
				d.number++
			}
			return value, d.broken(err)
		}
	}
}

// member enters the array of events, or skips another member of a page.
func (d *document) member() error {
	name, err := d.decoder.ReadToken()
	if err == nil && name.String() == "events" && d.decoder.PeekKind() == '[' {
		_, err = d.decoder.ReadToken()
		return err
	}
	if err == nil {
		err = d.decoder.SkipValue()
	}
	return err
}

// inObject reports whether the next token is in an object, and not in an array.
func (d *document) inObject() bool {
	kind, _ := d.decoder.StackIndex(d.decoder.StackDepth())
	return kind == '{'
}

// broken returns an error about the whole text, because nothing tells where its next object begins.
func (d *document) broken(err error) error {
	if _, ok := errors.AsType[*strictjson.SyntacticError](err); ok || errors.Is(err, io.ErrUnexpectedEOF) {
		d.number++
		return errDamaged
	}
	return err
}

var errDamaged = errors.New("it is not valid JSON, or it ends too early")

func (d *document) at() (string, int64) { return "object", d.number }
