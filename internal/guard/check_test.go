package guard_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	. "github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/lambdafn"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

func TestACheckIsAllowedUntilTheLimitIsReached(t *testing.T) {
	b := newBench(t)
	for n := range 10 {
		b.want(`{}`, counted(1, n+1))
	}
	b.now = start.Add(18 * time.Second)
	b.want(`{}`, figures(false, "limited", 10, fields{"granted": 0, "waitTime": 42000, "message": message}))
	b.now = start.Add(time.Minute)
	b.want(`{}`, figures(true, "ok", 1, fields{"granted": 1, "receipt": true, "windowKey": window + 1, "resetAt": end + 60000}))
}

func TestAPartialGrantTakesWhatFits(t *testing.T) {
	b := newBench(t)
	b.want(`{"count": 7}`, counted(7, 7))
	b.want(`{"op": "status", "count": 5, "partial": true}`, figures(true, "ok", 7, fields{"op": "status", "waitTime": 60000, "message": message}))
	b.want(`{"count": 5, "partial": true}`, figures(true, "ok", 10, fields{"granted": 3, "waitTime": 60000, "message": message, "receipt": true, "crossed": 100}))
	b.want(`{"count": 5, "partial": true}`, limited(10))
}

func TestARepeatedRequestIdIsCountedOnce(t *testing.T) {
	b := newBench(t)
	b.want(`{"count": 2, "requestId": "r1"}`, counted(2, 2))
	b.want(`{"count": 8}`, counted(8, 10))
	b.want(`{"count": 2, "requestId": "r1"}`, figures(true, "duplicate", 10, fields{"granted": 2}))
	b.want(`{"op": "status", "requestId": "r1"}`, figures(true, "duplicate", 10, fields{"op": "status"}))
}

// Only a status tells the release: it would make every answer longer.
func TestAStatusTellsTheRelease(t *testing.T) {
	b := newBench(t)
	b.Version = "v0.1.0"
	b.want(`{}`, counted(1, 1))
	b.want(`{"op": "status"}`, figures(true, "ok", 1, fields{"op": "status", "version": "v0.1.0"}))
}

func TestTiersShareOneCount(t *testing.T) {
	b := newBench(t)
	premium := figures(true, "ok", 15, fields{"granted": 15, "receipt": true, "limit": 20, "remaining": 5})
	b.want(`{"tier": "premium", "count": 15}`, premium)
	b.want(`{}`, limited(15)) // this tier's limit is below what is counted
	b.want(`{"tier": "nobody's"}`, limited(15))
	b.want(`{"tier": "premium"}`, figures(true, "ok", 16, fields{"granted": 1, "receipt": true, "limit": 20, "remaining": 4, "crossed": 80}))
}

// When Lambda sends an asynchronous event again, it repeats its own request id.
func TestAnEventThatLambdaSendsAgainIsCountedOnce(t *testing.T) {
	b := newBench(t)
	b.NewID = lambdafn.InvocationID
	ctx := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: "from-lambda"})
	for _, reason := range []string{"ok", "duplicate"} {
		out, err := b.Invoke(ctx, []byte(`{"userId": "u1", "activity": "create_post"}`))
		if got := parse(t, out); err != nil || got["reason"] != reason || got["activityCount"] != 1.0 {
			t.Errorf("%s, %v, want %s and one counted", out, err, reason)
		}
	}
}

func TestARefusalCanBeAnError(t *testing.T) {
	b := newBench(t)
	b.RefusalIsError = true
	b.want(`{"count": 9}`, counted(9, 9))
	b.want(`{"count": 2, "partial": true}`, figures(true, "ok", 10, fields{"granted": 1, "waitTime": 60000, "message": message, "receipt": true, "crossed": 100}))
	for _, event := range []string{`{}`, `{"count": 2, "partial": true}`} {
		if _, err := b.ask(event); !errors.As(err, new(*RateLimitExceeded)) || err.Error() != message {
			t.Errorf("%s: the error is %v, want RateLimitExceeded", event, err)
		}
	}
}

