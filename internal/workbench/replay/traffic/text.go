package traffic

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// The ways to write a field.
const (
	plain    = ' '
	quoted   = '"'
	brackets = '['
	braces   = '{'
)

// A word is one field of a line.
type word struct {
	text  []byte // without its quotes or brackets
	kind  byte
	glued bool // no separator is between it and the field before
}

// cutWord returns the first field of a line and what follows it. Spaces can
// be repeated. It reports whether there is a field.
func cutWord(line []byte, separator byte) (w word, rest []byte, ok bool) {
	if separator != ' ' {
		if len(line) > 0 && line[0] == quoted && separator == ',' {
			if end := closing(line); end > 0 {
				return word{text: line[1:end], kind: quoted}, bytes.TrimPrefix(line[end+1:], []byte{separator}), true
			}
		}
		text, rest, more := bytes.Cut(line, []byte{separator})
		return word{text: text, kind: plain}, rest, more || len(text) > 0
	}
	glued := true
	for len(line) > 0 && line[0] == ' ' {
		line, glued = line[1:], false
	}
	if len(line) == 0 {
		return w, nil, false
	}
	end := -1
	switch line[0] {
	case quoted:
		end = closing(line)
	case brackets: // not the brackets of an IPv6 address with a port
		end = bytes.IndexByte(line, ']')
		if end > 0 && end+1 < len(line) && line[end+1] != ' ' && line[end+1] != quoted {
			end = -1
		}
	case braces:
		end = bytes.IndexByte(line, '}')
	}
	if end > 0 {
		return word{line[1:end], line[0], glued}, line[end+1:], true
	}
	if end = bytes.IndexByte(line, ' '); end < 0 {
		end = len(line)
	}
	return word{line[:end], plain, glued}, line[end:], true
}

// closing returns the index of the quote that closes the one at the start of
// text, or -1. A backslash keeps the character behind it from closing.
func closing(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case quoted:
			return i
		}
	}
	return -1
}

// A textSplitter finds fields of lines by their position.
type textSplitter struct {
	name      string // of the form, for errors
	separator byte
	braces    bool
	skip      int // words in front of the first field
	names     []string
	kinds     []byte // of the fields in names, if they matter
	at        []int  // for each position, the index of the wanted field; -1: not wanted
}

// newText returns a splitter of the lines of a form.
func newText(f *form) *textSplitter {
	s := &textSplitter{name: f.name, separator: f.separator, braces: f.braces}
	if s.separator == 0 {
		s.separator = ' '
	}
	for _, w := range s.all([]byte(f.line)) {
		s.names, s.kinds = append(s.names, string(w.text)), append(s.kinds, w.kind)
	}
	return s
}

// all returns the fields of a line.
func (s *textSplitter) all(line []byte) (words []word) {
	for {
		w, rest, ok := cutWord(line, s.separator)
		if !ok {
			return words
		}
		if w.kind != braces || !s.braces {
			words = append(words, w)
		}
		line = rest
	}
}

// want finds a field by its name or its number. It returns false if the lines have no such field.
func (s *textSplitter) want(index int, name string) bool {
	position := slices.Index(s.names, name)
	if n, err := strconv.Atoi(name); position < 0 && err == nil && n >= 1 && n <= maxFields {
		position = n - 1
	}
	if position < 0 {
		return false
	}
	for len(s.at) <= position {
		s.at = append(s.at, -1)
	}
	s.at[position] = index
	return true
}

// maxFields is the highest number of a field.
const maxFields = 200

// fields lists the names, for an error.
func (s *textSplitter) fields() string {
	if len(s.names) == 0 {
		return "the number of a field, such as 1"
	}
	return strings.Join(s.names, ", ") + ", or the number of a field"
}

func (s *textSplitter) split(record []byte, found [][]byte) error {
	for range s.skip {
		_, rest, _ := cutWord(record, ' ')
		record = bytes.TrimLeft(rest, " ")
	}
	for position, index := range s.at {
		w, rest, ok := cutWord(record, s.separator)
		for ok && s.braces && w.kind == braces {
			w, rest, ok = cutWord(rest, s.separator)
		}
		if !ok {
			return s.wrong()
		}
		if record = rest; index < 0 {
			continue
		}
		if position < len(s.kinds) && s.kinds[position] != plain && s.kinds[position] != w.kind &&
			(s.kinds[position] != quoted || string(w.text) != "-") { // a dash stands for any quoted field
			return s.wrong()
		}
		found[index] = w.text
	}
	return nil
}

func (s *textSplitter) wrong() error {
	if s.name == "" {
		return fmt.Errorf("it has fewer than %s", counted(len(s.at), "field"))
	}
	return fmt.Errorf("it is not a line of %s", s.name)
}

// maxSkipped is how many words of another program can stand before a line.
const maxSkipped = 8

// A known log of lines is a form that is ready to be compared with lines.
type known struct {
	*form
	words               []word // of a line
	time, address, last int    // the positions of the time, of an address, and of the last field that a request needs
}

var knownTexts = sync.OnceValue(func() (all []known) {
	for _, f := range texts {
		s := newText(f)
		k := known{form: f, words: s.all([]byte(f.line))}
		k.time, k.address = slices.Index(s.names, f.times[0][0]), slices.Index(s.names, f.addresses[0])
		for _, name := range slices.Concat(f.times[0], f.addresses, f.paths) {
			k.last = max(k.last, slices.Index(s.names, name))
		}
		all = append(all, k)
	}
	return all
})

// recognizeText returns the form of a line and how many words stand before it.
// It returns nil if no form fits.
func recognizeText(line []byte) (f *form, skip int) {
	spaced := (&textSplitter{separator: ' '}).all(line)
	unbraced := slices.DeleteFunc(slices.Clone(spaced), func(w word) bool { return w.kind == braces })
	for _, k := range knownTexts() {
		words := spaced
		switch {
		case k.separator == ',':
			words = (&textSplitter{separator: ','}).all(line)
		case k.braces:
			words = unbraced
		}
		for skip := 0; skip <= maxSkipped && skip+k.last < len(words); skip++ {
			if k.fits(words[skip:]) {
				return k.form, skip
			}
		}
	}
	return nil, 0
}

// fits reports whether a line has the fields that a request needs, where and
// as the form has them.
func (k *known) fits(words []word) bool {
	dashes := words[k.address].kind == plain && isAddress(words[k.address].text) // enough is known to accept a dash instead of a request
	for i, want := range k.words[:k.last+1] {
		w := words[i]
		isDash := dashes && want.kind == quoted && string(w.text) == "-"
		if w.kind != want.kind && !isDash || i > 0 && w.glued != want.glued {
			return false
		}
	}
	_, _, err := new(clock).date(words[k.time].text)
	return err == nil
}

func isAddress(text []byte) bool {
	_, err := netip.ParseAddr(string(text))
	return err == nil
}

// w3cFields returns the form and the splitter of W3C's extended format. Header is
// what follows #Fields:, and line is the first line below it: CloudFront
// separates fields by tabs, and others by spaces.
func w3cFields(header, line []byte) (*form, *textSplitter) {
	f, s := *w3c, &textSplitter{separator: ' '}
	for name := range bytes.FieldsSeq(header) {
		s.names = append(s.names, string(name))
	}
	if bytes.IndexByte(line, '\t') >= 0 {
		s.separator = '\t'
	}
	if slices.Contains(s.names, "x-edge-location") {
		f.name = "a CloudFront log"
	}
	s.name = f.name
	return &f, s
}
