package guard_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cric-talk/guards"
	. "github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

// sold is a guard whose customers buy numbers.
var sold = limits.Guard{Name: "sold-guard", Message: "Too many.", Activities: []limits.Activity{
	{Name: "call", Limit: policy.Must("10/1m max 100")},
	{Name: "send", Limit: policy.Must("minute: 10/1m max 100, day: 200/1d")},
	{Name: "write", Limit: policy.Must("3/1m"), Subjects: []limits.Subject{
		{Name: "room", Limit: policy.Must("4/1m")},
		{Name: "tenant", Limit: policy.Must("minute: 20/1m max 500, day: 900/1d"), Optional: true},
	}},
	{Name: "plain", Limit: policy.Must("9/1m")},
	{Name: "free", Unlimited: true},
}}

const (
	wantNumber  = ", want a whole number from 0 to 1000000"
	wantNumbers = wantNumber + ", or an object of such numbers by the names of limits"
)

func TestWrongNumbers(t *testing.T) {
	b := newBench(t)
	b.Guard = sold
	for event, want := range map[string]string{
		`"activity":"call","limit":-1`:                                                  "limit is -1" + wantNumbers,
		`"activity":"call","limit":1000001`:                                             "limit is 1000001" + wantNumbers,
		`"activity":"call","limit":9007199254740992`:                                    "limit is 9007199254740992" + wantNumbers,
		`"activity":"call","limit":1e30`:                                                "limit is 1e30" + wantNumbers,
		`"activity":"call","limit":1e-400`:                                              "limit is 1e-400" + wantNumbers,
		`"activity":"call","limit":2.5`:                                                 "limit is 2.5" + wantNumbers,
		`"activity":"call","limit":"50"`:                                                `limit is "50"` + wantNumbers,
		`"activity":"call","limit":true`:                                                "limit is true" + wantNumbers,
		`"activity":"call","limit":null`:                                                "limit is null" + wantNumbers,
		`"activity":"call","limit":[50]`:                                                "limit is an array" + wantNumbers,
		`"activity":"call","limit":{}`:                                                  "limit is an empty object" + wantNumbers,
		`"activity":"call","limit":{"":50}`:                                             "limit has an empty name" + wantNumbers,
		`"activity":"call","limit":{"":50,"call":50}`:                                   "limit has an empty name" + wantNumbers,
		`"activity":"call","limit":{"call":50,"call":60}`:                               "limit repeats one of its own names",
		`"activity":"call","limit":50,"limit":60`:                                       "limit is repeated",
		`"activity":"call","limit":{"call":-1}`:                                         "limit.call is -1" + wantNumber,
		`"activity":"call","limit":{"call":1000001}`:                                    "limit.call is 1000001" + wantNumber,
		`"activity":"call","limit":{"call":9007199254740992}`:                           "limit.call is 9007199254740992" + wantNumber,
		`"activity":"call","limit":{"call":2.5}`:                                        "limit.call is 2.5" + wantNumber,
		`"activity":"call","limit":{"call":"50"}`:                                       `limit.call is "50"` + wantNumber,
		`"activity":"call","limit":{"call":null}`:                                       "limit.call is null" + wantNumber,
		`"activity":"call","limit":{"call":[50]}`:                                       "limit.call is an array" + wantNumber,
		`"activity":"call","limit":{"call":{"call":50}}`:                                "limit.call is an object" + wantNumber,
		`"activity":"call","limit":{"hour":50}`:                                         "limit has a number for an unknown limit or one without a max, want numbers only for: call",
		`"activity":"call","limit":{"call":50,"` + secret + `":50}`:                     "limit has a number for an unknown limit or one without a max, want numbers only for: call",
		`"activity":"call","op":"status","limit":{"hour":50}`:                           "limit has a number for an unknown limit",
		`"activity":"call","op":"release","at":1,"requestId":"a","limit":{"hour":50}`:   "limit has a number for an unknown limit",
		`"activity":"call","op":"reset","limit":50`:                                     "limit does not go with op reset",
		`"activity":"send","limit":50`:                                                  "limit is a number, want an object of numbers by the names of limits: minute",
		`"activity":"send","limit":{"day":50}`:                                          "limit has a number for an unknown limit or one without a max, want numbers only for: minute",
		`"activity":"send","limit":{"send":50}`:                                         "limit has a number for an unknown limit",
		`"activity":"write","limit":50,"subjects":{"room":"r"}`:                         "limit has a number for an unknown limit or one without a max, want numbers only for: tenant.minute",
		`"activity":"write","limit":{"room":50},"subjects":{"room":"r"}`:                "limit has a number for an unknown limit",
		`"activity":"write","limit":{"tenant":50},"subjects":{"room":"r","tenant":"t"}`: "limit has a number for an unknown limit",
		`"activity":"write","limit":{"tenant.minute":-1},"subjects":{"room":"r"}`:       "limit.tenant.minute is -1" + wantNumber,
		`"activity":"plain","limit":50`:                                                 "limit goes only with activities whose limit has a max",
		`"activity":"plain","limit":{"plain":50}`:                                       "limit goes only with activities whose limit has a max",
		`"activity":"free","limit":-1`:                                                  "limit is -1" + wantNumbers,
		`"activity":"call","roles":["admin"],"limit":"50"`:                              `limit is "50"` + wantNumbers,
	} {
		_, err := b.Invoke(t.Context(), []byte(`{"userId":"`+canary+`",`+event+`}`))
		wrong, ok := errors.AsType[*input.ValidationError](err)
		if !ok || !strings.HasPrefix(wrong.Error(), want) || strings.Contains(wrong.Error(), secret) || strings.HasSuffix(wrong.Error(), ", ") {
			t.Errorf("%s: %v, want an error that begins with %s", event, err, want)
		}
	}
	if b.store.asked != 0 || b.lines.Len() != 0 {
		t.Errorf("%d requests, and the metrics %s, want none", b.store.asked, &b.lines)
	}
}

