package traffic

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cric-talk/guards/internal/input"
)

// A splitter finds fields of a record.
type splitter interface {
	// want makes split find the field with this name. It returns false if no record has it.
	want(index int, name string) bool

	// split sets found[index] of each wanted field that the record has. The texts
	// are valid until the next record.
	split(record []byte, found [][]byte) error

	// fields lists the names of all fields for an error, if they are known.
	fields() string
}

// A plan reads the request of a record: it knows which fields are its parts.
type plan struct {
	form     *form
	splitter splitter
	named    Columns // names that the caller gave
	hops     int

	wanted []string
	found  [][]byte
	none   []bool // no record has the field

	times                    [][]int // indexes in wanted, as all that follow
	users                    []int   // the first one that is known counts
	used                     []bool  // for each of users, whether it was the user of a record
	activity                 int     // -1: none, or the request
	required                 bool    // each record must name an activity
	subjects                 []int
	limit                    int // -1: none
	method                   int // -1: none
	paths                    []int
	isRequest                bool // the activity is the method and the path
	isGuess                  bool // of an object of JSON that is of no known log
	buffer, line, timeBuffer []byte
}

// fields are the texts of a request. They are valid until the next record.
type fields struct {
	time, user, activity []byte
	noActivity           bool // the record names none
	subjects             [maxSubjects][]byte
	limit                *int64 // nil: none
}

// newPlan returns the plan for the records of a form.
func newPlan(f *form, s splitter, o Options) (*plan, error) {
	c := o.Columns
	p := &plan{form: f, splitter: s, named: c, hops: max(1, o.Hops), activity: -1, limit: -1, method: -1}
	times, users := f.times, slices.Concat(f.users, f.addresses)
	if c.Time != "" {
		times = [][]string{{c.Time}}
	}
	if c.User != "" {
		users = []string{c.User}
	}
	for _, names := range times {
		p.times = append(p.times, p.wantAll(names))
	}
	p.users, p.used = p.wantAll(users), make([]bool, len(users))
	isRequest := c.Activity == "request" || c.Activity != "" && f.method == "" && slices.Contains(f.paths, c.Activity)
	switch {
	case len(f.paths) > 0 && (isRequest || c.Activity == "" && (o.Activity == "" || IsRequest(o.Activity))):
		p.isRequest = true
		if f.method != "" {
			p.method = p.want(f.method)
		}
		p.paths = p.wantAll(f.paths)
	case c.Activity != "" || f.name == "":
		p.activity, p.required = p.want(c.activity()), c.Activity != ""
	}
	p.subjects = p.wantAll(c.subjects(o.Subjects))
	if o.Numbers && (f.name == "" || c.Limit != "") {
		p.limit = p.want(cmp.Or(c.Limit, "limit"))
	}
	p.found = make([][]byte, len(p.wanted))
	return p, p.check(o)
}

// want returns the index of a wanted field.
func (p *plan) want(name string) int {
	if i := slices.Index(p.wanted, name); i >= 0 {
		return i
	}
	i := len(p.wanted)
	p.wanted = append(p.wanted, name)
	p.none = append(p.none, !p.splitter.want(i, name))
	return i
}

// wantAll returns the indexes of wanted fields.
func (p *plan) wantAll(names []string) (all []int) {
	for _, name := range names {
		all = append(all, p.want(name))
	}
	return all
}

// check returns an error if the caller named a field that no record has.
func (p *plan) check(o Options) error {
	if p.form.name == "" {
		return nil // CSV has its own check, and each object of JSON can have other fields
	}
	named := map[string]string{"time": o.Columns.Time, "user": o.Columns.User, "activity": o.Columns.Activity, "limit": o.Columns.Limit}
	for i, name := range o.Subjects {
		named[name] = o.Columns.subjects(o.Subjects)[i]
	}
	for _, field := range slices.Concat([]string{"time", "user", "activity", "limit"}, o.Subjects) {
		name := named[field]
		if i := slices.Index(p.wanted, name); name != "" && i >= 0 && p.none[i] {
			return input.Invalid("--columns "+field, input.Show(name), fmt.Sprintf("a field of %s: %s", p.form.name, p.splitter.fields()))
		}
	}
	return nil
}

