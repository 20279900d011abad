// Package traffic reads recorded requests from files.
//
// A file is CSV with a header, JSON lines, the log of a web server or of AWS, or
// an export of CloudWatch that holds such lines. It can be compressed with gzip or
// zstd. [Reader] recognizes all of them by their content.
//
// For example, this file is read with the columns time=ts,user=account:
//
//	id,account,ts,path
//	1,u1,1767571200,/posts
//	2,u2,1767571201,/likes
//
// It contains a request of u1 at 2026-01-05T00:00:00Z and one of u2 a second
// later. Errors name the file and the line, but never the id of a user.
package traffic

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/input"
)

// A Line is one request.
type Line struct {
	Time     int64 // Unix milliseconds
	User     string
	Activity string
	Subjects [maxSubjects]string // the ids of [Options.Subjects], in their order; empty: the line names none
	Limit    *int64              // the number that the caller gave for the user's only limit, 0 to 1,000,000; nil: none
}

// maxSubjects is how many subjects an activity can have.
const maxSubjects = 3

// Options describe the form of the files. The zero Options read CSV and JSON with
// the fields time, user and activity, and the known logs.
type Options struct {
	Format   Format
	Columns  Columns
	Unit     Unit
	Activity string         // of lines that name no activity; empty: each line must name one
	Patterns []string       // activities; * in them stands for any text, and a line whose activity fits has this one
	Subjects []string       // names of subjects that lines have, such as room; at most maxSubjects
	Numbers  bool           // lines can have a number in the column limit
	SkipBad  bool           // skip lines that are no requests, instead of ending with an error
	Zone     *time.Location // of times without a zone; nil: UTC
	Hops     int            // which address of X-Forwarded-For counts, from the end; 0 and 1: the last one
}

// A Format is how a file is written.
type Format string

// The formats. Auto recognizes the others, but Fields, and the known logs. Nginx is
// the common and the combined format of nginx and Apache. Fields are fields between
// spaces, which the columns name by their numbers.
const (
	Auto   Format = ""
	CSV    Format = "csv"
	JSON   Format = "json"
	Nginx  Format = "nginx"
	Fields Format = "fields"
)

// A File is a source of requests. Errors refer to it by its name.
type File struct {
	Name string
	Text io.Reader
}

// A Tally counts what was unusual in the lines so far.
type Tally struct {
	Back     int64         // lines out of order: their time is before the time of an earlier line of their file
	Furthest time.Duration // the largest such difference

	Bad      int64    // lines that were skipped because they are no requests
	FirstBad []string // what is wrong with the first of them, with file and line; at most maxBad
}

const maxBad = 3

// A Source is how a file was read.
type Source struct {
	Format    string `json:"format,omitempty"`    // of a known log, with its article: an ALB log
	User      string `json:"user,omitempty"`      // the fields that named users, if the caller did not choose
	Address   bool   `json:"address,omitempty"`   // they are addresses of clients
	Zone      string `json:"zone,omitempty"`      // of the times without a zone; empty: there are none
	Backwards bool   `json:"backwards,omitempty"` // the file ran backwards, and was read from its end
}

// A Reader reads the requests of several files in the order of their time. It
// holds the lines of ten minutes of each file in memory, at most 65,536, and
// a whole file if it runs backwards.
type Reader struct {
	Tally
	all    []*file
	unread []*file // all files, before the first request
	files  []*file // those with more requests; the first one has the earliest head
	name   string  // of all files, for errors
}

// NewReader returns a Reader of files.
func NewReader(o Options, files ...File) *Reader {
	r := &Reader{}
	var names []string
	for _, f := range files {
		r.unread = append(r.unread, &file{Options: o, name: f.Name, raw: f.Text, clock: clock{set: o.Unit, zone: o.Zone}, tally: &r.Tally, order: order{tally: &r.Tally}})
		names = append(names, f.Name)
	}
	r.all = r.unread
	r.name = strings.Join(names, ", ")
	return r
}

// NewKnown returns a Reader of requests that are known already, in the order of their time.
func NewKnown(name string, lines []Line) *Reader {
	r := NewReader(Options{}, File{Name: name})
	r.all[0].ended, r.all[0].order.queue.sorted = true, slices.Clone(lines)
	return r
}

