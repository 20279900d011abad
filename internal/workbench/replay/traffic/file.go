package traffic

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cric-talk/guards/internal/input"
)

// A file is one file that is being read.
type file struct {
	Options
	name  string
	raw   io.Reader
	lines *lines // nil before the first line
	parse parser // nil before the format is known
	clock clock
	tally *Tally

	head   Line
	latest int64 // the latest time of any line so far
}

// A parser finds the fields of a request in a record.
type parser interface {
	parse(record []byte) (fields, error)
}

// fields are the texts of a request. They are valid until the next record.
type fields struct {
	time, user, activity []byte
	noActivity           bool // the record names none
	subjects             [mostSubjects][]byte
}

// next reads the next request into head. It reports whether there is one.
func (f *file) next() (bool, error) {
	for {
		record, err := f.record()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		var line Line
		if err == nil {
			line, err = f.read(record)
		}
		if err == nil {
			f.head = line
			return true, f.inOrder(line.Time)
		}
		if broken, ok := errors.AsType[*fileError](err); ok {
			return false, broken
		}
		if err = f.fault(err); !f.SkipBad {
			return false, err
		}
		if f.tally.Bad++; len(f.tally.FirstBad) < mostBad {
			f.tally.FirstBad = append(f.tally.FirstBad, err.Error())
		}
	}
}

// A fileError is wrong with a file as a whole, so no line can be skipped for it.
type fileError struct{ error }

func (e *fileError) Unwrap() error { return e.error }

// record returns the next line that is neither empty nor a header. It may be
// several lines of CSV.
func (f *file) record() ([]byte, error) {
	if f.lines == nil {
		if err := f.open(); err != nil {
			return nil, &fileError{fmt.Errorf("%s: %w", f.name, err)}
		}
	}
	for {
		record, err := f.lines.next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, errTooLong):
			return nil, err
		case err != nil:
			return nil, &fileError{fmt.Errorf("%s: %w", f.name, err)}
		case len(bytes.TrimSpace(record)) == 0:
			continue
		case f.parse != nil:
			return record, nil
		}
		isHeader, err := f.recognize(record)
		if err != nil {
			return nil, &fileError{f.fault(err)}
		}
		if !isHeader {
			return record, nil
		}
	}
}

// open looks at the first bytes, which tell gzip and UTF-16 from text.
func (f *file) open() error {
	text := bufio.NewReaderSize(f.raw, longestLine)
	if magic, _ := text.Peek(2); string(magic) == "\x1f\x8b" {
		unpacked, err := gzip.NewReader(text)
		if err != nil {
			return err
		}
		text = bufio.NewReaderSize(unpacked, longestLine)
	}
	if mark, _ := text.Peek(3); string(mark) == "\ufeff" { // spreadsheets put a byte order mark before CSV
		_, _ = text.Discard(3)
	}
	if start, _ := text.Peek(4); bytes.HasPrefix(start, []byte("\xff\xfe")) || bytes.HasPrefix(start, []byte("\xfe\xff")) || bytes.IndexByte(start, 0) >= 0 {
		return errors.New("it is UTF-16 or no text, want UTF-8")
	}
	f.lines = &lines{text: text}
	return nil
}

// recognize sets the parser from the first line that is not empty.
func (f *file) recognize(record []byte) (isHeader bool, err error) {
	switch {
	case f.Format == Nginx:
		if f.parse, err = newNginx(f.Columns); err == nil && len(f.Subjects) > 0 {
			err = errors.New("a log of nginx has no column for a subject, want CSV or JSON lines")
		}
		return false, err
	case f.Format == JSON, f.Format == Auto && bytes.HasPrefix(bytes.TrimSpace(record), []byte("{")):
		f.parse = newJSON(f.Columns, f.Subjects)
		return false, nil
	}
	f.lines.quotes = true
	f.parse, err = newCSV(record, f.Columns, f.Activity != "", f.Subjects)
	return true, err
}