// read returns the request of a record.
func (p *plan) read(record []byte) (r fields, err error) {
	clear(p.found)
	if err := p.splitter.split(record, p.found); err != nil {
		return r, err
	}
	if r.time, err = p.time(); err != nil {
		return r, err
	}
	if r.user, err = p.user(); err != nil {
		return r, err
	}
	if err := p.setActivity(&r); err != nil {
		return r, err
	}
	for i, index := range p.subjects {
		if isOther(p.found[index]) {
			return r, notText(p.wanted[index])
		}
		if text := p.clean(p.found[index], p.wanted[index]); p.form.name == "" || isKnown(text) {
			r.subjects[i] = text
		}
	}
	if p.limit >= 0 && isKnown(p.found[p.limit]) {
		n, ok := input.Number(string(p.found[p.limit]))
		if !ok {
			return r, input.Invalid(p.wanted[p.limit], "something else", "a whole number from 0 to 1000000, or nothing")
		}
		r.limit = &n
	}
	return r, nil
}

// isKnown reports whether a log has the value of a field.
func isKnown(text []byte) bool { return len(text) > 0 && string(text) != "-" }

func notText(field string) error {
	return input.Invalid(field, "neither a string nor a number", "one of them")
}

// missing returns the error for a record without a field.
func (p *plan) missing(field, name string) error {
	return fmt.Errorf("it has no field %.40q for the %s; --columns %s=NAME names another", name, field, field)
}

// time returns the text of the time, or nil if the record has none and the
// caller named no field for it.
func (p *plan) time() ([]byte, error) {
	for _, all := range p.times {
		first := p.found[all[0]]
		switch {
		case isOther(first):
			return nil, notText("time")
		case slices.ContainsFunc(all, func(i int) bool { return p.found[i] == nil }):
		case len(all) == 1:
			return first, nil
		default: // a date and a time
			p.timeBuffer = append(append(append(p.timeBuffer[:0], first...), ' '), p.found[all[1]]...)
			return p.timeBuffer, nil
		}
	}
	if p.named.Time != "" {
		return nil, p.missing("time", p.named.Time)
	}
	return nil, nil
}

// user returns the first of the users that is known.
func (p *plan) user() ([]byte, error) {
	for i, index := range p.users {
		if isOther(p.found[index]) {
			return nil, notText("user")
		}
		text := p.clean(p.found[index], p.wanted[index])
		if text == nil || p.form.name != "" && !isKnown(text) {
			continue
		}
		p.used[i] = true
		return text, nil
	}
	name := p.wanted[p.users[len(p.users)-1]]
	if p.form.name != "" && p.found[p.users[len(p.users)-1]] != nil {
		return nil, fmt.Errorf("%s is empty or -, want a user; --columns user=NAME names another field", name)
	}
	return nil, p.missing("user", name)
}

// setActivity sets what a request did.
func (p *plan) setActivity(r *fields) error {
	if p.isRequest {
		r.activity = p.request()
		return nil
	}
	if r.noActivity = p.activity < 0 || p.none[p.activity]; r.noActivity {
		return nil
	}
	r.activity = p.found[p.activity]
	switch {
	case isOther(r.activity):
		return notText("activity")
	case r.activity == nil && p.required:
		return p.missing("activity", p.wanted[p.activity])
	case r.activity == nil:
		r.noActivity = true
	case p.form.name != "" && bytes.Contains(r.activity, protocol):
		p.buffer = appendRequest(p.buffer[:0], r.activity)
		r.activity = p.buffer
	}
	return nil
}

// request returns the method and the path, such as POST /posts. If a client sent
// nothing or no HTTP, it returns - or what the client sent.
func (p *plan) request() []byte {
	var path []byte
	for _, index := range p.paths {
		if text := p.found[index]; isKnown(text) && !isOther(text) {
			path = text
			break
		}
	}
	line := path
	if p.method >= 0 && isKnown(p.found[p.method]) {
		p.line = append(append(append(p.line[:0], p.found[p.method]...), ' '), cmp.Or(string(path), "-")...)
		line = p.line
	}
	if len(line) == 0 {
		return []byte("-")
	}
	p.buffer = appendRequest(p.buffer[:0], line)
	return p.buffer
}

