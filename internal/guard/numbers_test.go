package guard_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards"
	. "github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/testkit"
)

// bought is a guard whose callers give numbers.
var bought = limits.Guard{Name: "api-guard", Message: "No calls left.", Activities: []limits.Activity{
	{
		Name: "call", Limit: policy.Must("10/1h max 500"), Label: "calls",
		Tiers:    limits.Tiers{"pro": policy.Must("20/1h max 500")},
		Subjects: []limits.Subject{{Name: "tenant", Limit: policy.Must("minute: 30/1m max 600, day: 100/1d"), Optional: true}},
	},
	{Name: "spend", Limit: policy.Must("100/1h max 1000 cost 5")},
	{Name: "burst", Limit: policy.Must("bucket 60/1h burst 90 max 3600")},
	{Name: "hold", Limit: policy.Must("log 2/1h max 9")},
}}

func TestNumbers(t *testing.T) {
	b := newBench(t).guarding(bought)
	const message, hour = `"message": "No calls left."`, `"resetAt": 1700002800000, "waitTime": `
	refused := `{"allowed": false, "reason": "limited", "granted": 0, ` + message
	spend := func(allowed bool, reason string, limit, used, remaining int, more string) string {
		return fmt.Sprintf(`{"allowed": %v, "reason": %q, "limit": %d, "activityCount": %d, "remaining": %d, "windowKey": 472222, %s}`, allowed, reason, limit, used, remaining, more)
	}
	b.converse([]exchange{
		// The number decides, and the figures are its own. One action costs 5.
		{0, `"activity": "spend", "limit": 200, "count": 30`, spend(true, "ok", 40, 30, 10, `"granted": 30, `+hour+`0`)},
		{0, `"activity": "spend"`, spend(false, "limited", 20, 30, 0, `"granted": 0, `+message+`, `+hour+`2760000`)},
		{0, `"activity": "spend", "op": "status", "limit": 160`, spend(true, "ok", 32, 30, 2, hour+`0`)},
		{0, `"activity": "spend", "limit": 160, "count": 3`, spend(false, "limited", 32, 30, 2, `"granted": 0, `+message+`, `+hour+`2760000`)},
		{0, `"activity": "spend", "limit": 160, "count": 2`, spend(true, "ok", 32, 32, 0, `"granted": 2, "crossed": 100, `+hour+`0`)},
		{0, `"activity": "spend", "limit": 1000000, "op": "status"`, spend(true, "ok", 200, 32, 168, hour+`0`)},

		// Too low: nobody looks at the count.
		{0, `"activity": "spend", "limit": 0`, refused + `}`},
		{0, `"activity": "spend", "limit": 4`, refused + `}`},
		{0, `"activity": "spend", "limit": 4, "count": 7, "partial": true`, refused + `}`},
		{0, `"activity": "spend", "limit": 100, "count": 21`, refused + `}`},
		{0, `"activity": "spend", "limit": 0, "op": "status"`, `{"allowed": false, "reason": "limited", ` + message + `}`},

		// By name, with a subject. The name of a subject that is left out is ignored.
		{0, `"activity": "call", "limit": {"call": 0, "tenant.minute": 7}`, refused + `}`},
		{0, `"activity": "call", "limit": {"call": 12, "tenant.minute": 0}, "count": 12`, `{"allowed": true, "reason": "ok", "limit": 12, "activityCount": 12,
			"remaining": 0, "windowKey": 472222, "granted": 12, "crossed": 100, "display": "calls: 12/12", ` + hour + `0}`},
		{0, `"activity": "call", "limit": {"tenant.minute": 0}, "subjects": {"tenant": "t1"}`, refused + `, "limitedBy": "tenant.minute"}`},
		{0, `"activity": "call", "limit": 5, "subjects": {"tenant": "t1"}, "count": 6`, refused + `, "limitedBy": "call"}`},

		// A bucket's burst and pace follow. 3600 an hour is one a second.
		{0, `"activity": "burst", "limit": 3600, "count": 5400`, `{"allowed": true, "reason": "ok", "limit": 5400, "activityCount": 5400, "remaining": 0,
			"waitTime": 0, "resetAt": 1700005440000, "granted": 5400}`},
		{time.Second, `"activity": "burst", "limit": 3600`, `{"allowed": true, "reason": "ok", "limit": 5400, "activityCount": 5400, "remaining": 0,
			"waitTime": 0, "resetAt": 1700005441000, "granted": 1}`},
	})
	if b.store.asked != 7 { // two refusals were known
		t.Errorf("%d requests, want 7: none where a number refuses", b.store.asked)
	}
}

