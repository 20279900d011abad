package replay_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	. "github.com/cric-talk/guards/internal/replay"
)

// start is when the traffic of these tests begins, at the start of a day.
const start = 1_767_571_200_000 // 2026-01-05T00:00:00Z

func lines(t *Traffic) (all []Line, err error) {
	for {
		line, err := t.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, line)
	}
}

func TestTraffic(t *testing.T) {
	want := []Line{{start, "u1", "create_post"}, {start + 250, `a"b,c`, "like"}, {start + 1000, "u1", "like"}}
	for name, text := range map[string]string{
		"CSV":          "time,user,activity\n1767571200000,u1,create_post\n1767571200250,\"a\"\"b,c\",like\n1767571201000,u1,like\n",
		"RFC 3339":     "time,user,activity\n2026-01-05T00:00:00Z,u1,create_post\n2026-01-05T00:00:00.25Z,\"a\"\"b,c\",like\n2026-01-05T05:30:01+05:30,u1,like",
		"a sheet's":    "\ufefftime,user,activity\r\n1767571200000,u1,create_post\r\n\r\n1767571200250,\"a\"\"b,c\",like\r\n1767571201000,u1,like\r\n",
		"JSON lines":   `{"time":1767571200000,"user":"u1","activity":"create_post"}` + "\n" + `{"user":"a\"b,c","activity":"like","time":"1767571200250"}` + "\n\n" + ` {"time":"2026-01-05T00:00:01Z","user":"u1","activity":"like"} `,
		"JSON, spaced": "\ufeff\n" + `{"time":1767571200000,"user":"u1","activity":"create_post"}` + "\r\n" + `{"user":"a\u0022b,c","activity":"like","time":1767571200250}` + "\n" + `{"time":1767571201000,"user":"u1","activity":"like"}`,
	} {
		got, err := lines(NewTraffic("x", iotest.OneByteReader(strings.NewReader(text))))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	if got, err := lines(NewTraffic("x", strings.NewReader("\n \n"))); err != nil || got != nil {
		t.Errorf("a file of empty lines: %v, %v, want nothing", got, err)
	}
}

// An error names the file, the line, the field, its value and what is accepted.
// It never repeats the id of a user.
func TestTrafficRefuses(t *testing.T) {
	const csv, wantTime = "time,user,activity\n0,u1,like\n", ", want Unix milliseconds, or RFC 3339 such as 2026-01-05T12:00:00.250Z"
	for text, want := range map[string]string{
		"time;user;activity\n":                                 `line 1: header is "time;user;activity", want time,user,activity (CSV), or a JSON object on each line`,
		"user,time,activity\n":                                 `line 1: header is "user,time,activity", want`,
		"1767571200000,u1,like\n":                              `line 1: header is "1767571200000,u1,like", want`,
		"[\n":                                                  `line 1: header is "[", want`,
		csv + "yesterday,u1,like":                              `line 3: time is "yesterday"` + wantTime,
		csv + ",u1,like":                                       `line 3: time is ""` + wantTime,
		csv + "-1,u1,like":                                     `line 3: time is "-1"` + wantTime,
		csv + "1.5,u1,like":                                    `line 3: time is "1.5"` + wantTime,
		csv + "253402300800000,u1,like":                        `line 3: time is "253402300800000"` + wantTime,
		csv + "2026-01-05 12:00:00,u1,x":                       `line 3: time is "2026-01-05 12:00:00"` + wantTime,
		csv + "1,u1":                                           `line 3: it has 2 fields, want 3: time,user,activity`,
		csv + "1,u1,like,now":                                  `line 3: it has 4 fields, want 3`,
		csv + "1,\"u1\",like,now":                              `line 3: it has 4 fields, want 3`,
		csv + "1,\"u1,like\n2,u1,like\n":                       `line 3: extraneous or missing " in quoted-field`,
		csv + "1,u\"1,like":                                    `line 3: bare " in non-quoted-field`,
		csv + "1,,like":                                        `line 3: user is missing or empty, want 1 to 128 printable ASCII characters without a space`,
		csv + "1,u 1,like":                                     `line 3: user has U+0020 as character 2, want 1 to 128`,
		csv + "\n\n1,u1,":                                      `line 5: activity is missing or empty, want what the user did, such as create_post`,
		csv + strings.Repeat("x", 100_000):                     `line 3: it is longer than 65536 bytes`,
		`{"time":1,"user":"u1"}`:                               `line 1: activity is missing or empty`,
		`{"time":1,"activity":"like"}`:                         `line 1: user is missing or empty`,
		`{"user":"u1","activity":"like"}`:                      `line 1: time is missing` + wantTime,
		`{"time":true,"user":"u1","activity":"like"}`:          `line 1: time is "true"` + wantTime,
		`{"time":1.5,"user":"u1","activity":"like"}`:           `line 1: time is "1.5"` + wantTime,
		`{"time":1,"user":7,"activity":"like"}`:                `line 1: user is a number, want a string`,
		`{"time":1,"user":"u1","activity":["like"]}`:           `line 1: activity is [\"like\"], want a string`,
		`{"time":1,"user":"u1","activity":"like","ip":"x"}`:    `line 1: it has the unknown field "ip", want only time, user, activity`,
		`{"time":1,"user":"u1","user":"u2","activity":"like"}`: `line 1: user is repeated`,
		`{"time":1,"user":"u1","activity":"like"`:              `line 1: it is not valid JSON`,
		`{"time":1,"user":"u1","activity":"like"} {}`:          `line 1: it continues after the JSON object`,
		"{\"time\":1,\"user\":\"u1\",\"activity\":\"\xff\"}":   `line 1: activity is not UTF-8`,
	} {
		if _, err := lines(NewTraffic("t.csv", strings.NewReader(text))); err == nil || !strings.HasPrefix(err.Error(), "t.csv, "+want) {
			t.Errorf("%.80q: %v, want t.csv, %s", text, err, want)
		}
	}
	if _, err := lines(NewTraffic("t.csv", iotest.ErrReader(io.ErrClosedPipe))); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a file that can't be read: %v, want its error", err)
	}
}

