package input_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	. "github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/strictjson"
)

// sample has a field of each kind.
type sample struct {
	ID    string
	Text  string
	Count int64
	Flag  bool
	List  []string
}

var fields = []Field[sample]{
	{Name: "id", Read: func(s *sample, f string, v strictjson.Value) error { return ID(&s.ID, f, v) }},
	{Name: "text", Read: func(s *sample, f string, v strictjson.Value) error { return Text(&s.Text, f, v) }},
	{Name: "count", Read: func(s *sample, f string, v strictjson.Value) error { return Whole(&s.Count, f, v) }},
	{Name: "flag", Read: func(s *sample, f string, v strictjson.Value) error { return Bool(&s.Flag, f, v) }},
	{Name: "list", Read: func(s *sample, f string, v strictjson.Value) error { return Texts(&s.List, f, v) }},
}

func TestDecode(t *testing.T) {
	for event, want := range map[string]sample{
		`{}`: {},
		` {"text": "", "list": [], "flag": false} `: {},
		`{"id": "u\u0031", "text": "é\n", "count": 9223372036854775807, "flag": true, "list": ["a", "", "\u0062"]}`: {
			ID: "u1", Text: "é\n", Count: 9223372036854775807, Flag: true, List: []string{"a", "", "b"},
		},
		`{"text": "` + strings.Repeat("t", 64<<10-len(`{"text": ""}`)) + `"}`: {Text: strings.Repeat("t", 64<<10-len(`{"text": ""}`))},
	} {
		if got, err := Decode([]byte(event), fields); err != nil || !cmp.Equal(want, got) {
			t.Errorf("Decode(%.80s) = %.80v, %v, want %.80v", event, got, err, want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for event, want := range map[string]string{
		``:                        `event is empty, want a JSON object`,
		`[]`:                      `event is an array, want a JSON object`,
		`{"id": "u1"`:             `event is not valid JSON`,
		`{"id": "u1"} x`:          `event continues after the JSON object, want one JSON object`,
		`{"ID": "u1"}`:            `event has the unknown field "ID", want only id, text, count, flag, list`,
		`{"id": "u1", "id": "u"}`: `id is repeated`,
		`{"id": 4711}`:            `id is a number, want a string`,
		`{"id": ""}`:              `id is empty, want at least 1 character`,
		"{\"text\": \"\xff\"}":    `text is not UTF-8`,
		`{"text": null}`:          `text is null, want a string`,
		`{"text": {"a":1,"a":2}}`: `text repeats one of its own names`,
		`{"count": 0}`:            `count is 0, want a whole number of at least 1`,
		`{"count": 1.5}`:          `count is 1.5, want a whole number of at least 1`,
		`{"flag": "true"}`:        `flag is "true", want true or false`,
		`{"list": ["a", ["b"]]}`:  `list is [\"a\", [\"b\"]], want an array of strings`,
		`{"text": "` + strings.Repeat("t", 64<<10) + `"}`: `event is 65548 bytes long, want at most 65536`,
	} {
		_, err := Decode([]byte(event), fields)
		if _, ok := errors.AsType[*ValidationError](err); !ok || err.Error() != want {
			t.Errorf("Decode(%.80s): %v, want the ValidationError %s", event, err, want)
		}
	}
}

// As in JSON Schema, a whole number may have a fraction of zero or an exponent.
func TestWhole(t *testing.T) {
	for text, want := range map[string]int64{ // 0: an error
		"1": 1, "9223372036854775807": 1<<63 - 1, "1.0": 1, "1e0": 1, "1E+1": 10, "10e-1": 1, "1.20e1": 12,
		"9.223372036854775807e18": 1<<63 - 1, "0.001e3": 1, "0." + strings.Repeat("0", 60_000) + "1e60001": 1,
		"0": 0, "-0": 0, "0.0": 0, "-1": 0, "-1.0": 0, "1.5": 0, "15e-1": 0, "4503599627370496.1": 0, "1.0000000000000000000001": 0,
		"9223372036854775808": 0, "9.223372036854775808e18": 0, "1e999999999": 0, "1e-999999999": 0,
		`"1"`: 0, `"1.0"`: 0, "true": 0, "null": 0, "[1]": 0, "{}": 0, `""`: 0,
	} {
		var got int64
		err := Whole(&got, "count", strictjson.Value(text))
		if (err == nil) != (want != 0) || err == nil && got != want {
			t.Errorf("Whole of %.40s = %d, %v, want %d", text, got, err, want)
		}
	}
}

func TestShow(t *testing.T) {
	for s, want := range map[string]string{
		"":                       `""`,
		"create_post":            `"create_post"`,
		"a\"\n\x1b[31m":          `"a\"\n\x1b[31m"`,
		"pöst\u202e😀":            `"p\u00f6st\u202e\U0001f600"`,
		strings.Repeat("a", 40):  `"` + strings.Repeat("a", 40) + `"`,
		strings.Repeat("a", 41):  `"` + strings.Repeat("a", 40) + `..."`,
		strings.Repeat("é", 40):  `"` + strings.Repeat(`\u00e9`, 40) + `"`,
		strings.Repeat("é", 999): `"` + strings.Repeat(`\u00e9`, 40) + `..."`,
	} {
		if got := Show(s); got != want {
			t.Errorf("Show(%.99q) = %s, want %s", s, got, want)
		}
	}
}

func TestCheckIDs(t *testing.T) {
	for field, tt := range map[string]struct {
		check   func(string) error
		longest int
	}{"userId": {CheckUserID, 128}, "requestId": {CheckRequestID, 64}} {
		for id, problem := range map[string]string{
			"!":                                  "",
			"~":                                  "",
			strings.Repeat("u", tt.longest):      "",
			"":                                   "is missing or empty",
			strings.Repeat("u", tt.longest+1):    "characters, want 1 to",
			"u u":                                "has U+0020 as character 2",
			"\x7f":                               "has U+007F as character 1",
			"uü":                                 "has U+00FC as character 2",
			"üü\x00":                             "has U+00FC as character 1",
			strings.Repeat("u", 18) + "\n+57300": "has U+000A as character 19",
		} {
			err := tt.check(id)
			if problem == "" && err == nil {
				continue
			}
			e, ok := errors.AsType[*ValidationError](err)
			if !ok || problem == "" || e.Field != field || !strings.Contains(e.Problem, problem) || len(id) > 3 && strings.Contains(e.Problem, id[:3]) {
				t.Errorf("%s %q: %v, want %q without a part of the id", field, id, err, problem)
			}
		}
	}
}

func TestNewUnavailable(t *testing.T) {
	secret := errors.New("arn:aws:dynamodb:secret")
	for want, err := range map[string]error{
		"the table is throttled":         &ratelimit.StoreError{What: "the table is throttled", Err: secret},
		"the table could not be reached": secret,
	} {
		if got := NewUnavailable(err).Error(); got != want {
			t.Errorf("NewUnavailable(%v) = %q, want %q", err, got, want)
		}
	}
}