func (f *file) read(record []byte) (line Line, err error) {
	found, err := f.parse.parse(record)
	if err != nil {
		return line, err
	}
	if line.Time, err = f.clock.read(found.time, f.lines.number); err != nil {
		return line, err
	}
	line.User = string(found.user)
	if err := checkID("user", line.User); err != nil {
		return line, err
	}
	for i, name := range f.Subjects {
		if id := found.subjects[i]; len(id) > 0 {
			line.Subjects[i] = string(id)
			if err := checkID(name, line.Subjects[i]); err != nil {
				return line, err
			}
		}
	}
	switch {
	case found.noActivity:
		line.Activity = f.Activity
	case string(found.activity) == f.head.Activity:
		line.Activity = f.head.Activity // most lines repeat it, so it is not copied
	default:
		line.Activity = string(found.activity)
	}
	if line.Activity == "" {
		return line, input.Invalid("activity", "missing or empty", "what the user did, such as create_post")
	}
	return line, nil
}

// checkID returns an error for an id that no user and no subject can have.
func checkID(field, id string) error {
	err := input.CheckUserID(id)
	if e, ok := errors.AsType[*input.ValidationError](err); ok {
		return &input.ValidationError{Field: field, Problem: e.Problem}
	}
	return err
}

// furthestBack is how far the clocks that wrote the times may differ. If lines
// are further out of order, the file was never sorted by time, and a replay of
// it would be wrong.
const furthestBack = 2 * time.Minute

// inOrder checks that the lines are sorted by time, apart from small steps
// back. A file that is not sorted is an error even if bad lines are skipped.
func (f *file) inOrder(at int64) error {
	if at >= f.latest {
		f.latest = at
		return nil
	}
	by := time.UnixMilli(f.latest).Sub(time.UnixMilli(at)) // at most 292 years, the longest duration
	if by > furthestBack {
		return f.fault(fmt.Errorf("time is %v before that of an earlier line, want lines sorted by time (clocks may differ by %v)", by, furthestBack))
	}
	f.tally.Back++
	f.tally.Furthest = max(f.tally.Furthest, by)
	return nil
}

// fault returns err with the file and the line that was read last.
func (f *file) fault(err error) error {
	return fmt.Errorf("%s, line %d: %w", f.name, f.lines.number, err)
}

const longestLine = 64 << 10 // bytes

var errTooLong = fmt.Errorf("it is longer than %d bytes", longestLine)

// lines splits text into records. A record is a line, or several lines if the
// line breaks are inside the quotes of CSV.
type lines struct {
	text   *bufio.Reader // with room for longestLine
	quotes bool          // the text is CSV
	number int64         // of the first line of the last record; the file's first line is 1
	more   int64         // lines of the last record after its first one
	joined []byte
}

// next returns the next record. It is valid until the next call. After
// errTooLong, the next call returns the line that follows.
func (l *lines) next() ([]byte, error) {
	line, err := l.text.ReadSlice('\n')
	if len(line) == 0 && err != nil {
		return nil, err
	}
	l.number += 1 + l.more
	l.more = 0
	if errors.Is(err, bufio.ErrBufferFull) {
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = l.text.ReadSlice('\n')
		}
		if err == nil || errors.Is(err, io.EOF) {
			err = errTooLong
		}
		return nil, err
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if l.quotes && bytes.Count(line, []byte{'"'})%2 != 0 { // quotes come in pairs, so some are still open
		line = l.join(line)
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

// join returns line with the lines that follow inside its quotes. If the quotes
// are malformed or never end, it returns line alone, and that line is a bad one.
func (l *lines) join(line []byte) []byte {
	n := len(line)
	l.joined = append(l.joined[:0], line...)
	following, _ := l.text.Peek(longestLine - n)
	l.joined = append(l.joined, following...)
	r := csv.NewReader(bytes.NewReader(l.joined))
	_, err := r.Read()
	end := int(r.InputOffset())
	if errors.Is(err, csv.ErrQuote) || end == longestLine && l.joined[end-1] != '\n' { // the record may be longer
		return l.joined[:n]
	}
	record := l.joined[:end]
	l.more = int64(bytes.Count(bytes.TrimSuffix(record, newline), newline))
	_, _ = l.text.Discard(end - n)
	return record
}

var newline = []byte{'\n'}