// Name returns the names of the files, for messages.
func (r *Reader) Name() string { return r.name }

// Sources returns how the files were read so far, each way once. It has none for
// a file of CSV or JSON lines that needs no explanation.
func (r *Reader) Sources() (all []Source) {
	for _, f := range r.all {
		s := f.source()
		i := slices.IndexFunc(all, func(o Source) bool { return o.Format == s.Format && o.Zone == s.Zone && o.Backwards == s.Backwards })
		switch {
		case s == Source{}:
		case i < 0:
			all = append(all, s)
		default:
			all[i] = all[i].with(s)
		}
	}
	return all
}

// with returns s with the users of another file of its kind. Addresses are the last ones.
func (s Source) with(other Source) Source {
	if s.Address {
		s, other = other, s
	}
	names := strings.Split(s.User, ", ")
	for name := range strings.SplitSeq(other.User, ", ") {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	s.User = strings.TrimPrefix(strings.Join(names, ", "), ", ")
	s.Address = s.Address && other.Address
	return s
}

// Next returns the next request, or io.EOF if there is none. Any other error
// names the file, the line and the field that is wrong.
//
// The files of several servers can cover the same time: Next always takes the
// earliest request. Each file must be in the order of time itself, forwards or
// backwards, with lines that are at most ten minutes out of order.
func (r *Reader) Next() (Line, error) {
	if r.unread != nil {
		for _, f := range r.unread {
			if more, err := f.next(); err != nil {
				return Line{}, err
			} else if more {
				r.files = append(r.files, f)
			}
		}
		slices.SortStableFunc(r.files, func(a, b *file) int { return cmp.Compare(a.head.Time, b.head.Time) })
		r.unread = nil
	} else if len(r.files) > 0 { // its head was the last request
		if more, err := r.files[0].next(); err != nil {
			return Line{}, err
		} else if !more {
			r.files = r.files[1:]
		}
		for i := 1; i < len(r.files) && r.files[i].head.Time < r.files[i-1].head.Time; i++ {
			r.files[i-1], r.files[i] = r.files[i], r.files[i-1]
		}
	}
	if len(r.files) == 0 {
		return Line{}, io.EOF
	}
	return r.files[0].head, nil
}

// Columns are the names of the fields in the files. An empty name is the usual
// one: time, user, activity, limit, or the name of the subject. In JSON, a dot in a name leads
// into an object: request.user is the field user of the object request.
type Columns struct {
	Time, User, Activity, Limit string
	Subjects                    [maxSubjects]string // in the order of [Options.Subjects]
}

const wantColumns = "time=NAME, user=NAME, activity=NAME, room=NAME for --subject room, and limit=NAME, separated by commas"

// ParseColumns reads names such as time=ts,user=account_id, and the names of the
// columns of subjects.
func ParseColumns(text string, subjects ...string) (c Columns, err error) {
	fields := map[string]*string{"time": &c.Time, "user": &c.User, "activity": &c.Activity, "limit": &c.Limit}
	for i, subject := range subjects {
		fields[subject] = &c.Subjects[i]
	}
	for part := range strings.SplitSeq(text, ",") {
		field, name, ok := strings.Cut(strings.TrimSpace(part), "=")
		to := fields[field]
		if !ok || to == nil || name == "" || *to != "" {
			return c, input.Invalid("--columns", input.Show(text), wantColumns)
		}
		*to = name
	}
	return c, nil
}

func (c Columns) time() string     { return cmp.Or(c.Time, "time") }
func (c Columns) user() string     { return cmp.Or(c.User, "user") }
func (c Columns) activity() string { return cmp.Or(c.Activity, "activity") }

// subjects returns the names of the columns of subjects with these names.
func (c Columns) subjects(names []string) []string {
	columns := make([]string, len(names))
	for i, name := range names {
		columns[i] = cmp.Or(c.Subjects[i], name)
	}
	return columns
}

// header describes the columns that a file of CSV must have, for an error.
func (c Columns) header(optional bool) string {
	if optional && c.Activity == "" {
		return c.time() + " and " + c.user() + "; --columns time=NAME,user=NAME names others"
	}
	return c.time() + ", " + c.user() + " and " + c.activity() + "; --columns time=NAME,user=NAME names others"
}
