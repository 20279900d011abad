package traffic_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/cric-talk/guards/internal/testkit"
	. "github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

const (
	albLine    = `http %s app/my-loadbalancer/50dc6c495c0c9188 %s 10.0.0.1:80 0.000 0.001 0.000 200 200 34 366 "GET http://www.example.com:80/ HTTP/1.1" "curl/7.46.0" - - a "b" "-" "-" 0 2018-07-02T22:22:48.364000Z "forward" "-" "-" "10.0.0.1:80" "200" "-" "-" TID_1` + "\n"
	nginxLine  = `192.0.2.7 - alice [05/Jan/2026:12:00:00 +0000] "POST /posts/7?a HTTP/1.1" 201 93 "-" "curl" "203.0.113.1:99, 203.0.113.2, [2001:db8::3]:4711"` + "\n"
	header     = "time,user,activity\n"
	twoUsers   = "alice" + " alice"
	unreadable = "it is neither the header of CSV nor a line of a log that replay knows"
)

// users returns the users of the requests, and what is wrong.
func users(o Options, text string) string {
	got, err := read(o, text)
	if err != nil {
		return strings.TrimPrefix(usersOf(got)+" "+err.Error(), " ")
	}
	return usersOf(got)
}

func usersOf(lines []Line) string {
	var all []string
	for _, line := range lines {
		all = append(all, line.User)
	}
	return strings.Join(all, " ")
}

func TestUsersOfLogs(t *testing.T) {
	named := func(user string, hops int) Options { return Options{Columns: Columns{User: user}, Hops: hops} }
	for _, tt := range []struct {
		o          Options
		text, want string
	}{
		{Options{}, nginxLine, "alice"},
		{named("remote_addr", 0), nginxLine, "192.0.2.7"},
		{named("1", 0), nginxLine, "192.0.2.7"},
		{named("http_x_forwarded_for", 0), nginxLine, "2001:db8::3"}, // the last address
		{named("10", 1), nginxLine, "2001:db8::3"},
		{named("ip", 2), `{"time":1767571200,"ip":"203.0.113.1, 203.0.113.2","activity":"a"}`, "203.0.113.1"},
		{named("http_x_forwarded_for", 2), nginxLine, "203.0.113.2"},
		{named("http_x_forwarded_for", 3), nginxLine, "203.0.113.1"},
		{named("http_x_forwarded_for", 9), nginxLine, "203.0.113.1"}, // it did not pass all proxies
		{named("11", 0), nginxLine, "t.csv, line 1: it is not a line of a log in the common or combined format"},
		{named("request_id", 0), strings.ReplaceAll(`{"requestTime":"09/Apr/2015:12:34:56 +0000","httpMethod":"GET","ip":"192.0.2.1","request_id":"r1"}`, "\n", ""), "r1"},
		{named("request.headers.X", 0), `{"ts":1646861401.5,"request":{"remote_ip":"127.0.0.1","method":"GET","uri":"/","headers":{"X":["a"]}}}`, "t.csv, line 1: user is neither a string nor a number, want one of them"},
		{named("", 0), `{"ts":1646861401.5,"user_id":"","request":{"method":"GET","uri":"/"}}`, `t.csv, line 1: it has no field "request.remote_addr" for the user; --columns user=NAME names another`},
		{Options{}, header + "1767571200,192.0.2.7:443,a\n1767571200,[2001:db8::1]:443,a\n1767571200,[2001:db8::1],a\n1767571200,a:b:3,a\n1767571200,1:2,a\n1767571200,-,a\n",
			"192.0.2.7 2001:db8::1 2001:db8::1 a:b:3 1:2 -"},
		{Options{Format: Fields, Columns: Columns{Time: "1", User: "3", Activity: "4"}}, `2026-01-05T12:00:00Z [info] u1 "GET /a?b HTTP/1.1" 5` + "\n", "u1"},
		{Options{Format: Fields, Columns: Columns{Time: "1", User: "9"}, Activity: "a"}, "2026-01-05T12:00:00Z u1\n", "t.csv, line 1: it has fewer than 9 fields"},
		{Options{Format: Fields}, "2026-01-05T12:00:00Z u1\n", "t.csv, line 1: --format fields needs the numbers of fields, as in --columns time=1,user=2"},
		{Options{Format: Fields, Columns: Columns{Time: "1", User: "ip"}}, "2026-01-05T12:00:00Z u1\n", `t.csv, line 1: --columns user is "ip", want a field of fields between spaces: the number of a field, such as 1`},
		{Options{Subjects: []string{"ip"}, Columns: Columns{Subjects: [3]string{"http_x_forwarded_for"}}}, nginxLine, "alice"},
		{Options{}, `-:- [05/Jan/2026:12:00:00.200] <OCSP-UPDATE> -/- 1/0/-1/-1/3000 503 93 - - SC-- 0/0/0/0/3 0/0 {} "GET http://127.0.0.1/a HTTP/1.1"`, // of HAProxy itself
			"t.csv, line 1: client_ip:client_port is empty or -, want a user; --columns user=NAME names another field"},
	} {
		if got := users(tt.o, tt.text); got != tt.want {
			t.Errorf("%+v: %s\nwant %s", tt.o, got, tt.want)
		}
	}
	got, err := read(Options{Subjects: []string{"ip"}, Columns: Columns{Subjects: [3]string{"http_x_forwarded_for"}}}, nginxLine)
	if err != nil || got[0].Subjects[0] != "2001:db8::3" {
		t.Errorf("%v, %v, want the subject 2001:db8::3", got, err)
	}
}

