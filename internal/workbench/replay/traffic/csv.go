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

// csvFile finds the fields of a request by their columns.
type csvFile struct {
	columns              int      // of the header
	time, user, activity int      // indexes of columns; activity is -1 if there is none
	texts                [][]byte // of the last record

	quoted *csv.Reader // reads records with quotes; nil: make a new one
	record bytes.Reader
}

// newCSV reads the header. The column of the activity may be missing if
// optional is set and no flag names the column.
func newCSV(header []byte, c Columns, optional bool) (*csvFile, error) {
	f := &csvFile{}
	names, err := f.split(header)
	if err != nil {
		return nil, fmt.Errorf("the first line is not the header of CSV: %w; --format nginx reads nginx logs", err)
	}
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
	}
	f.columns = len(names)
	for _, column := range []struct {
		to       *int
		name     string
		optional bool
	}{{&f.time, c.time(), false}, {&f.user, c.user(), false}, {&f.activity, c.activity(), optional && c.Activity == ""}} {
		*column.to = slices.Index(names, column.name)
		if *column.to < 0 && !column.optional {
			return nil, fmt.Errorf("%s has no column %.40q, want %s", describe(names), column.name, c.header(optional))
		}
		if *column.to >= 0 && slices.Contains(names[*column.to+1:], column.name) {
			return nil, fmt.Errorf("the header has two columns %.40q", column.name)
		}
	}
	return f, nil
}

var columnName = regexp.MustCompile(`^[A-Za-z_@$][\w.@$ -]{0,39}$`)

// describe returns a header for an error. If the header is missing, the first
// line is a request with the id of a user. Each request contains a time, which
// is no name of a column.
func describe(header []string) string {
	for _, name := range header {
		if !columnName.MatchString(name) {
			return "the first line"
		}
	}
	return fmt.Sprintf("the header %.200s", strings.Join(header, ","))
}

// parse implements [parser].
func (f *csvFile) parse(record []byte) (found fields, err error) {
	f.texts = f.texts[:0]
	if bytes.IndexByte(record, '"') < 0 {
		f.texts = slices.AppendSeq(f.texts, bytes.SplitSeq(record, []byte{','}))
	} else {
		texts, err := f.split(record)
		if err != nil {
			return found, err
		}
		for _, text := range texts {
			f.texts = append(f.texts, []byte(text))
		}
	}
	if len(f.texts) != f.columns {
		return found, fmt.Errorf("it has %s, want %d as the header has", counted(len(f.texts), "field"), f.columns)
	}
	found = fields{time: f.texts[f.time], user: f.texts[f.user], noActivity: f.activity < 0}
	if f.activity >= 0 {
		found.activity = f.texts[f.activity]
	}
	return found, nil
}

// counted returns a number of things in words.
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprint(n, " ", thing)
}

// split reads a record that can have quotes.
func (f *csvFile) split(record []byte) ([]string, error) {
	if f.quoted == nil {
		f.quoted = csv.NewReader(&f.record)
		f.quoted.FieldsPerRecord, f.quoted.ReuseRecord = -1, true
	}
	f.record.Reset(record)
	texts, err := f.quoted.Read()
	if err != nil || f.record.Len() > 0 {
		f.quoted = nil // it may hold the rest of the record
	}
	if e, ok := errors.AsType[*csv.ParseError](err); ok {
		err = e.Err // without the line number, which would always be 1
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("it is empty")
	}
	return texts, err
}