// A count above a number is a refusal. A count above the limit of a text is still an error, and
// so is a count above the text of another limit beside a number.
func TestACountAboveANumber(t *testing.T) {
	b := newBench(t).guarding(bought)
	b.reasons(`{"activity": "call", "limit": 5, "count": 11}`, "limited")
	for _, event := range []string{
		`{"activity": "call", "count": 11}`,
		`{"activity": "call", "limit": 200, "subjects": {"tenant": "t1"}, "count": 101}`,
		`{"activity": "call", "limit": {"tenant.minute": 200}, "subjects": {"tenant": "t1"}, "count": 11}`,
	} {
		if got, err := b.ask(event); err == nil {
			t.Errorf("%s: %v, want a ValidationError", event, got)
		}
	}
}

// What was counted can be given back and renewed by any number. One that is too low for an
// action has no figures.
func TestWhatANumberCountedIsGivenBack(t *testing.T) {
	for _, limit := range []string{``, `, "limit": 9`, `, "limit": 2`, `, "limit": 0`} {
		b := newBench(t).guarding(bought)
		for _, step := range []struct{ event, want string }{
			{`"requestId": "a", "limit": 3, "count": 3`, "ok"},
			{`"requestId": "a", "op": "renew", "at": 1700000040000, "count": 3` + limit, "ok"},
			{`"requestId": "a", "op": "release", "at": 1700000040000, "count": 2` + limit, "ok"},
		} {
			got := b.mustAsk(`{"activity": "hold", ` + step.event + `}`)
			if _, figures := got["limit"]; got["reason"] != step.want || figures != (got["op"] == "check" || limit != `, "limit": 0`) {
				t.Errorf("%s: %v, want %s", step.event, got, step.want)
			}
		}
		if got := b.mustAsk(`{"activity": "hold", "op": "status"}`); got["activityCount"] != 1.0 {
			t.Errorf("after a release with%s: %v, want a count of 1", limit, got)
		}
	}
}

// A number wins over the caller's tier, the live limit and the code's. A granted tier wins over
// the number.
func TestWhichNumberWins(t *testing.T) {
	withLiveLimits(t, func(t *testing.T, b *bench, s *settings) {
		b.guarding(bought)
		limit := func(event string) any { return b.mustAsk(`{"activity": "call", "op": "status"` + event + `}`)["limit"] }
		limitOf := func() []any {
			return []any{limit(``), limit(`, "tier": "pro"`), limit(`, "tier": "pro", "limit": 77`), limit(`, "limit": 5000`)}
		}
		if got, want := limitOf(), []any{10.0, 20.0, 77.0, 500.0}; !slices.Equal(got, want) {
			t.Errorf("by the code: %v, want %v", got, want)
		}
		s.set(b, live.Settings{Activities: map[string]live.Override{"call": {Limit: "15/1h max 60", Tiers: map[string]string{"pro": "600/1h"}}}})
		limit(``) // this request reads the document
		if got, want := limitOf(), []any{15.0, 600.0, 77.0, 60.0}; !slices.Equal(got, want) {
			t.Errorf("by live limits: %v, want %v", got, want)
		}
		s.set(b, grant("", "pro"))
		limit(``)
		if got, want := limitOf(), []any{20.0, 20.0, 20.0, 20.0}; !slices.Equal(got, want) {
			t.Errorf("by a granted tier: %v, want %v", got, want)
		}
	})
}

