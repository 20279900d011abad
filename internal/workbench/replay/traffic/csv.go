package traffic

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// A csvSplitter finds fields of CSV by their columns.
type csvSplitter struct {
	names []string // of the header
	at    []column
	texts [][]byte // of the last record

	quoted *csv.Reader // reads records with quotes; nil: make a new one
	record bytes.Reader
}

// A column is where a wanted field is.
type column struct{ index, position int }

// newCSV reads the header.
func newCSV(header []byte) (*csvSplitter, error) {
	s := &csvSplitter{}
	names, err := s.quotedTexts(header)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		s.names = append(s.names, strings.TrimSpace(name))
	}
	return s, nil
}

func (s *csvSplitter) want(index int, name string) bool {
	position := slices.Index(s.names, name)
	if position >= 0 {
		s.at = append(s.at, column{index, position})
	}
	return position >= 0
}

func (s *csvSplitter) fields() string { return strings.Join(s.names, ", ") }

// check returns an error unless the header has each column, and has it once. The
// column of the activity can be missing if optional is set and no flag names it.
func (s *csvSplitter) check(c Columns, optional bool, subjects []string) error {
	wanted := append([]string{c.time(), c.user()}, c.subjects(subjects)...)
	if !optional || c.Activity != "" || slices.Contains(s.names, c.activity()) {
		wanted = slices.Insert(wanted, 2, c.activity())
	}
	if c.Limit != "" {
		wanted = append(wanted, c.Limit)
	}
	for _, name := range wanted {
		at := slices.Index(s.names, name)
		if at < 0 {
			where := "the first line"
			if s.isHeader() {
				where = fmt.Sprintf("the header %.200s", strings.Join(s.names, ","))
			}
			return fmt.Errorf("%s has no column %.40q, want %s", where, name, c.header(optional))
		}
		if slices.Contains(s.names[at+1:], name) {
			return fmt.Errorf("the header has two columns %.40q", name)
		}
	}
	return nil
}

var columnName = regexp.MustCompile(`^[A-Za-z_@$][\w.@$ -]{0,39}$`)

// isHeader reports whether all names can be names of columns. If the header is
// missing, the first line is a request with the id of a user. Each request
// contains a time, which is no name of a column.
func (s *csvSplitter) isHeader() bool {
	return !slices.ContainsFunc(s.names, func(name string) bool { return !columnName.MatchString(name) })
}

func (s *csvSplitter) split(record []byte, found [][]byte) error {
	s.texts = s.texts[:0]
	if bytes.IndexByte(record, '"') < 0 {
		s.texts = slices.AppendSeq(s.texts, bytes.SplitSeq(record, []byte{','}))
	} else {
		texts, err := s.quotedTexts(record)
		if err != nil {
			return err
		}
		for _, text := range texts {
			s.texts = append(s.texts, []byte(text))
		}
	}
	if len(s.texts) != len(s.names) {
		return fmt.Errorf("it has %s, want %d as the header has", counted(len(s.texts), "field"), len(s.names))
	}
	for _, c := range s.at {
		found[c.index] = s.texts[c.position]
	}
	return nil
}

// counted returns a number of things in words.
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprint(n, " ", thing)
}

// quotedTexts reads a record that can have quotes.
func (s *csvSplitter) quotedTexts(record []byte) ([]string, error) {
	if s.quoted == nil {
		s.quoted = csv.NewReader(&s.record)
		s.quoted.FieldsPerRecord, s.quoted.ReuseRecord = -1, true
	}
	s.record.Reset(record)
	texts, err := s.quoted.Read()
	if err != nil || s.record.Len() > 0 {
		s.quoted = nil // it may hold the rest of the record
	}
	if e, ok := errors.AsType[*csv.ParseError](err); ok {
		err = e.Err // without the line number, which would always be 1
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("it is empty")
	}
	return texts, err
}