// A name can be anything that a caller gives, such as a room's id. An error shows only a name that
// a limit can have, and the log has only the field.
func TestWrongNamesOfNumbers(t *testing.T) {
	b := newBench(t)
	b.Guard = sold
	for name, shown := range map[string]string{"no.limit": "limit.no.limit", canary: "limit", `a\nb`: "limit", strings.Repeat("n", 9999): "limit"} {
		_, err := b.Invoke(t.Context(), []byte(`{"userId":"u1","activity":"call","limit":{"`+name+`":-1}}`))
		if want := shown + " is -1" + wantNumber; err == nil || err.Error() != want {
			t.Errorf("%.40s: %v, want %s", name, err, want)
		}
	}
	if got := strings.Count(b.log.String(), `"field":"limit"}`); got != 4 {
		t.Errorf("%d lines of the log name the field limit alone, want 4:\n%s", got, &b.log)
	}
}

// The bounds themselves are right. If nothing is counted, so is an unknown name.
func TestRightNumbers(t *testing.T) {
	for event, want := range map[string]string{
		`"activity":"call","limit":0`:                                                    `"allowed":false,"reason":"limited"`,
		`"activity":"call","limit":0.0`:                                                  `"allowed":false,"reason":"limited"`,
		`"activity":"call","limit":1`:                                                    `"limit":1,"activityCount":1,"remaining":0`,
		`"activity":"call","limit":100`:                                                  `"limit":100,"activityCount":1,`,
		`"activity":"call","limit":101`:                                                  `"limit":100,"activityCount":1,`,
		`"activity":"call","limit":1e6`:                                                  `"limit":100,"activityCount":1,`,
		`"activity":"call","limit":{"call":1000000}`:                                     `"limit":100,"activityCount":1,`,
		`"activity":"send","limit":{"minute":50}`:                                        `{"name":"minute","limit":50,`,
		`"activity":"write","limit":{"tenant.minute":0},"subjects":{"room":"r"}`:         `"allowed":true,"reason":"ok"`,
		`"activity":"free","limit":{"hour":50}`:                                          `"allowed":true,"reason":"unlimited"`,
		`"activity":"plain","roles":["admin"],"limit":50`:                                `"allowed":true,"reason":"bypassed"`,
		`"activity":"call","op":"release","at":1700000040000,"requestId":"a","limit":50`: `"op":"release","limit":50`,
		`"activity":"write","op":"status","limit":{"tenant.minute":500},"subjects":{"room":"r","tenant":"acme"}`: `{"name":"tenant.minute","limit":500,`,
	} {
		b := newBench(t)
		b.Guard = sold
		out, err := b.Invoke(t.Context(), []byte(`{"userId":"`+canary+`",`+event+`}`))
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %s, %v, want %s", event, out, err, want)
		}
	}
}

// An app that asks in its own process gives numbers without JSON.
func TestWrongNumbersOfARequest(t *testing.T) {
	b := newBench(t)
	b.Guard = sold
	for _, tt := range []struct {
		numbers guards.Numbers
		want    string // empty: the numbers are right
	}{
		{guards.Number(-1), "limit is -1" + wantNumbers},
		{guards.Number(1_000_001), "limit is 1000001" + wantNumbers},
		{guards.Numbers{"call": -1}, "limit.call is -1" + wantNumber},
		{guards.Numbers{"call": 5, "": 5}, "limit has an empty name" + wantNumbers},
		{guards.Numbers{"hour": 5}, "limit has a number for an unknown limit"},
		{guards.Number(1_000_000), ""},
		{guards.Numbers{}, ""},
	} {
		_, err := b.Decide(t.Context(), RequestOf(guards.Request{UserID: canary, Activity: "call", Limit: tt.numbers}))
		if err == nil && tt.want != "" || err != nil && (tt.want == "" || !strings.HasPrefix(err.Error(), tt.want)) {
			t.Errorf("%v: %v, want an error that begins with %q", tt.numbers, err, tt.want)
		}
	}
	if b.store.asked != 2 {
		t.Errorf("%d requests, want 2", b.store.asked)
	}
}
