package traffic

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/cric-talk/guards/internal/strictjson"
)

var (
	errUnknown = errors.New("it is neither the header of CSV nor a line of a log that replay knows (" + knownLogs +
		"); --format fields --columns time=1,user=2 reads fields between spaces by their numbers")
	errUnknownMessage = errors.New("its message is no line of a log that replay knows (" + knownLogs + ")")
)

// recognize finds out from a record how the file is written. It returns false if
// the record holds no request, because it is a header or begins a document.
func (f *file) recognize(record []byte) (isRecord bool, err error) {
	text := bytes.TrimSpace(record)
	switch {
	case f.header != nil:
		form, s := w3cFields(f.header, record)
		f.header = nil
		f.plan, err = newPlan(form, s, f.Options)
	case f.Format == Fields:
		f.plan, err = f.numbered()
	case f.Format == Nginx:
		f.plan, err = newPlan(common, newText(common), f.Options)
	case f.Format == CSV:
		return false, f.csv(record)
	case f.records == f.lines && isDocument(text):
		first := slices.Concat(text, newline) // a copy, because what follows moves the text
		ahead, _ := f.lines.text.Peek(1 << 10)
		whole := io.MultiReader(bytes.NewReader(first), f.lines.text)
		f.records = &document{
			decoder: strictjson.NewDecoder(whole, strictjson.RepeatedNames, strictjson.AnyBytes),
			isPages: isPages(slices.Concat(first, ahead)),
		}
		return false, nil
	case f.Format == JSON:
		f.plan, err = newPlan(userColumns(f.Columns), newJSON(), f.Options)
	default:
		if f.export = f.jsonExport(text); f.export != nil {
			return true, nil
		}
		if f.plan, err = f.planOf(text); f.plan == nil && err == nil {
			return false, f.csv(record)
		}
	}
	if err != nil {
		err = &fileError{f.fault(err)}
	}
	return true, err
}

// planOf returns the plan for the lines of the log that this line comes from,
// or for JSON lines. It returns nil if it is neither.
func (f *file) planOf(line []byte) (*plan, error) {
	if len(line) > 0 && line[0] == '{' {
		if form := recognizeObject(line); form != nil {
			return newPlan(form, newJSON(), f.Options)
		}
		p, err := newPlan(userColumns(f.Columns), newJSON(), f.Options)
		p.isGuess = true
		return p, err
	}
	if form, skip := recognizeText(line); form != nil {
		s := newText(form)
		s.skip = skip
		return newPlan(form, s, f.Options)
	}
	if i := bytes.IndexByte(line, '{'); i > 0 { // behind a time, as Caddy's console format
		if form := recognizeObject(line[i:]); form != nil {
			s := newJSON()
			s.prefixed = true
			return newPlan(form, s, f.Options)
		}
	}
	return nil, nil
}

// numbered returns the plan for lines whose fields the caller names by their numbers.
func (f *file) numbered() (*plan, error) {
	if f.Columns.Time == "" || f.Columns.User == "" {
		return nil, errors.New("--format fields needs the numbers of fields, as in --columns time=1,user=2")
	}
	form := userColumns(f.Columns)
	form.name = "fields between spaces"
	return newPlan(form, &textSplitter{separator: ' '}, f.Options)
}

// csv reads the header of CSV.
func (f *file) csv(header []byte) error {
	s, err := newCSV(header)
	isHeader := err == nil && s.isHeader() && (len(s.names) > 1 || slices.Contains([]string{f.Columns.time(), f.Columns.user()}, s.names[0]))
	if !isHeader && f.Format != CSV {
		if f.tried++; f.SkipBad && f.tried < maxTries {
			return errUnknown // perhaps the next line is known
		}
		return &fileError{f.fault(errUnknown)}
	}
	if err != nil {
		return &fileError{f.fault(err)}
	}
	f.lines.quotes = true
	if line, time, ok := csvExport(s.names, f.Columns); ok {
		f.export = newExport(s, line, time)
		return nil
	}
	columns := f.Columns
	if columns.Time == "" && !slices.Contains(s.names, "time") && slices.Contains(s.names, exportTimes[0]) {
		columns.Time = exportTimes[0] // a query of Insights
	}
	if err = s.check(columns, f.Activity != "", f.Subjects); err == nil {
		f.plan, err = newPlan(userColumns(columns), s, f.Options)
	}
	if err != nil {
		return &fileError{f.fault(err)}
	}
	return nil
}

// times of exports, and their lines.
var (
	exportTimes = []string{"@timestamp", "timestamp"}
	exportLines = []string{"@message", "message"}
)

// An export holds the lines of a log, as CloudWatch gives them.
type export struct {
	splitter
	found [][]byte // a line and its time
}

// newExport returns the export whose records have these fields.
func newExport(s splitter, line, time string) *export {
	e := &export{splitter: s, found: make([][]byte, 2)}
	s.want(0, line)
	s.want(1, time)
	return e
}

// read returns the line and the time of a record.
func (e *export) read(record []byte) (line, time []byte, err error) {
	clear(e.found)
	if err := e.split(record, e.found); err != nil {
		return nil, nil, err
	}
	if e.found[0] == nil || isOther(e.found[0]) || isOther(e.found[1]) {
		return nil, nil, errors.New("it has no message or no time")
	}
	return bytes.TrimSpace(e.found[0]), e.found[1], nil
}

// csvExport returns the names of the columns of an export, if this is its header.
// CSV with a column of users is no export.
func csvExport(names []string, c Columns) (line, time string, ok bool) {
	has := func(all []string) string {
		i := slices.IndexFunc(all, func(name string) bool { return slices.Contains(names, name) })
		if i < 0 {
			return ""
		}
		return all[i]
	}
	line, time = has(exportLines), has(exportTimes)
	return line, time, line != "" && !slices.Contains(names, c.user())
}

// jsonExport returns the export that has this object as a record, or nil. An object with
// a user is not a record of an export. A line whose message is of no known log is such a
// record only in a document.
func (f *file) jsonExport(object []byte) *export {
	if len(object) == 0 || object[0] != '{' {
		return nil
	}
	for _, time := range exportTimes {
		for _, line := range exportLines {
			e := newExport(newJSON(), line, time)
			e.want(2, f.Columns.user())
			e.found = make([][]byte, 3)
			message, written, err := e.read(object)
			if err != nil || written == nil || e.found[2] != nil {
				continue
			}
			if p, _ := f.planOf(message); p != nil || f.records != f.lines {
				return newExport(newJSON(), line, time)
			}
		}
	}
	return nil
}