// In shadow mode, a number that is too low lets the caller pass, and with the mode off it means nothing.
func TestANumberByMode(t *testing.T) {
	b := newBench(t)
	b.Guard, b.Mode = bought, live.Shadow
	b.converse([]exchange{
		{0, `"activity": "hold", "limit": 0`, `{"allowed": true, "reason": "shadow", "granted": 0}`},
		{0, `"activity": "hold", "limit": 3, "count": 4`, `{"allowed": true, "reason": "shadow", "granted": 0}`},
	})
	b.Mode = live.Off
	b.reasons(`{"activity": "hold", "limit": 0}`, "unlimited")
	if b.store.asked != 0 {
		t.Errorf("%d requests, want none", b.store.asked)
	}
}

// A job that presents its place is no new action, so no number refuses it.
func TestAPlaceWinsOverANumber(t *testing.T) {
	b := newBench(t)
	b.Guard.Activities = []limits.Activity{{Name: "run", Limit: policy.Must("fast: 10/1m max 50, slow: reservoir 1/10s ahead 1m")}}
	for _, x := range []struct {
		at         time.Duration
		more, want string
	}{
		{0, `"requestId": "a"`, "ok"},
		{0, `"requestId": "b"`, "delayed"},
		{0, `"requestId": "b", "readyAt": 1700000050000, "limit": {"fast": 0}`, "delayed"},
		{0, `"requestId": "c", "limit": {"fast": 0}`, "limited"},
		{10 * time.Second, `"requestId": "b", "readyAt": 1700000050000, "limit": {"fast": 0}`, "ok"},  // in time
		{time.Minute, `"requestId": "b2", "readyAt": 1700000050000, "limit": {"fast": 0}`, "limited"}, // too late
	} {
		b.now = start.Add(x.at)
		if got := b.mustAsk(`{"activity": "run", ` + x.more + `}`); got["reason"] != x.want {
			t.Errorf("at %v: %s: %v, want %s", x.at, x.more, got, x.want)
		}
	}
}

// A number that is too low asks no table, so such requests alone have to keep up with the live
// settings, also while the circuit is open.
func TestANumberThatIsTooLowFollowsLiveLimits(t *testing.T) {
	withLiveLimits(t, func(_ *testing.T, b *bench, s *settings) {
		b.guarding(bought)
		b.store.away = errAway
		for range 3 {
			b.mustAsk(`{"activity": "hold"}`) // opens the circuit
		}
		s.set(b, live.Settings{Activities: map[string]live.Override{"hold": {Mode: "off"}}})
		b.reasons(`{"activity": "hold", "limit": 0}`, "limited", "unlimited")
	})
}

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
	b := newBench(t).guarding(sold)
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
	b := newBench(t).guarding(sold)
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
		b := newBench(t).guarding(sold)
		b.says(event, want)
	}
}

// An app that asks in its own process gives numbers without JSON.
func TestWrongNumbersOfARequest(t *testing.T) {
	b := newBench(t).guarding(sold)
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
		_, err := b.Decide(t.Context(), Request{UserID: canary, Activity: "call", Limit: tt.numbers})
		if err == nil && tt.want != "" || err != nil && (tt.want == "" || !strings.HasPrefix(err.Error(), tt.want)) {
			t.Errorf("%v: %v, want an error that begins with %q", tt.numbers, err, tt.want)
		}
	}
	if b.store.asked != 2 {
		t.Errorf("%d requests, want 2", b.store.asked)
	}
}

// A number for the user does not end the leases of a prepaid tenant.
func TestANumberBesideALease(t *testing.T) {
	b := newBench(t).guarding(limits.Guard{Name: "api-guard", Message: "m", Activities: []limits.Activity{
		{Name: "call", Limit: policy.Must("10000/1h max 20000"), Subjects: []limits.Subject{{Name: "tenant", Limit: policy.Must("60000/1m prepaid")}}},
	}})
	b.Limiter.Memory.Crowd = 10
	for i := range 200 {
		b.now = b.now.Add(2 * time.Millisecond)
		a := testkit.Must(b.Decide(t.Context(), Request{
			UserID: canary, Activity: "call", Subjects: map[string]string{"tenant": secret}, Limit: map[string]int64{"call": 20000},
		}))(t)
		if i > 100 && !a.Decision.Leased && !a.Decision.Acquired {
			t.Fatalf("request %d, of a busy tenant, is not from a lease", i)
		}
	}
}