// Files of one kind are told once, with all fields that named users.
func TestSources(t *testing.T) {
	const anonymous = `192.0.2.7 - - [05/Jan/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 1` + "\n"
	const common = "a log in the common or combined format"
	const w3c = "#Fields: date time c-ip cs-username\n2026-01-05 12:00:00 192.0.2.7 alice\n#Fields: date time c-ip\n"
	for _, tt := range []struct {
		o     Options
		files []string
		want  []Source
	}{
		{Options{}, []string{anonymous, anonymous}, []Source{{Format: common, User: "remote_addr", Address: true}}},
		{Options{}, []string{anonymous, nginxLine, ""}, []Source{{Format: common, User: "remote_user, remote_addr"}}},
		{Options{}, []string{nginxLine, anonymous}, []Source{{Format: common, User: "remote_user, remote_addr"}}},
		{Options{}, []string{w3c}, []Source{{Format: "a W3C log", User: "cs-username"}}},
		{Options{}, []string{w3c + "2026-01-05 12:00:01 192.0.2.7\n"}, []Source{{Format: "a W3C log", User: "cs-username, c-ip"}}},
		{Options{Columns: Columns{User: "remote_addr"}}, []string{anonymous, nginxLine}, []Source{{Format: common}}},
		{Options{Activity: "a"}, []string{header + "1767571200,u1,a\n", `{"time":1767571200,"user":"u1"}`}, nil},
	} {
		var files []File
		for _, text := range tt.files {
			files = append(files, File{"f", strings.NewReader(text)})
		}
		r := NewReader(tt.o, files...)
		_, err := lines(r)
		if diff := cmp.Diff(tt.want, r.Sources()); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}

// A time without a zone is UTC unless the caller names a zone. In the hour that a
// zone has twice, a log goes on.
func TestZones(t *testing.T) {
	berlin := testkit.Must(time.LoadLocation("Europe/Berlin"))(t)
	const zoneless = header + "2026-10-25 01:59:59.5,u1,a\n2026-10-25T02:30:00,u1,a\n2026-10-25 02:59:59,u1,a\n2026-10-25 02:00:00,u1,a\n2026-10-25 02:30:00,u1,a\n2026-10-25 03:00:00,u1,a\n"
	const zoned = header + "2026-10-25 00:00:00Z,u1,a\n2026-10-25 02:00:01+02,u1,a\n2026-10-25 00:00:02 UTC,u1,a\n2026-10-25 02:00:03 +0200,u1,a\n2026-10-25T02:00:04+0200,u1,a\n25/Oct/2026:02:00:05 +0200,u1,a\n"
	for _, tt := range []struct {
		zone *time.Location
		text string
		said string
		want string
	}{
		{berlin, zoneless, "Europe/Berlin", "23:59:59.500 00:30:00.000 00:59:59.000 01:00:00.000 01:30:00.000 02:00:00.000"},
		{berlin, header + "2026-10-25 02:30:00,u1,a\n2026-10-25 02:40:00,u1,a\n2026-10-25 02:35:00,u1,a\n", "Europe/Berlin", "00:30:00.000 00:35:00.000 00:40:00.000"}, // a late line
		{nil, header + "2026-10-25 01:59:59.5,u1,a\n2026/10/25 02:30:00,u1,a\n", "UTC", "01:59:59.500 02:30:00.000"},
		{berlin, zoned, "", "00:00:00.000 00:00:01.000 00:00:02.000 00:00:03.000 00:00:04.000 00:00:05.000"},
		{berlin, "#Fields: date time c-ip cs-method cs-uri-stem\n2026-10-25 02:30:00 192.0.2.1 GET /\n", "", "02:30:00.000"}, // W3C's times are UTC
	} {
		r := NewReader(Options{Zone: tt.zone}, File{"t.csv", strings.NewReader(tt.text)})
		got, err := lines(r)
		var times []string
		for _, line := range got {
			times = append(times, time.UnixMilli(line.Time).UTC().Format("15:04:05.000"))
		}
		said := ""
		if all := r.Sources(); len(all) > 0 {
			said = all[0].Zone
		}
		if strings.Join(times, " ") != tt.want || err != nil || said != tt.said {
			t.Errorf("%s: %v, %v, zone %q, want %s, zone %q", tt.text, times, err, said, tt.want, tt.said)
		}
	}
}

// A pattern stands for all activities that fit it. An activity that is no request
// stands for all lines of a log.
func TestPatterns(t *testing.T) {
	log := func(requests ...string) (text string) {
		for _, request := range requests {
			text += `192.0.2.7 - - [05/Jan/2026:12:00:00 +0000] "` + request + ` HTTP/1.1" 201 93` + "\n"
		}
		return text
	}
	requests := log("POST /posts?a", "POST /posts/7", "GET /posts", "POST /a/b/posts")
	for _, tt := range []struct {
		activity string
		patterns []string
		want     string
	}{
		{"act", nil, strings.TrimSuffix(strings.Repeat("act, ", 4), ", ")},
		{"", nil, "POST /posts, POST /posts/7, GET /posts, POST /a/b/posts"},
		{"POST /posts", nil, "POST /posts, POST /posts/7, GET /posts, POST /a/b/posts"},
		{"POST /posts*", []string{"POST /posts*"}, "POST /posts*, POST /posts*, GET /posts, POST /a/b/posts"},
		{"", []string{"POST /posts/*", "POST *"}, "POST *, POST /posts/*, GET /posts, POST *"},
		{"* /*posts", []string{"* /*posts"}, "* /*posts, POST /posts/7, * /*posts, * /*posts"},
		{"POST /*/*/posts", []string{"POST /*/*/posts"}, "POST /posts, POST /posts/7, GET /posts, POST /*/*/posts"},
		{"", []string{"POST /posts/*7*7*"}, "POST /posts, POST /posts/7, GET /posts, POST /a/b/posts"},
	} {
		got, err := read(Options{Activity: tt.activity, Patterns: tt.patterns}, requests)
		var all []string
		for _, line := range got {
			all = append(all, line.Activity)
		}
		if diff := cmp.Diff(tt.want, strings.Join(all, ", ")); err != nil || diff != "" {
			t.Errorf("%q, %q: %v (-want +got):\n%s", tt.activity, tt.patterns, err, diff)
		}
	}
	if got, err := read(Options{Activity: "create_*", Patterns: []string{"create_*"}}, header+"1767571200,u1,create_post\n1767571200,u1,like\n"); err != nil || got[0].Activity != "create_*" || got[1].Activity != "like" {
		t.Errorf("CSV: %v, %v", got, err)
	}
}

// Damaged files end with an error that names no user, or their bad lines are counted.
func TestDamagedLogs(t *testing.T) {
	alb := fmt.Sprintf(albLine, "2018-07-02T22:23:00.186641Z", "192.0.2.1:2817")
	events := func(messages ...string) string {
		return "{\n  \"events\": [\n    {\"timestamp\": 1530570180186, \"message\": " + strings.Join(messages, "},\n    {\"timestamp\": 1530570180187, \"message\": ") + "}\n  ]\n}\n"
	}
	const unknownMessage = "its message is no line of a log that replay knows"
	for name, tt := range map[string]struct {
		text, problem string
		bad           int64 // with SkipBad
		users         string
	}{
		"empty":                            {"", "", 0, ""},
		"lines without text":               {"\r\n \r\n", "", 0, ""},
		"a banner first":                   {"NGINX Ingress controller\n-----\n" + nginxLine, "t.csv, line 1: " + unreadable, 2, "alice"},
		"no log":                           {"secret1 did it\nsecret1 again\n", "t.csv, line 1: " + unreadable, 2, ""},
		"two logs":                         {alb + nginxLine + alb, "t.csv, line 2: it is not a line of an ALB log", 1, "192.0.2.1 192.0.2.1"},
		"a line that is cut":               {alb + alb[:150] + "\n" + alb, "t.csv, line 2: it is not a line of an ALB log", 1, "192.0.2.1 192.0.2.1"},
		"a quote that is open":             {nginxLine + `secret1 - - [05/Jan/2026:12:00:00 +0000] "POST /` + "\n", "t.csv, line 2: it is not a line of a log in the common", 1, "alice"},
		"a long line":                      {nginxLine + strings.Repeat("secret", 20_000) + "\n" + nginxLine, "t.csv, line 2: it is longer than 65536 bytes", 1, twoUsers},
		"a byte order mark":                {"\ufeff" + nginxLine, "", 0, "alice"},
		"another program's JSON":           {`{"level":"info","msg":"secret1"}` + "\n" + `{"ts":1646861401.5,"request":{"remote_ip":"192.0.2.1","method":"GET","uri":"/"}}`, `t.csv, line 1: it has no field "user" for the user`, 1, "192.0.2.1"},
		"other messages first":             {events(`"START RequestId: secret1"`, `"192.0.2.7 - bob [02/Jul/2018:22:23:00 +0000] \"GET / HTTP/1.1\" 200 1"`), "t.csv, object 1: " + unknownMessage, 1, "bob"},
		"a message that is no text":        {events(`{"user":"secret1"}`), `t.csv, object 1: it has no field "user" for the user`, 1, ""},
		"an event that is no object":       {`[{"timestamp":1,"message":"x"}, "secret1"]`, "t.csv, object 1: " + unknownMessage, 2, ""},
		"a document that is cut":           {events(`"192.0.2.7 - bob [02/Jul/2018:22:23:00 +0000] \"GET / HTTP/1.1\" 200 1"`)[:100], "t.csv, object 1: it is not valid JSON, or it ends too early", -1, ""},
		"W3C without a time":               {"#Fields: c-ip\n192.0.2.1\n", `t.csv, line 2: it has no field "timestamp(ms)" for the time`, 1, ""},
		"W3C without fields":               {"#Version: 1.0\nsecret1 x\n", "t.csv, line 2: " + unreadable, 1, ""},
		"Insights without a known log":     {"@timestamp,@message\n2018-07-02 22:23:00.123,secret1\n", "t.csv, line 2: " + unknownMessage, 1, ""},
		"a name of Insights for the time":  {"@timestamp,user,activity\n2018-07-02 22:23:00.123,u1,a\n", "", 0, "u1"},
		"an array of the caller's objects": {"[\n{\"time\":1767571200,\"user\":\"u1\",\"activity\":\"a\"},\n{\"time\":1767571201,\"user\":\"u2\",\"activity\":\"a\"}\n]", "", 0, "u1 u2"},
		"objects over several lines":       {"{\n\"time\":1767571200,\"user\":\"u1\",\"activity\":\"a\"\n}\n{\n\"time\":1767571201,\"user\":\"u2\",\"activity\":\"a\"}\n", "", 0, "u1 u2"},
	} {
		got := users(Options{}, tt.text)
		if tt.problem == "" && got != tt.users || !strings.Contains(got, tt.problem) || strings.Contains(got, "secret") {
			t.Errorf("%s: %s, want %s", name, got, tt.problem)
		}
		r := NewReader(Options{SkipBad: true}, File{"t.csv", strings.NewReader(tt.text)})
		all, err := lines(r)
		skipped := usersOf(all)
		if tt.bad < 0 {
			if err == nil || !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("%s, skipping: %v, want %s", name, err, tt.problem)
			}
			continue
		}
		if err != nil || r.Bad != tt.bad || skipped != tt.users || strings.Contains(fmt.Sprint(r.FirstBad), "secret") {
			t.Errorf("%s, skipping: %v, %d bad lines %q, users %s, want %d and %s", name, err, r.Bad, r.FirstBad, skipped, tt.bad, tt.users)
		}
		if bad := new(BadLine); tt.bad > 0 && r.Bad != int64(len(all)) {
			if _, err := read(Options{}, tt.text); !errors.As(err, &bad) && !strings.Contains(err.Error(), unreadable) {
				t.Errorf("%s: %v is not told as a bad line", name, err)
			}
		}
	}
}

// If no line of a file tells the format, reading ends soon, even if bad lines are
// skipped.
func TestUnknownFile(t *testing.T) {
	got := users(Options{SkipBad: true}, strings.Repeat("secret1 did it\n", 2000)+nginxLine)
	if want := "t.csv, line 1000: " + unreadable; !strings.HasPrefix(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
}

// zstd and gzip are recognized by their content, whatever is in them.
func TestZstd(t *testing.T) {
	w := testkit.Must(zstd.NewWriter(nil))(t)
	packed := string(w.EncodeAll([]byte(nginxLine), nil))
	twice := zipped(t, nginxLine) + zipped(t, nginxLine) // files that were put together
	for text, want := range map[string]string{packed: "alice", packed + packed: twoUsers, twice: twoUsers, packed[:len(packed)-9]: "t.csv: unexpected EOF"} {
		if got := users(Options{}, text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
