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
	"unicode/utf8"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/strictjson"
)

// csvFile finds the fields of a request by their columns.
type csvFile struct {
	columns              int      // of the header
	time, user, activity int      // indexes of columns; activity is -1 if there is none
	subjects             []int    // also indexes
	texts                [][]byte // of the last record

	quoted *csv.Reader // reads records with quotes; nil: make a new one
	record bytes.Reader
}

// newCSV reads the header. The column of the activity may be missing if
// optional is set and no flag names the column.
func newCSV(header []byte, c Columns, optional bool, subjects []string) (*csvFile, error) {
	f := &csvFile{subjects: make([]int, len(subjects))}
	names, err := f.split(header)
	if err != nil {
		return nil, fmt.Errorf("the first line is not the header of CSV: %w; --format nginx reads nginx logs", err)
	}
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
	}
	f.columns = len(names)
	type column struct {
		to       *int
		name     string
		optional bool
	}
	columns := []column{{&f.time, c.time(), false}, {&f.user, c.user(), false}, {&f.activity, c.activity(), optional && c.Activity == ""}}
	for i, name := range c.subjects(subjects) {
		columns = append(columns, column{&f.subjects[i], name, false})
	}
	for _, column := range columns {
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
	if slices.ContainsFunc(header, func(name string) bool { return !columnName.MatchString(name) }) {
		return "the first line"
	}
	return fmt.Sprintf("the header %.200s", strings.Join(header, ","))
}

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
	for i, at := range f.subjects {
		found.subjects[i] = f.texts[at]
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

// jsonFile finds the fields of a request in an object on each line.
type jsonFile struct {
	wanted   []string // paths of the fields: time, user, activity, and those of subjects
	names    []string // of subjects
	required bool     // each line must name an activity
	found    [][]byte // values; nil: missing
	record   bytes.Reader
	decoder  *strictjson.Decoder
}

func newJSON(c Columns, subjects []string) *jsonFile {
	f := &jsonFile{wanted: append([]string{c.time(), c.user(), c.activity()}, c.subjects(subjects)...), names: subjects, required: c.Activity != ""}
	f.found = make([][]byte, len(f.wanted))
	f.decoder = strictjson.NewDecoder(&f.record)
	return f
}

func (f *jsonFile) parse(record []byte) (found fields, err error) {
	f.record.Reset(record)
	f.decoder.Reset(&f.record)
	clear(f.found)
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
	found = fields{time: texts[0], user: texts[1], activity: texts[2], noActivity: f.found[2] == nil}
	for i, name := range f.names {
		if f.found[3+i] == nil {
			continue
		}
		if found.subjects[i], err = f.text(3+i, name); err != nil {
			return found, err
		}
	}
	return found, nil
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
	value := strictjson.Value(f.found[i])
	if value == nil {
		if field == "activity" && !f.required {
			return nil, nil
		}
		return nil, fmt.Errorf("it has no field %.40q for the %s; --columns %s=NAME names another", f.wanted[i], field, field)
	}
	switch value.Kind() {
	case '"':
		return strictjson.AppendUnquote(nil, value)
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
	case errors.Is(err, strictjson.ErrDuplicateName):
		return errors.New("it repeats a name")
	case !utf8.Valid(record):
		return errors.New("it is not UTF-8")
	}
	return errors.New("it is not valid JSON")
}

// nginxFile finds the fields of a request in a line of nginx's format
// "combined", which Apache writes too:
//
//	192.0.2.7 - alice [05/Jan/2026:12:00:00 +0000] "POST /posts?draft=1 HTTP/1.1" 201 93 "-" "curl/8.5.0"
//
// The user is remote_user, here alice, or remote_addr if remote_user is "-".
type nginxFile struct {
	user     string // remote_addr or remote_user; empty: the first of them that is known
	activity bool   // the activity is the method and the path, such as POST /posts
	buffer   []byte
}

func newNginx(c Columns) (*nginxFile, error) {
	f := &nginxFile{user: c.User, activity: c.Activity == "request"}
	switch {
	case c.Time != "" && c.Time != "time_local":
		return nil, input.Invalid("--columns time", input.Show(c.Time), "time_local")
	case c.User != "" && c.User != "remote_addr" && c.User != "remote_user":
		return nil, input.Invalid("--columns user", input.Show(c.User), "remote_addr or remote_user")
	case c.Activity != "" && !f.activity:
		return nil, input.Invalid("--columns activity", input.Show(c.Activity), "request, which is the method and the path")
	}
	return f, nil
}

var errNginx = errors.New(`it is not a line of the format combined, such as 192.0.2.7 - alice [05/Jan/2026:12:00:00 +0000] "POST /posts HTTP/1.1" 201 93`)

func (f *nginxFile) parse(record []byte) (found fields, err error) {
	address, rest, ok := bytes.Cut(record, []byte(" "))
	_, rest, ok2 := bytes.Cut(rest, []byte(" ")) // the client's identity, which is always -
	name, rest, ok3 := bytes.Cut(rest, []byte(" ["))
	at, rest, ok4 := bytes.Cut(rest, []byte(`] "`))
	if !ok || !ok2 || !ok3 || !ok4 {
		return found, errNginx
	}
	unknown := string(name) == "-"
	found.time, found.user, found.noActivity = at, name, !f.activity
	switch {
	case f.user == "remote_addr", f.user == "" && unknown:
		found.user = address
	case unknown:
		return found, fmt.Errorf("remote_user is -, want the name of a user; without --columns user=remote_user, the address counts as the user")
	}
	if f.activity {
		if found.activity, ok = f.request(rest); !ok {
			return found, errNginx
		}
	}
	return found, nil
}

// request returns the method and the path of a quoted request. It returns a
// request that is no HTTP as it is, and - for an empty one, which nginx logs if
// a client sends nothing.
func (f *nginxFile) request(text []byte) ([]byte, bool) {
	text, _, ok := bytes.Cut(text, []byte(`" `))
	if len(text) == 0 {
		return []byte("-"), ok
	}
	parts := bytes.Split(text, []byte(" "))
	if len(parts) != 3 {
		return text, ok
	}
	path, _, _ := bytes.Cut(parts[1], []byte("?"))
	f.buffer = append(append(append(f.buffer[:0], parts[0]...), ' '), path...)
	return f.buffer, ok
}
