package traffic

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cric-talk/guards/internal/input"
)

// A file is one file that is being read.
type file struct {
	Options
	name    string
	raw     io.Reader
	lines   *lines  // nil before the first line
	records records // the lines, or the objects of a document
	clock   clock
	tally   *Tally
	order   order

	export *export // whose records have the lines of a log; nil: a record is a line
	outer  clock   // of the times in export
	header []byte  // what follows #Fields:, until a line below it shows what separates fields
	plan   *plan   // nil before the format is known
	above  Source  // how the lines above the last header were read; empty: there were none
	tried  int     // records that did not tell the format

	head     Line
	activity string // of the last line
	ended    bool
	failed   error // why the file ended; nil: it was read to its end
}

// records are what is read from a file, one after the other.
type records interface {
	// next returns the next record, which is valid until the next call.
	next() ([]byte, error)

	// at returns what the last record is and its number, such as line 5.
	at() (string, int64)
}

// next sets head to the next request, in the order of time. It reports whether there is one.
// Before an error, it returns the requests that were read before it.
func (f *file) next() (bool, error) {
	for !f.ended && !f.order.isReady() {
		line, err := f.line()
		if err == nil {
			if err = f.order.add(line); err != nil {
				err = f.fault(err)
			}
		}
		if err == nil {
			continue
		}
		f.ended = true
		if !errors.Is(err, io.EOF) {
			f.failed = err
		}
		if err := f.order.end(); err != nil && f.failed == nil {
			f.failed = f.fault(err)
		}
	}
	if f.order.queue.size() == 0 {
		return false, f.failed
	}
	f.head = f.order.queue.pop()
	return true, nil
}

// line reads the next line that is a request.
func (f *file) line() (Line, error) {
	for {
		record, err := f.record()
		if errors.Is(err, io.EOF) {
			return Line{}, err
		}
		var line Line
		if err == nil {
			line, err = f.read(record)
		}
		if err == nil {
			f.tried = maxTries
			return line, nil
		}
		if broken, ok := errors.AsType[*fileError](err); ok {
			return line, broken
		}
		if f.tried < maxTries && f.plan != nil && f.plan.isGuess {
			f.plan = nil // the next object may tell more
			f.tried++
		}
		if err = f.fault(err); !f.SkipBad {
			return line, &BadLine{err}
		}
		if f.tally.Bad++; len(f.tally.FirstBad) < maxBad {
			f.tally.FirstBad = append(f.tally.FirstBad, err.Error())
		}
	}
}

// maxTries is how many bad lines can come before the first one that tells the format,
// such as what a server writes when it starts.
const maxTries = 1000

// A BadLine is the error for a line that is no request. [Options.SkipBad] skips it.
type BadLine struct{ error }

func (e *BadLine) Unwrap() error { return e.error }

// A fileError is wrong with a file as a whole, so no line can be skipped for it.
type fileError struct{ error }

func (e *fileError) Unwrap() error { return e.error }

// record returns the next record that is neither empty nor a header, and sets
// how to read it. A record may be several lines of CSV.
func (f *file) record() ([]byte, error) {
	if f.lines == nil {
		text, err := unpack(f.raw)
		if err != nil {
			return nil, &fileError{fmt.Errorf("%s: %w", f.name, err)}
		}
		f.lines = &lines{text: text}
		f.records = f.lines
	}
	for {
		record, err := f.records.next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, errTooLong):
			return nil, err
		case errors.Is(err, errDamaged):
			return nil, &fileError{f.fault(err)}
		case err != nil:
			return nil, &fileError{fmt.Errorf("%s: %w", f.name, err)}
		case len(bytes.TrimSpace(record)) == 0:
			continue
		}
		if f.isW3C(record) {
			continue
		}
		if f.plan != nil || f.export != nil {
			return record, nil
		}
		isRecord, err := f.recognize(record)
		if err != nil || isRecord {
			return record, err
		}
	}
}

