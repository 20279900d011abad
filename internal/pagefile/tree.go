package pagefile

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/cric-talk/guards/internal/strictjson"
)

// A node is one value of the text.
type node struct {
	kind       byte // the first one of its text, as in kinds
	line       int
	begin, end int      // its bytes in the text
	text       string   // of a text, without quotes and escapes; of a number, as it is written
	members    []member // of an object, in their order; a name can be repeated
	items      []node   // of a list
}

// A member is a name and a value of an object.
type member struct {
	name  string
	line  int
	value node
}

// member returns the text of a member of an object; empty: it has none, or another value.
func (n node) member(name string) string {
	for _, m := range n.members {
		if m.name == name && m.value.kind == '"' {
			return m.value.text
		}
	}
	return ""
}

// A parser reads a text and counts its lines.
type parser struct {
	text    []byte
	decoder *strictjson.Decoder
	counted int // bytes whose line ends are in line
	line    int
}

// parse reads a text of one value. If it is no JSON, it returns where and why.
func parse(text []byte) (node, *mistake) {
	p := &parser{text: text, line: 1, decoder: strictjson.NewDecoder(bytes.NewReader(text), strictjson.RepeatedNames)}
	n, err := p.value()
	if err == nil {
		if _, more := p.decoder.ReadToken(); more == nil {
			p.count(int(p.decoder.InputOffset()))
			return n, &mistake{p.line, "something follows after the end of the page"}
		} else if !errors.Is(more, io.EOF) {
			err = more
		}
	}
	if err != nil {
		return n, p.mistake(err)
	}
	return n, nil
}

// count moves to a byte of the text, whose line is then known.
func (p *parser) count(to int) {
	p.line += bytes.Count(p.text[p.counted:to], []byte("\n"))
	p.counted = to
}

// value reads a value.
func (p *parser) value() (n node, err error) {
	token, err := p.decoder.ReadToken()
	if err != nil {
		return n, err
	}
	n.kind = byte(token.Kind())
	n.end = int(p.decoder.InputOffset())
	n.begin = n.end - 1 // of an object and a list
	p.count(n.end)
	n.line = p.line
	switch n.kind {
	case '"', '0':
		n.text = token.String()
	case '[', '{':
		for p.decoder.PeekKind() != strictjson.Kind(n.kind+2) && err == nil { // ASCII has ] and } two after [ and {
			err = p.element(&n)
		}
		if err == nil {
			_, err = p.decoder.ReadToken()
		}
		n.end = int(p.decoder.InputOffset())
	}
	return n, err
}

// element reads the next element of a list, or the next name and value of an object.
func (p *parser) element(n *node) error {
	if n.kind == '[' {
		item, err := p.value()
		n.items = append(n.items, item)
		return err
	}
	name, err := p.value()
	if err != nil {
		return err
	}
	value, err := p.value()
	n.members = append(n.members, member{name.text, name.line, value})
	return err
}

// mistake tells in words why a text is no JSON.
func (p *parser) mistake(err error) *mistake {
	wrong, ok := errors.AsType[*strictjson.SyntacticError](err)
	if !ok { // the text ended before its first value
		return &mistake{1, "the file is empty"}
	}
	at := min(int(wrong.ByteOffset), len(p.text))
	rest := string(p.text[at:])
	what := wrong.Err.Error()
	switch {
	case rest == "" || errors.Is(wrong.Err, io.ErrUnexpectedEOF):
		what, at = "the file ends in the middle of a value", len(bytes.TrimRight(p.text, "\r\n"))
	case strings.HasPrefix(rest, "//"), strings.HasPrefix(rest, "/*"), strings.HasPrefix(rest, "#"):
		what = "a comment, and JSON has none; a description has room for one"
	case strings.HasPrefix(rest, ",") && strings.Contains(what, "start of value"):
		what = "a comma that no value follows"
	case strings.HasPrefix(rest, "\ufeff"):
		what = "the file begins with a byte order mark: save it as UTF-8 without one"
	case !utf8.ValidString(rest[:min(len(rest), 1)]), strings.Contains(what, "UTF-8"):
		what = "bytes that are not UTF-8"
	}
	return &mistake{1 + bytes.Count(p.text[:at], []byte("\n")), what}
}