// A status decides as a check would now, but counts nothing and is never an
// error.
func TestAStatusCountsNothing(t *testing.T) {
	b := newBench(t)
	b.RefusalIsError = true
	for range 2 {
		b.want(`{"op": "status"}`, figures(true, "ok", 0, fields{"op": "status"}))
	}
	b.want(`{"count": 10}`, counted(10, 10))
	before := b.store.asked
	b.want(`{"op": "status"}`, figures(false, "limited", 10, fields{"op": "status", "waitTime": 60000, "message": message}))
	if b.store.asked != before+1 {
		t.Errorf("a status sent %d requests, want one read", b.store.asked-before)
	}
}

// release is the answer to a release of create_post that leaves used counted.
func release(used int) fields { return figures(true, "ok", used, fields{"op": "release"}) }

func TestAReleaseGivesBackOnce(t *testing.T) {
	b := newBench(t)
	got := b.want(`{"count": 3, "requestId": "r1"}`, counted(3, 3))
	if got["at"] != float64(startMillis) || got["requestId"] != "r1" {
		t.Errorf("the receipt is %v, %v, want the time and the id of the check", got["at"], got["requestId"])
	}
	back := `{"op": "release", "requestId": "r1", "count": 2, "at": 1700000040000}`
	b.now = start.Add(time.Second)
	for range 2 { // the repeat changes nothing
		b.want(back, release(1))
	}
	b.want(`{"op": "release", "requestId": "other", "at": 1700000040000}`, release(1))
	b.want(`{"requestId": "r1"}`, counted(1, 2)) // a released id is new again
	b.now = start.Add(time.Minute)               // now the release is too late
	b.want(back, figures(true, "ok", 0, fields{"op": "release", "windowKey": window + 1, "resetAt": end + 60000}))
}

// Memory decides a check and a status, unless the guard answers an outage with an error.
func TestWhatFailsDuringAnOutage(t *testing.T) {
	for _, deny := range []bool{false, true} {
		b := newBench(t)
		b.DenyOutage = deny
		b.store.away = errAway
		b.wantUnavailable("the table does not exist", `{"op": "reset"}`, `{"op": "release", "requestId": "r1", "at": 1700000040000}`)
		if deny {
			b.wantUnavailable("the table does not exist", `{}`, `{"op": "status"}`)
		}
	}
}

// The rules have the order of the package comment. In each row two rules match,
// and the first one decides.
func TestTheFirstRuleThatMatchesDecides(t *testing.T) {
	for name, tt := range map[string]struct {
		event string
		mode  string
		want  string // the reason; or the field of a ValidationError
	}{
		"bad input beats a bypass role":         {`{"count": 0, "roles": ["admin"]}`, live.Enforce, "count"},
		"bad input beats mode off":              {`{"count": 0}`, live.Off, "count"},
		"bad input beats an unlimited activity": {`{"activity": "like", "count": 0}`, live.Enforce, "count"},
		"bad input beats shadow mode":           {`{"count": 11}`, live.Shadow, "count"},
		"mode off beats a bypass role":          {`{"roles": ["admin"]}`, live.Off, "unlimited"},
		"unlimited beats a bypass role":         {`{"activity": "like", "roles": ["admin"]}`, live.Enforce, "unlimited"},
		"unlimited beats shadow mode":           {`{"activity": "like"}`, live.Shadow, "unlimited"},
		"a bypass role beats the limit":         {`{"roles": ["admin"], "count": 11}`, live.Enforce, "bypassed"},
		"a bypass role beats shadow mode":       {`{"roles": ["admin"], "count": 11}`, live.Shadow, "bypassed"},
		"a bypass role beats an outage":         {`{"roles": ["admin"]}`, live.Enforce, "bypassed"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.Mode, b.DenyOutage, b.store.away = tt.mode, true, errAway
			got, err := b.ask(tt.event)
			if err != nil {
				b.wantInvalid(tt.event, tt.want, err)
			} else if got["reason"] != tt.want || got["allowed"] != true {
				t.Errorf("%s: %v, want %s", tt.event, got, tt.want)
			}
			if b.store.asked != 0 {
				t.Errorf("%s: %d requests, want none", tt.event, b.store.asked)
			}
		})
	}
}

// huge is a count far above every limit.
const huge = `"count": 9000000000000000`

