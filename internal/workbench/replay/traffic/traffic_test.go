package traffic_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/testkit"
	. "github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

// start is when the traffic of these tests begins, at the start of a day.
const start = 1_767_571_200_000 // 2026-01-05T00:00:00Z

func lines(r *Reader) (all []Line, err error) {
	for {
		line, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, line)
	}
}

// read returns the lines of one file.
func read(o Options, text string) ([]Line, error) {
	return lines(NewReader(o, File{"t.csv", strings.NewReader(text)}))
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	testkit.Must(io.WriteString(w, text))(t)
	testkit.OK(t, w.Close())
	return b.String()
}

func TestFormats(t *testing.T) {
	want := []Line{{Time: start, User: "u1", Activity: "create_post"}, {Time: start + 250, User: `a"b,c`, Activity: "like"}, {Time: start + 1000, User: "u1", Activity: "like"}}
	for name, text := range map[string]string{
		"CSV":          "time,user,activity\n1767571200000,u1,create_post\n1767571200250,\"a\"\"b,c\",like\n1767571201000,u1,like\n",
		"RFC 3339":     "time,user,activity\n2026-01-05T00:00:00Z,u1,create_post\n2026-01-05T00:00:00.25Z,\"a\"\"b,c\",like\n2026-01-05T05:30:01+05:30,u1,like",
		"seconds":      "time,user,activity\n1767571200,u1,create_post\n1767571200.25,\"a\"\"b,c\",like\n1767571201.0009,u1,like",
		"a sheet's":    "\ufefftime,user,activity\r\n1767571200000,u1,create_post\r\n\r\n1767571200250,\"a\"\"b,c\",like\r\n1767571201000,u1,like\r\n",
		"more columns": "id,user,\"note\",activity, time\n1,u1,,create_post,1767571200000\n2,\"a\"\"b,c\",\"two\nlines, \"\"quoted\"\"\r\n\",like,1767571200250\n3,u1,\"x\ny\",like,1767571201000",
		"JSON lines":   `{"time":1767571200000,"user":"u1","activity":"create_post"}` + "\n" + `{"user":"a\"b,c","activity":"like","time":"1767571200250"}` + "\n\n" + ` {"time":"2026-01-05T00:00:01Z","user":"u1","activity":"like"} `,
		"JSON, spaced": "\ufeff\n" + `{"time":1767571200000,"user":"u1","activity":"create_post"}` + "\r\n" + `{"user":"a\u0022b,c","activity":"like","time":1767571200250}` + "\n" + `{"time":1767571201000,"user":"u1","activity":"like"}`,
		"more fields":  `{"time":1767571200,"user":"u1","activity":"create_post","ip":{"user":7},"n":[1,{}]}` + "\n" + `{"user":"a\"b,c","a":null,"activity":"like","time":1767571200.250}` + "\n" + `{"time":1767571201,"user":"u1","activity":"like"}`,
	} {
		for packed, text := range map[string]string{"": text, ", gzip": zipped(t, text)} {
			got, err := lines(NewReader(Options{}, File{"x", iotest.OneByteReader(strings.NewReader(text))}))
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%s%s: %v (-want +got):\n%s", name, packed, err, diff)
			}
		}
	}
	if got, err := read(Options{}, "\n \n"); err != nil || got != nil {
		t.Errorf("a file of empty lines: %v, %v, want nothing", got, err)
	}
}

