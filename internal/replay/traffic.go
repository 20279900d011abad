package replay

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cric-talk/guards/internal/input"
)

// Traffic reads recorded requests, one from each line. The lines are CSV with
// the header time,user,activity, or JSON objects with these names. Only one
// line is in memory at a time.
type Traffic struct {
	Back     int64         // lines so far whose time is before that of an earlier line: the clock stepped back
	Furthest time.Duration // the largest step back

	name   string
	lines  *bufio.Scanner
	number int64 // of the last line that was read; the first line is 1
	read   func(line []byte) (Line, error)
	latest int64 // the latest time of any line so far
}

// A Line is one request.
type Line struct {
	Time     int64 // Unix milliseconds
	User     string
	Activity string
}

const (
	header      = "time,user,activity"
	longestLine = 64 << 10 // bytes

	// furthestBack is how far the clocks that wrote the times may differ. If
	// lines are further out of order, the file was never sorted by time, and a
	// replay of it would be wrong.
	furthestBack = 2 * time.Minute

	latestTime = 253_402_300_799_999 // the end of the year 9999
)

// NewTraffic returns the traffic in r. Errors refer to it by name.
func NewTraffic(name string, r io.Reader) *Traffic {
	t := &Traffic{name: name, lines: bufio.NewScanner(r)}
	t.lines.Buffer(nil, longestLine)
	return t
}

// Next returns the next request, or io.EOF if there is none. Any other error
// names the line and the field that is wrong.
func (t *Traffic) Next() (Line, error) {
	for t.lines.Scan() {
		t.number++
		text := t.lines.Bytes()
		if t.number == 1 {
			text = bytes.TrimPrefix(text, []byte("\ufeff")) // spreadsheets put a byte order mark before CSV
		}
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		if t.read == nil {
			isHeader, err := t.recognize(text)
			if err != nil {
				return Line{}, t.fault(err)
			}
			if isHeader {
				continue
			}
		}
		line, err := t.read(text)
		if err == nil {
			err = t.inOrder(line)
		}
		if err != nil {
			return Line{}, t.fault(err)
		}
		return line, nil
	}
	switch err := t.lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		t.number++
		return Line{}, t.fault(fmt.Errorf("it is longer than %d bytes", longestLine))
	case err != nil:
		return Line{}, err
	}
	return Line{}, io.EOF
}

// fault returns err with the file and the line that was read last.
func (t *Traffic) fault(err error) error { return fmt.Errorf("%s, line %d: %w", t.name, t.number, err) }

// recognize determines the format from the first line that is not empty.
func (t *Traffic) recognize(text []byte) (isHeader bool, err error) {
	switch {
	case text[0] == '{':
		t.read = readJSON
		return false, nil
	case string(text) == header:
		t.read = readCSV
		return true, nil
	}
	return false, input.Invalid("header", input.Show(string(text)), header+" (CSV), or a JSON object on each line")
}

// inOrder checks that the lines are sorted by time, apart from small steps
// back.
func (t *Traffic) inOrder(line Line) error {
	if line.Time >= t.latest {
		t.latest = line.Time
		return nil
	}
	back := time.Duration(t.latest-line.Time) * time.Millisecond
	if back > furthestBack {
		return fmt.Errorf("time is %v before that of an earlier line, want lines sorted by time (clocks may differ by %v)", back, furthestBack)
	}
	t.Back++
	t.Furthest = max(t.Furthest, back)
	return nil
}

func readCSV(text []byte) (line Line, err error) {
	var record []string
	if bytes.IndexByte(text, '"') < 0 {
		for field := range bytes.SplitSeq(text, []byte{','}) {
			record = append(record, string(field))
		}
	} else if record, err = csv.NewReader(bytes.NewReader(text)).Read(); err != nil {
		if e, ok := errors.AsType[*csv.ParseError](err); ok {
			err = e.Err // without the line number, which would always be 1
		}
		return line, err
	}
	if len(record) != 3 {
		return line, fmt.Errorf("it has %d fields, want 3: %s", len(record), header)
	}
	if line.Time, err = parseTime(record[0]); err != nil {
		return line, err
	}
	line.User, line.Activity = record[1], record[2]
	return line, line.validate()
}

// An object is a request that is being read from a JSON object.
type object struct {
	Line
	timed bool // the object has the field time
}

var fields = []input.Field[object]{
	{Name: "time", Read: readTime},
	{Name: "user", Read: func(o *object, field string, v jsontext.Value) error { return input.ID(&o.User, field, v) }},
	{Name: "activity", Read: func(o *object, field string, v jsontext.Value) error { return input.Text(&o.Activity, field, v) }},
}

func readJSON(text []byte) (Line, error) {
	o, err := input.Decode(text, fields)
	if err != nil {
		if e, ok := errors.AsType[*input.ValidationError](err); ok && e.Field == "event" {
			err = fmt.Errorf("it %s", e.Problem)
		}
		return o.Line, err
	}
	if !o.timed {
		return o.Line, input.Invalid("time", "missing", wantTime)
	}
	return o.Line, o.validate()
}

func readTime(o *object, _ string, v jsontext.Value) (err error) {
	text := string(v)
	if v.Kind() == '"' {
		unquoted, _ := jsontext.AppendUnquote(nil, v)
		text = string(unquoted)
	}
	o.timed = true
	o.Time, err = parseTime(text)
	return err
}

const wantTime = "Unix milliseconds, or RFC 3339 such as 2026-01-05T12:00:00.250Z"

// parseTime reads a time in the years 1970 to 9999.
func parseTime(text string) (int64, error) {
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		var at time.Time
		at, err = time.Parse(time.RFC3339, text)
		ms = at.UnixMilli()
	}
	if err != nil || ms < 0 || ms > latestTime {
		return 0, input.Invalid("time", input.Show(text), wantTime)
	}
	return ms, nil
}

// validate returns an error if the request is not one that a guard accepts.
func (l *Line) validate() error {
	if err := input.CheckUserID(l.User); err != nil {
		if e, ok := errors.AsType[*input.ValidationError](err); ok {
			return &input.ValidationError{Field: "user", Problem: e.Problem}
		}
		return err
	}
	if l.Activity == "" {
		return input.Invalid("activity", "missing or empty", "what the user did, such as create_post")
	}
	return nil
}