// An exempt caller may use any op and any count, and gets no figures. It makes
// no difference how the activity counts otherwise.
func TestAnExemptCallerMayUseAnyOpAndCount(t *testing.T) {
	for name, tt := range map[string]struct {
		guard    limits.Guard
		activity string
		more     string
		mode     string
		reason   string
	}{
		"unlimited":              {cricket.Posts, "like", "", live.Enforce, "unlimited"},
		"bypassed":               {cricket.Posts, "create_post", `, "roles": ["user", "admin"]`, live.Enforce, "bypassed"},
		"off":                    {cricket.Posts, "create_post", "", live.Off, "unlimited"},
		"bypassed, with a queue": {cricket.Jobs, "update_member_role", `, "roles": ["admin"]`, live.Enforce, "bypassed"},
		"off, with a queue":      {cricket.Jobs, "update_member_role", "", live.Off, "unlimited"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.Guard, b.Mode = tt.guard, tt.mode
			for op, members := range map[string]string{
				"check":   huge,
				"status":  huge,
				"reset":   huge,
				"release": `"count": 1000000, "at": 1700000040000, "requestId": "r1"`,
				"renew":   `"count": 1000000, "at": 1700000040000, "requestId": "r1"`,
			} {
				want := fields{"allowed": true, "reason": tt.reason, "activity": tt.activity, "op": op}
				if op == "check" {
					want["granted"] = 9e15
				}
				if op == "renew" {
					want["granted"] = 1e6
				}
				b.want(`{"op": "`+op+`", "activity": "`+tt.activity+`", `+members+tt.more+`}`, want)
			}
			b.want(`{"activity": "`+tt.activity+`", "count": 3, "partial": true`+tt.more+`}`,
				fields{"allowed": true, "reason": tt.reason, "activity": tt.activity, "granted": 3})
			if b.store.asked != 0 {
				t.Errorf("%d requests, want none", b.store.asked)
			}
		})
	}
}

func TestABypassRoleMatchesExactly(t *testing.T) {
	b := newBench(t)
	for _, roles := range []string{`["admin"]`, `["user", "admin"]`, `["admin", "user"]`} {
		b.want(`{"roles": `+roles+`, "count": 11}`, fields{"allowed": true, "reason": "bypassed", "granted": 11})
	}
	b.want(`{"roles": ["user", "Admin", ""]}`, counted(1, 1))
}

// An operator's mode "off" can be undone, but MODE=off can't.
func TestModeOffOfTheHandlerBeatsALiveMode(t *testing.T) {
	withLiveLimits(t, func(t *testing.T, b *bench, s *settings) {
		s.set(b, live.Settings{Activities: map[string]live.Override{"create_post": {Mode: "enforce"}}})
		b.reasons(`{}`, "ok")
		b.Mode = live.Off
		b.reasons(`{}`, "unlimited")
		b.now = b.now.Add(time.Minute)
		before := s.looks
		b.reasons(`{}`, "unlimited")
		if s.looks != before {
			t.Error("a handler that is off reads the live limits")
		}
	})
}

func TestShadowModeRefusesNobody(t *testing.T) {
	b := newBench(t)
	b.Mode, b.RefusalIsError = live.Shadow, true
	b.want(`{"count": 9}`, counted(9, 9))
	b.want(`{"count": 2}`, figures(true, "shadow", 9, fields{"granted": 0, "waitTime": 60000}))
	b.want(`{"op": "status", "count": 2}`, figures(true, "shadow", 9, fields{"op": "status", "waitTime": 60000}))
	b.want(`{"count": 2, "partial": true}`, figures(true, "shadow", 10, fields{"granted": 1, "waitTime": 60000, "receipt": true, "crossed": 100}))
}

func TestShadowModeAllowsInAnOutage(t *testing.T) {
	for _, deny := range []bool{false, true} {
		b := newBench(t)
		b.Mode, b.RefusalIsError, b.DenyOutage = live.Shadow, true, deny
		b.want(`{"count": 10}`, counted(10, 10))
		b.store.away = errAway
		b.now = start.Add(2 * time.Second)
		b.want(`{"count": 2}`, figures(true, "unavailable", 10, fields{"granted": 0, "waitTime": 58000}))
	}
}