// isW3C reports whether a record is a line with a # of W3C's format. Servers write
// such lines again when they start, possibly with other fields.
func (f *file) isW3C(record []byte) bool {
	if f.Format != Auto || record[0] != '#' || f.plan != nil && !f.plan.form.headed {
		return false
	}
	if header, ok := bytes.CutPrefix(record, []byte("#Fields:")); ok {
		f.above = f.planned()
		f.header, f.plan = bytes.Clone(header), nil
	}
	return true
}

// read returns the request of a record.
func (f *file) read(record []byte) (line Line, err error) {
	record, written, err := f.unwrap(record)
	if err != nil {
		return line, err
	}
	found, err := f.plan.read(record)
	if err != nil {
		return line, err
	}
	if line.Time, err = f.time(found.time, written); err != nil {
		return line, err
	}
	line.User, line.Limit = string(found.user), found.limit
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
	if line.Activity = f.nameOf(found); line.Activity == "" {
		return line, input.Invalid("activity", "missing or empty", "what the user did, such as create_post")
	}
	return line, nil
}

// unwrap returns the line of a log that a record of an export holds, and when it was
// written. Other records are lines themselves.
func (f *file) unwrap(record []byte) (line, written []byte, err error) {
	if f.export == nil {
		return record, nil, nil
	}
	line, written, err = f.export.read(record)
	if err != nil || f.plan != nil {
		return line, written, err
	}
	if f.plan, err = f.planOf(line); err != nil {
		return nil, nil, &fileError{f.fault(err)}
	}
	if f.plan == nil {
		err = errUnknownMessage
	}
	return line, written, err
}

// time reads the time of a request, or else the time when the line was written,
// according to an export.
func (f *file) time(text, written []byte) (int64, error) {
	switch {
	case text != nil:
		return f.clock.read(text, f.plan.form.utc, f.place)
	case written != nil:
		return f.outer.read(written, true, f.place)
	}
	return 0, f.plan.missing("time", f.plan.wanted[f.plan.times[0][0]])
}

// nameOf returns the activity of a request, or the pattern that fits it.
func (f *file) nameOf(found fields) string {
	if found.noActivity {
		return f.Activity
	}
	for _, pattern := range f.Patterns {
		if matches(pattern, found.activity) {
			return pattern
		}
	}
	if string(found.activity) != f.activity { // most lines repeat it, so it is not copied
		f.activity = string(found.activity)
	}
	return f.activity
}

// matches reports whether text fits a pattern. Each * stands for any text.
func matches(pattern string, text []byte) bool {
	begins, rest, more := strings.Cut(pattern, "*")
	if len(text) < len(begins) || string(text[:len(begins)]) != begins {
		return false
	}
	text = text[len(begins):]
	for more {
		var part string
		part, rest, more = strings.Cut(rest, "*")
		if !more {
			return bytes.HasSuffix(text, []byte(part))
		}
		i := bytes.Index(text, []byte(part))
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return len(text) == 0
}

// checkID returns an error for an id that no user and no subject can have.
func checkID(field, id string) error {
	err := input.CheckUserID(id)
	if e, ok := errors.AsType[*input.ValidationError](err); ok {
		return &input.ValidationError{Field: field, Problem: e.Problem}
	}
	return err
}

// place tells where the last record stands.
func (f *file) place() string {
	what, number := f.records.at()
	return fmt.Sprint(what, " ", number)
}

// fault returns err with the file and the place of the last record.
func (f *file) fault(err error) error { return fmt.Errorf("%s, %s: %w", f.name, f.place(), err) }

// source describes how the file was read.
func (f *file) source() Source {
	s := f.planned()
	s.Backwards = f.order.backwards
	if f.clock.zoneless {
		if s.Zone = "UTC"; f.Zone != nil {
			s.Zone = f.Zone.String()
		}
	}
	return s
}

// planned describes the plan, and those for the lines above a header.
func (f *file) planned() Source {
	if f.plan == nil {
		return f.above
	}
	switch s := f.plan.source(); {
	case f.above.User == "":
		return s
	case s.User == "":
		return f.above
	default:
		return f.above.with(s)
	}
}