var protocol = []byte(" HTTP/")

// appendRequest appends the method and the path of a request line. The path has
// no host, and nothing from a question mark on.
func appendRequest(to, line []byte) []byte {
	if i := bytes.LastIndex(line, protocol); i >= 0 {
		line = line[:i]
	}
	line = bytes.TrimSpace(line)
	method, target, ok := bytes.Cut(line, []byte(" "))
	if !ok {
		return append(to, line...)
	}
	if routed, path, ok := bytes.Cut(target, []byte(" ")); ok && (bytes.Equal(routed, method) || string(routed) == "ANY") {
		target = path // of the route of an HTTP API, such as POST /posts or ANY /posts
	}
	if i := bytes.IndexByte(target, '?'); i >= 0 {
		target = target[:i]
	}
	if i := bytes.Index(target, []byte("://")); i > 0 {
		_, path, _ := bytes.Cut(target[i+3:], []byte("/"))
		target = append([]byte("/"), path...)
	}
	return append(append(append(to, method...), ' '), target...)
}

// IsRequest reports whether an activity is the method and the path of an HTTP
// request, or a pattern of them, such as POST /posts*.
func IsRequest(activity string) bool {
	return strings.Contains(activity, " /") || strings.Contains(activity, "*")
}

// clean returns the value of a field without a port. Of addresses that proxies
// forwarded, it returns the one that the last proxy added, or an earlier one if
// there are more hops.
func (p *plan) clean(text []byte, name string) []byte {
	first, _, isList := bytes.Cut(text, []byte(","))
	if strings.Contains(name, "orwarded") || isList && isAddress(withoutPort(first)) {
		return withoutPort(hop(text, p.hops))
	}
	if strings.Contains(name, ":") && p.form.line != "" { // it always has a port, and IPv6 no brackets
		if i := bytes.LastIndexByte(text, ':'); i > 0 {
			return bytes.Trim(text[:i], "[]")
		}
	}
	return withoutPort(text)
}

// hop returns an address of a list; 1 is the last one. If there are fewer, the
// request did not pass all proxies, and the first one counts.
func hop(list []byte, n int) []byte {
	for ; ; n-- {
		i := bytes.LastIndexByte(list, ',')
		if n == 1 || i < 0 {
			address := bytes.TrimSpace(list[i+1:])
			return bytes.TrimPrefix(bytes.TrimPrefix(address, []byte("%20")), []byte("+"))
		}
		list = list[:i]
	}
}

// withoutPort returns an address without its port and its brackets. It leaves
// any other text as it is.
func withoutPort(text []byte) []byte {
	colon := bytes.LastIndexByte(text, ':')
	host, port := text[:max(0, colon)], text[colon+1:]
	switch {
	case len(text) > 2 && text[0] == '[' && text[len(text)-1] == ']' && bytes.Count(text, []byte(":")) > 1:
		return text[1 : len(text)-1]
	case colon < 0 || !isNumber(port) || len(port) > 5:
		return text
	case len(host) > 2 && host[0] == '[' && host[len(host)-1] == ']':
		return host[1 : len(host)-1]
	case bytes.Count(host, []byte(".")) == 3 && len(bytes.Trim(host, "0123456789.")) == 0:
		return host
	}
	return text
}

// source describes what was read, for a person.
func (p *plan) source() Source {
	s := Source{Format: p.form.name}
	if p.named.User != "" || p.form.name == "" {
		return s
	}
	var names []string
	s.Address = true
	for i, used := range p.used {
		if used {
			names = append(names, p.wanted[p.users[i]])
			s.Address = s.Address && i >= len(p.form.users)
		}
	}
	s.User = strings.Join(names, ", ")
	s.Address = s.Address && s.User != ""
	return s
}

// userColumns returns the form of the caller's own CSV or JSON.
func userColumns(c Columns) *form {
	return &form{times: [][]string{{c.time()}}, users: []string{c.user()}}
}