func TestOptions(t *testing.T) {
	const log = `192.0.2.7 - alice [05/Jan/2026:01:00:00 +0100] "POST /posts?draft=1 HTTP/1.1" 201 93 "-" "curl/8.5.0"` + "\n" +
		`2001:db8::1 - - [05/Jan/2026:00:00:01 +0000] "GET /" 200 5 "-" "a \"b\" [c"` + "\n"
	for _, tt := range []struct {
		o    Options
		text string
		want []Line
	}{
		{Options{Columns: Columns{Time: "ts", User: "account_id"}, Activity: "act"}, "ts,account_id,user\n1767571200,u1,x\n", []Line{{Time: start, User: "u1", Activity: "act"}}},
		{Options{Columns: Columns{Activity: "verb"}, Activity: "act"}, "verb,time,user\nlike,1767571200,u1\n", []Line{{Time: start, User: "u1", Activity: "like"}}},
		{Options{Activity: "act"}, "activity,time,user\nlike,1767571200,u1\n", []Line{{Time: start, User: "u1", Activity: "like"}}},
		{
			Options{Columns: Columns{Time: "at", User: "request.user.id"}, Activity: "act"},
			`{"request":{"user":{"id":42}},"at":1767571200}` + "\n" + `{"request.user.id":"u1","at":1767571200,"activity":"like"}`,
			[]Line{{Time: start, User: "42", Activity: "act"}, {Time: start, User: "u1", Activity: "like"}},
		},
		{Options{Unit: Millis}, "time,user,activity\n5,u1,a\n1767571200,u1,a", []Line{{Time: 5, User: "u1", Activity: "a"}, {Time: 1_767_571_200, User: "u1", Activity: "a"}}},
		{Options{Unit: Seconds}, "time,user,activity\n5,u1,a\n5.5,u1,a", []Line{{Time: 5000, User: "u1", Activity: "a"}, {Time: 5500, User: "u1", Activity: "a"}}},
		{Options{Format: Nginx, Activity: "act"}, log, []Line{{Time: start, User: "alice", Activity: "act"}, {Time: start + 1000, User: "2001:db8::1", Activity: "act"}}},
		{Options{Format: Nginx, Columns: Columns{User: "remote_addr", Activity: "request"}}, log, []Line{{Time: start, User: "192.0.2.7", Activity: "POST /posts"}, {Time: start + 1000, User: "2001:db8::1", Activity: "GET /"}}},
		{ // an empty room is none, and its column has another name
			Options{Activity: "act", Subjects: []string{"room", "tenant"}, Columns: Columns{Subjects: [3]string{"room_id"}}},
			"time,room_id,user,tenant\n1767571200,r1,u1,t1\n1767571200,,u1,t1\n",
			[]Line{{Time: start, User: "u1", Activity: "act", Subjects: [3]string{"r1", "t1"}}, {Time: start, User: "u1", Activity: "act", Subjects: [3]string{"", "t1"}}},
		},
		{
			Options{Activity: "act", Subjects: []string{"room"}, Columns: Columns{Subjects: [3]string{"in.room"}}},
			`{"user":"u1","time":1767571200,"in":{"room":42}}` + "\n" + `{"user":"u1","time":1767571200}`,
			[]Line{{Time: start, User: "u1", Activity: "act", Subjects: [3]string{"42"}}, {Time: start, User: "u1", Activity: "act"}},
		},
		{ // a client connects and sends nothing
			Options{Format: Nginx, Columns: Columns{Activity: "request"}},
			`192.0.2.7 - - [05/Jan/2026:00:00:00 +0000] "" 400 0 "-" "-"` + "\n" + `192.0.2.7 - - [05/Jan/2026:00:00:00 +0000] "-" 408 -`,
			[]Line{{Time: start, User: "192.0.2.7", Activity: "-"}, {Time: start, User: "192.0.2.7", Activity: "-"}},
		},
	} {
		got, err := read(tt.o, tt.text)
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%+v: %v (-want +got):\n%s", tt.o, err, diff)
		}
	}
}

// The files of two servers, and the rotated files of one, are read in the order
// of time.
func TestSeveralFiles(t *testing.T) {
	r := NewReader(Options{},
		File{"new", strings.NewReader("user,time,activity\na1,1767571203,act\na2,1767571203,act\na3,1767571209,act\n")},
		File{"empty", strings.NewReader("")},
		File{"old", strings.NewReader(zipped(t, `{"time":1767571200000,"user":"b1","activity":"act"}`+"\n"+`{"time":1767571203000,"user":"b2","activity":"act"}`+"\n"+`{"time":1767571205000,"user":"b3","activity":"act"}`))},
	)
	got, err := lines(r)
	if users := usersOf(got); err != nil || users != "b1 b2 a1 a2 b3 a3" || r.Name() != "new, empty, old" {
		t.Errorf("%s: %s, %v", r.Name(), users, err)
	}
}