// Each row is a ValidationError that names the field. It never contains the
// user's id, and nothing is counted. The tests of package input have more values.
func TestBadInputIsAValidationError(t *testing.T) {
	user := canary
	for name, tt := range map[string]struct{ event, field, has string }{
		"no userId":             {`{"activity": "create_post"}`, "userId", "missing"},
		"empty userId":          {`{"userId": "", "activity": "create_post"}`, "userId", "empty"},
		"userId a number":       {`{"userId": 4711, "activity": "create_post"}`, "userId", "a number"},
		"129 characters":        {`{"userId": "` + strings.Repeat("u", 129) + `", "activity": "create_post"}`, "userId", "129"},
		"a space":               {`{"userId": "canary-user 4711", "activity": "create_post"}`, "userId", "U+0020 as character 12"},
		"USERID beside userId":  {`{"userId": "` + user + `", "USERID": "u2", "activity": "create_post"}`, "event", `"USERID"`},
		"no activity":           {`{"userId": "` + user + `"}`, "activity", "create_post"},
		"an unknown activity":   {`{"userId": "` + user + `", "activity": "add_comment"}`, "activity", "create_post, update_post, delete_post, like, view"},
		"an activity too long":  {`{"userId": "` + user + `", "activity": "` + strings.Repeat("a", 999) + `"}`, "activity", `aaa..."`},
		"count 0":               {`{"userId": "` + user + `", "activity": "create_post", "count": 0}`, "count", "is 0, want a whole number of at least 1"},
		"count 11":              {`{"userId": "` + user + `", "activity": "create_post", "count": 11}`, "count", "is 11, want at most 10"},
		"count 21, premium":     {`{"userId": "` + user + `", "activity": "create_post", "count": 21, "tier": "premium"}`, "count", "at most 20"},
		"status of 11":          {`{"userId": "` + user + `", "activity": "create_post", "count": 11, "op": "status"}`, "count", "at most 10"},
		"partial and requestId": {`{"userId": "` + user + `", "activity": "create_post", "partial": true, "requestId": "r"}`, "partial", "requestId"},
		"roles of numbers":      {`{"userId": "` + user + `", "activity": "create_post", "roles": ["admin", 1]}`, "roles", "array of strings"},
		"requestId too long":    {`{"userId": "` + user + `", "activity": "create_post", "requestId": "` + strings.Repeat("r", 65) + `"}`, "requestId", "65"},
		"an empty op":           {`{"userId": "` + user + `", "activity": "create_post", "op": ""}`, "op", "empty"},
		"an unknown op":         {`{"userId": "` + user + `", "activity": "create_post", "op": "Check"}`, "op", "check, status, release, renew, reset"},
		"release of too many":   {`{"userId": "` + user + `", "activity": "create_post", "count": 1000001, "op": "release", "at": 1, "requestId": "r"}`, "count", "is 1000001, want 1 to 1000000 for a release"},
		"release without at":    {`{"userId": "` + user + `", "activity": "create_post", "op": "release", "requestId": "r"}`, "at", "missing"},
		"release without id":    {`{"userId": "` + user + `", "activity": "create_post", "op": "release", "at": 1}`, "requestId", "answer"},
		"release in year 10000": {`{"userId": "` + user + `", "activity": "create_post", "op": "release", "requestId": "r", "at": 253402300800000}`, "at", "253402300800000"},
		"check with at":         {`{"userId": "` + user + `", "activity": "create_post", "at": 1}`, "at", "release"},
		"readyAt":               {`{"userId": "` + user + `", "activity": "create_post", "op": "status", "readyAt": 60000}`, "readyAt", "check"},
		"job":                   {`{"userId": "` + user + `", "activity": "create_post", "job": {}}`, "job", "delayed queue"},
		"an unknown field":      {`{"userId": "` + user + `", "activity": "create_post", "teir": "premium"}`, "event", `"teir"`},
		"an empty body":         {``, "event", "empty"},
		"a body of 70 KiB":      {`{"userId": "` + user + `", "tier": "` + strings.Repeat("t", 70<<10) + `"}`, "event", "71"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			out, err := b.Invoke(t.Context(), []byte(tt.event))
			e, ok := errors.AsType[*input.ValidationError](err)
			if !ok || e.Field != tt.field || !strings.HasPrefix(err.Error(), tt.field+" ") || !strings.Contains(err.Error(), tt.has) {
				t.Fatalf("%s, %v, want a ValidationError of %s that contains %s", out, err, tt.field, tt.has)
			}
			if strings.Contains(err.Error(), user) || len(err.Error()) > 300 {
				t.Errorf("the message has the user id or is too long: %v", err)
			}
			if b.store.asked != 0 || b.lines.Len() != 0 {
				t.Errorf("%d requests and metrics %s, want none", b.store.asked, &b.lines)
			}
		})
	}
}
