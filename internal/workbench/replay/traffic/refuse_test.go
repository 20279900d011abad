package traffic_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	. "github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

const wantTime = ", want Unix seconds, Unix milliseconds, or RFC 3339 such as 2026-01-05T12:00:00.250Z"

// An error names the file, the line, the field and what is accepted. It never
// repeats the id of a user, not even if a column is named wrongly.
func TestReaderRefuses(t *testing.T) {
	const csv = "time,user,activity\n1767571200,secret1,like\n"
	const names = ", want time, user and activity; --columns time=NAME,user=NAME names others"
	for text, want := range map[string]string{
		"time;user;activity\n":                             `line 1: it is neither the header of CSV nor a line of a log that replay knows (ALB, CloudFront, API Gateway, S3, nginx, Apache, Caddy, Traefik, HAProxy, Envoy, W3C); --format fields --columns time=1,user=2 reads`,
		"when,who,what\n":                                  `line 1: the header when,who,what has no column "time"` + names,
		"time,user\n":                                      `line 1: the header time,user has no column "activity"` + names,
		"time,user,activity,user\n":                        `line 1: the header has two columns "user"`,
		csv + "secret2,u1,like":                            `line 3: time is not a time` + wantTime,
		csv + ",secret1,like":                              `line 3: time is empty` + wantTime,
		csv + "9,secret1,like":                             `line 3: time has 1 digit, and its unit is unclear: as seconds and as milliseconds, it is outside of the years 2000 to 2099; give the unit with --unit s or --unit ms`,
		csv + "1767571200000000,secret1,like":              `line 3: time looks like Unix microseconds` + wantTime,
		csv + "1767571200000,secret1,like":                 `line 3: time is in Unix milliseconds, but that of line 2 is in Unix seconds, want one unit in a file`,
		csv + "1767571200000000000,secret1,like":           `line 3: time looks like Unix nanoseconds` + wantTime,
		csv + "1,secret1":                                  `line 3: it has 2 fields, want 3 as the header has`,
		csv + "1,\"secret1\",like,now":                     `line 3: it has 4 fields, want 3`,
		csv + "1767571200,secret 1,like":                   `line 3: user has U+0020 as character 7, want 1 to 128`,
		csv + "\n\n1767571200,secret1,":                    `line 5: activity is missing or empty, want what the user did, such as create_post`,
		csv + strings.Repeat("secret", 20_000):             `line 3: it is longer than 65536 bytes`,
		`{"time":1767571200,"activity":"like"}`:            `line 1: it has no field "user" for the user; --columns user=NAME names another`,
		`{"user":"secret1","activity":"like"}`:             `line 1: it has no field "time" for the time; --columns time=NAME names another`,
		`{"time":true,"user":"secret1","activity":"like"}`: `line 1: time is neither a string nor a number, want one of them`,
		`{"time":1767571200,"user":"secret1","user":"secret2","activity":"x"}`:     `line 1: it repeats a name`,
		`{"time":1767571200,"user":"secret1","activity":"like"`:                    `line 1: it is not valid JSON`,
		`{"time":1767571200,"user":"secret1","activity":"like"} {}`:                `line 1: it continues after the JSON object`,
		"{\"time\":1767571200,\"user\":\"secret1\",\"activity\":\"\xff\"}":         `line 1: it is not UTF-8`,
		`{"time":1767571200,"user":"u1","activity":"like"}` + "\n" + `["secret1"]`: `line 2: it is not a JSON object`,
	} {
		checkRefused(t, Options{}, text, want)
	}
	checkRefused(t, Options{Columns: Columns{Activity: "verb"}, Activity: "act"}, `{"time":1767571200,"user":"secret1"}`, `line 1: it has no field "verb" for the activity`)
	checkRefused(t, Options{Activity: "act"}, "time\n", `line 1: the header time has no column "user", want time and user;`)
	const utf16 = "it is UTF-16 or no text, want UTF-8"
	for _, text := range []string{"\xff\xfet\x00i\x00m\x00e\x00", "\xfe\xff\x00t\x00i\x00m\x00e", "t\x00i\x00m\x00e\x00", "\x00t\x00i\x00m\x00e", "\xff\xfe"} { // as spreadsheets and PowerShell write
		for _, skipBad := range []bool{false, true} {
			if _, err := read(Options{SkipBad: skipBad}, text); err == nil || err.Error() != "t.csv: "+utf16 {
				t.Errorf("%q: %v, want %s", text, err, utf16)
			}
		}
	}
	checkRefused(t, Options{Unit: Millis}, "time,user,activity\n1.5,secret1,a\n", `line 2: time has a decimal point, want Unix milliseconds`)
	checkRefused(t, Options{Unit: Millis}, "time,user,activity\n9214646400000,secret1,a\n", `line 2: time is after the year 2261`)
}