// Clocks may differ a little. A file that is not sorted by time is refused.
func TestTrafficOutOfOrder(t *testing.T) {
	traffic := NewTraffic("t.csv", strings.NewReader("time,user,activity\n500000,u1,a\n499000,u1,a\n380000,u1,a\n499999,u1,a\n500000,u1,a\n500001,u1,a\n"))
	if got, err := lines(traffic); err != nil || len(got) != 6 || traffic.Back != 3 || traffic.Furthest != 2*time.Minute {
		t.Errorf("%d lines, %v, %d out of order by up to %v, want 6, 3 by 2m0s", len(got), err, traffic.Back, traffic.Furthest)
	}
	_, err := lines(NewTraffic("t.csv", strings.NewReader("time,user,activity\n500000,u1,a\n379999,u1,a\n")))
	const want = "t.csv, line 3: time is 2m0.001s before that of an earlier line, want lines sorted by time (clocks may differ by 2m0s)"
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

// Whatever a file contains, each line that is read is a request that a guard
// accepts.
func FuzzTraffic(f *testing.F) {
	f.Add("time,user,activity\n1767571200000,u1,create_post\n2026-01-05T00:00:00.25Z,\"a\"\"b\",like\n")
	f.Add(`{"time":1767571200000,"user":"u1","activity":"create_post"}` + "\n")
	f.Add("\ufeff\r\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := lines(NewTraffic("t", strings.NewReader(text)))
		if err != nil && !strings.HasPrefix(err.Error(), "t, line ") {
			t.Errorf("%q: %v", text, err)
		}
		for _, l := range got {
			if l.Time < 0 || l.Time > 253_402_300_799_999 || len(l.User) < 1 || len(l.User) > 128 || strings.ContainsAny(l.User, " \n\x00") || l.Activity == "" {
				t.Errorf("%q is read as %+v", text, l)
			}
		}
	})
}