func TestBadLinesAreSkipped(t *testing.T) {
	const text = "time,user,activity,note\n1767571200,u1,a,\nnoon,u1,a,\n1767571201,u 1,a,\n1767571201,u2,a,\"open\n1767571202,u3,a,\"\"\n1767571203000,u4,a,\n" +
		"1767571204,u5,a,\"1\n2\"\n1767571204\n1767571204,u7,a,\"x\"y\n1767571204,u8,a,\"x\"\n"
	r := NewReader(Options{SkipBad: true}, File{"t.csv", strings.NewReader(text + strings.Repeat("x", 200_000) + "\n1767571205,u6,a,\n")})
	got, err := lines(r)
	want := []Line{{Time: start, User: "u1", Activity: "a"}, {Time: start + 2000, User: "u3", Activity: "a"}, {Time: start + 4000, User: "u5", Activity: "a"}, {Time: start + 4000, User: "u8", Activity: "a"}, {Time: start + 5000, User: "u6", Activity: "a"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	first := []string{
		"t.csv, line 3: time is not a time, want Unix seconds, Unix milliseconds, or RFC 3339 such as 2026-01-05T12:00:00.250Z",
		"t.csv, line 4: user has U+0020 as character 2, want 1 to 128 printable ASCII characters without a space",
		`t.csv, line 5: extraneous or missing " in quoted-field`,
	}
	if diff := cmp.Diff(first, r.FirstBad); diff != "" || r.Bad != 7 {
		t.Errorf("%d bad lines, want 7; the first (-want +got):\n%s", r.Bad, diff)
	}
}

// Whatever a file contains, each line that is read is a request that a guard
// accepts, and bad lines can be skipped.
func FuzzReader(f *testing.F) {
	f.Add("time,user,activity\n1767571200000,u1,create_post\n2026-01-05T00:00:00.25Z,\"a\"\"b\",like\n")
	f.Add(`{"time":1767571200000,"user":"u1","activity":"create_post"}` + "\n")
	f.Add(`192.0.2.7 - alice [05/Jan/2026:01:00:00 +0100] "POST /posts?draft=1 HTTP/1.1" 201`)
	f.Add("\ufeff\r\n\n")
	for _, log := range testkit.Must(txtar.ParseFile("testdata/logs.txtar"))(f).Files {
		f.Add(string(log.Data))
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, o := range []Options{{}, {Activity: "a", SkipBad: true}, {Format: Nginx, Columns: Columns{Activity: "request"}}, {SkipBad: true, Hops: 2, Patterns: []string{"* /*s"}}, {Format: Fields, Columns: Columns{Time: "1", User: "2", Activity: "3"}}} {
			got, err := read(o, text)
			if err != nil && !strings.HasPrefix(err.Error(), "t.csv") {
				t.Errorf("%q: %v", text, err)
			}
			for _, l := range got {
				if l.Time < 0 || l.Time > policy.Latest || len(l.User) < 1 || len(l.User) > 128 || strings.ContainsAny(l.User, " \n\x00") || l.Activity == "" {
					t.Errorf("%q is read as %+v", text, l)
				}
			}
		}
	})
}

var update = flag.Bool("update", false, "write testdata/requests.txtar")

// Each log is recognized by its lines and read without options. The file
// testdata/logs.txtar has lines of each, and testdata/requests.txtar the time, the user
// and the activity of the requests in them.
func TestKnownLogs(t *testing.T) {
	logs := testkit.Must(txtar.ParseFile("testdata/logs.txtar"))(t)
	wanted, err := txtar.ParseFile("testdata/requests.txtar")
	if err != nil && !*update {
		t.Fatal(err)
	}
	result := &txtar.Archive{Comment: []byte("The requests in the logs of logs.txtar. The head of each says how the log was read.\n")}
	for _, log := range logs.Files {
		for _, ending := range []string{"\n", "\r\n"} {
			text := strings.ReplaceAll(string(log.Data), "\n", ending)
			r := NewReader(Options{}, File{"log", strings.NewReader(text)})
			got, err := lines(r)
			var b strings.Builder
			for _, s := range r.Sources() {
				fmt.Fprintf(&b, "# %+v\n", s)
				if _, name, _ := strings.Cut(": "+log.Name, ": "); !strings.HasSuffix(name, s.Format) {
					t.Errorf("%s is read as %s", log.Name, s.Format)
				}
			}
			for _, line := range got {
				fmt.Fprintf(&b, "%s %s %s\n", time.UnixMilli(line.Time).UTC().Format("2006-01-02T15:04:05.000"), line.User, line.Activity)
			}
			if err != nil {
				t.Errorf("%s: %v", log.Name, err)
			}
			file := txtar.File{Name: log.Name, Data: []byte(b.String())}
			if !*update {
				testkit.Same(t, log.Name, string(find(wanted, log.Name)), b.String())
			} else if ending == "\n" {
				result.Files = append(result.Files, file)
			}
		}
	}
	if *update {
		testkit.OK(t, os.WriteFile("testdata/requests.txtar", txtar.Format(result), 0o600))
	}
}

func find(a *txtar.Archive, name string) []byte {
	for _, f := range a.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

// A line can have a number of its caller. In a known log, only a named field is one.
func TestNumbersOfLines(t *testing.T) {
	const w3c = "#Fields: date time c-ip cs-method cs-uri-stem sc-bytes limit\n2026-01-05 12:00:00 192.0.2.1 GET / 7 8\n2026-01-05 12:00:01 192.0.2.1 GET / - 9\n"
	for _, tt := range []struct {
		o          Options
		text, want string
	}{
		{Options{Numbers: true}, "time,user,activity,limit\n1767571200,u1,a,500\n1767571200,u1,a,\n1767571200,u1,a,-\n1767571200,u1,a,0\n1767571200,u1,a,1000000\n", "500 - - 0 1000000 "},
		{Options{Numbers: true}, header + "1767571200,u1,a\n", "- "},
		{Options{}, "time,user,activity,limit\n1767571200,u1,a,many\n", "- "},
		{Options{Numbers: true, Columns: Columns{Limit: "bought"}}, "time,user,activity,bought,limit\n1767571200,u1,a,7,8\n", "7 "},
		{Options{Numbers: true}, `{"time":1767571200,"user":"u1","activity":"a","limit":500}` + "\n" + `{"time":1767571200,"user":"u1","activity":"a","limit":null}` + "\n" + `{"time":1767571200,"user":"u1","activity":"a","limit":"5"}` + "\n", "500 - 5 "},
		{Options{Numbers: true, Columns: Columns{Limit: "plan.calls"}}, `{"time":1767571200,"user":"u1","activity":"a","plan":{"calls":3}}` + "\n", "3 "},
		{Options{Numbers: true}, w3c, "- - "},
		{Options{Numbers: true, Columns: Columns{Limit: "sc-bytes"}}, w3c, "7 - "},
	} {
		lines, err := read(tt.o, tt.text)
		var got strings.Builder
		for _, line := range lines {
			if line.Limit == nil {
				got.WriteString("- ")
			} else {
				fmt.Fprint(&got, *line.Limit, " ")
			}
		}
		if err != nil || got.String() != tt.want {
			t.Errorf("%s: %s, %v, want %s", tt.text, got.String(), err, tt.want)
		}
	}
	for _, text := range []string{"many", "-1", "1.5", "1000001", "secret1", "1e3"} {
		checkRefused(t, Options{Numbers: true}, "time,user,activity,limit\n1767571200,u1,a,"+text+"\n", "line 2: limit is something else, want a whole number from 0 to 1000000, or nothing")
	}
	checkRefused(t, Options{Numbers: true}, `{"time":1767571200,"user":"u1","activity":"a","limit":{"a":1}}`, "line 1: limit is something else, want a whole number")
	checkRefused(t, Options{Numbers: true, Columns: Columns{Limit: "bought"}}, header, `line 1: the header time,user,activity has no column "bought"`)
	checkRefused(t, Options{Numbers: true, Columns: Columns{Limit: "bought"}}, w3c, `line 2: --columns limit is "bought", want a field of a W3C log: date, `)
}