func TestReaderRefusesNginx(t *testing.T) {
	const line = `192.0.2.7 - - [05/Jan/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 1`
	for text, want := range map[string]string{
		"secret1 x\n": "line 1: it is not a line of a log in the common or combined format",
		line + "\n192.0.2.7 - secret1 [05/Jan/2026 12:00] \"GET / HTTP/1.1\" 200 1":  "line 2: time is not a time, want one such as 05/Jan/2026:12:00:00 +0000",
		line + "\n192.0.2.7 - secret 1 [05/Jan/2026:12:00:00 +0000] \"GET /\" 200 1": "line 2: it is not a line of a log in the common or combined format",
	} {
		checkRefused(t, Options{Format: Nginx, Activity: "act"}, text, want)
	}
	const fields = `want a field of a log in the common or combined format: remote_addr, ident, remote_user, time_local, request, `
	for columns, want := range map[Columns]string{
		{User: "remote_user"}: "line 1: remote_user is empty or -, want a user; --columns user=NAME names another field",
		{Time: "time"}:        `line 1: --columns time is "time", ` + fields,
		{User: "user"}:        `line 1: --columns user is "user", ` + fields,
		{Activity: "path"}:    `line 1: --columns activity is "path", ` + fields,
	} {
		checkRefused(t, Options{Format: Nginx, Columns: columns}, line, want)
		checkRefused(t, Options{Columns: columns}, line, want)
	}
}

func checkRefused(t *testing.T, o Options, text, want string) {
	t.Helper()
	_, err := read(o, text)
	if err == nil || !strings.HasPrefix(err.Error(), "t.csv, "+want) {
		t.Errorf("%.80q: %v, want t.csv, %s", text, err, want)
	} else if strings.Contains(err.Error(), "secret") {
		t.Errorf("%.80q: the error shows a user: %v", text, err)
	}
}

func TestAFileThatCannotBeRead(t *testing.T) {
	const text = "time,user,activity\n1767571200,u1,a\n"
	for _, begins := range []string{"", text} {
		broken := io.MultiReader(strings.NewReader(begins), iotest.ErrReader(io.ErrClosedPipe))
		if _, err := lines(NewReader(Options{SkipBad: true}, File{"t.csv", broken})); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the error is %v, want that of the file", err)
		}
	}
	cut := zipped(t, text)[:30]
	if _, err := read(Options{SkipBad: true}, cut); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.HasPrefix(err.Error(), "t.csv: ") {
		t.Errorf("gzip that is cut: the error is %v, want an unexpected end", err)
	}
}

// What is wrong with a subject is an error without its id.
func TestWrongSubjects(t *testing.T) {
	room := Options{Activity: "act", Subjects: []string{"room"}}
	checkRefused(t, room, "time,user\n1767571200,secret1\n", `line 1: the header time,user has no column "room", want`)
	checkRefused(t, room, "time,user,room\n1767571200,secret1,secret 2\n", "line 2: room has U+0020")
	checkRefused(t, room, `{"time":1767571200,"user":"secret1","room":["secret1"]}`, "line 1: room is neither a string nor a number")
	checkRefused(t, Options{Format: Nginx, Activity: "act", Subjects: []string{"room"}}, "192.0.2.7 - - [05/Jan/2026:00:00:01 +0000] \"GET /\" 200 5\n", `line 1: --columns room is "room", want a field of a log in`)
}
