package guard_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

// exports is a guard whose export takes one of three slots for ten minutes.
var exports = limits.Guard{Name: "g", Message: "m", Activities: []limits.Activity{
	{Name: "export", Limit: policy.Must("log 3/10m")},
	{Name: "print", Limit: policy.Must("10/1m")},
	{Name: "convert", Limit: policy.Must("day: 5/1d, now: log 2/10m")},
	{Name: "free", Unlimited: true},
}}

// slot is the answer about an export if used of its three slots are taken.
func slot(allowed bool, reason string, used int, more fields) fields {
	f := fields{"activity": "export", "allowed": allowed, "reason": reason, "limit": 3, "activityCount": used, "remaining": 3 - used, "waitTime": 0}
	maps.Copy(f, more)
	return f
}

const (
	tenMinutes = 600_000
	renewal    = `{"activity": "export", "op": "renew", "requestId": "r1", "at": %d}`
)

// A slot is renewed, expires and can't be renewed any more. That is no refusal: it is
// an answer without a message, even if refusals are errors, and no line of the log.
func TestASlotIsRenewedUntilItExpires(t *testing.T) {
	b := newBench(t)
	b.Guard, b.RefusalIsError = exports, true
	b.want(`{"activity": "export", "requestId": "r1"}`, slot(true, "ok", 1, fields{"granted": 1, "receipt": true, "resetAt": startMillis + tenMinutes, "heldUntil": startMillis + tenMinutes}))
	at := int64(startMillis)
	for range 3 {
		b.now = b.now.Add(200 * time.Second)
		now := b.now.UnixMilli()
		got := b.want(fmt.Sprintf(renewal, at), slot(true, "ok", 1, fields{
			"op": "renew", "granted": 1, "receipt": true, "resetAt": float64(now + tenMinutes), "heldUntil": float64(now + tenMinutes),
		}))
		if got["at"] != float64(now) || got["requestId"] != "r1" {
			t.Errorf("the receipt is %v, %v, want the time of the renewal and the id of the check", got["at"], got["requestId"])
		}
		at = now
	}
	b.now = b.now.Add(10 * time.Minute)
	b.want(fmt.Sprintf(renewal, at), slot(false, "expired", 0, fields{"op": "renew", "granted": 0, "resetAt": float64(b.now.UnixMilli())}))
	if b.log.Len() > 0 {
		t.Errorf("a slot that has expired is logged: %s", &b.log)
	}
	status, headers, got := b.call("POST", fmt.Sprintf(`{"userId": "u1", `+renewal[1:], at), false)
	if status != 200 || got["reason"] != "expired" || got["allowed"] != false || headers["Retry-After"] != nil || headers["Content-Type"] != "application/json" {
		t.Errorf("over HTTP %v %v %v, want 200 and expired", status, headers, got)
	}
}

// A slot counts in a log, whatever stands beside it, and only an answer with a receipt
// says until when.
func TestWhichAnswersHaveHeldUntil(t *testing.T) {
	b := newBench(t).guarding(exports)
	for _, tt := range []struct {
		event string
		want  any
	}{
		{`{"activity": "convert"}`, float64(startMillis + tenMinutes)},
		{`{"activity": "convert", "op": "status"}`, nil},
		{`{"activity": "convert", "requestId": "r1"}`, float64(startMillis + tenMinutes)},
		{`{"activity": "convert", "requestId": "r1"}`, nil}, // a repeat
		{`{"activity": "convert"}`, nil},                    // refused
		{`{"activity": "convert", "op": "renew", "requestId": "r1", "at": 1700000040000}`, float64(startMillis + tenMinutes)},
		{`{"activity": "convert", "op": "release", "requestId": "r1", "at": 1700000040000}`, nil},
		{`{"activity": "convert", "op": "renew", "requestId": "r1", "at": 1700000040000}`, nil}, // expired
		{`{"activity": "export", "roles": ["admin"]}`, nil},
		{`{"activity": "print"}`, nil},
	} {
		if got := b.mustAsk(tt.event); got["heldUntil"] != tt.want || tt.want != nil && got["at"] == nil {
			t.Errorf("%s: heldUntil %v, receipt %v, want %v", tt.event, got["heldUntil"], got["at"], tt.want)
		}
	}
	b.store.away = errAway
	if got := b.mustAsk(`{"activity": "export"}`); got["reason"] != "unavailable" || got["heldUntil"] != nil {
		t.Errorf("in an outage: %v, want no heldUntil", got)
	}
}

// What a renewal needs, and what it must not have. The table gets no request.
func TestARenewalThatIsInvalid(t *testing.T) {
	for event, want := range map[string]struct{ field, has string }{
		`{"activity": "export", "op": "renew", "requestId": "r1"}`:                                {"at", "at is missing, want the one in the check's answer"},
		`{"activity": "export", "op": "renew", "at": 1}`:                                          {"requestId", "requestId is missing, want the one in the check's answer"},
		`{"activity": "export", "op": "renew", "requestId": "r1", "at": 9214646400000}`:           {"at", "at is 9214646400000"},
		`{"activity": "export", "op": "renew", "requestId": "r1", "at": 1, "count": 1000001}`:     {"count", "count is 1000001, want 1 to 1000000 for a renew"},
		`{"activity": "print", "op": "renew", "requestId": "r1", "at": 1}`:                        {"op", "op is renew, want another one, because only a log has slots to renew"},
		`{"activity": "export", "op": "check", "requestId": "r1", "at": 1}`:                       {"at", "goes only with op release or renew"},
		`{"activity": "export", "op": "renew", "requestId": "release 1700000040000 r1", "at": 1}`: {"requestId", "U+0020"},
	} {
		b := newBench(t).guarding(exports)
		_, err := b.ask(event)
		b.wantInvalid(event, want.field, err)
		if err != nil && !strings.Contains(err.Error(), want.has) {
			t.Errorf("%s: %v, want an error with %s", event, err, want.has)
		}
	}
}

// Hostile receipts: of another user's slot, of a time to come, of more actions than
// were counted. None of them changes a slot, and the slot itself can still be renewed.
func TestAStrangersReceiptRenewsNothing(t *testing.T) {
	b := newBench(t).guarding(exports)
	b.mustAsk(`{"activity": "export", "count": 2, "requestId": "r1"}`)
	for _, event := range []string{
		`{"activity": "export", "op": "renew", "requestId": "r2", "at": 1700000040000}`,              // made up
		`{"activity": "export", "op": "renew", "requestId": "r1", "at": 1700000039999, "count": 2}`,  // another time
		`{"activity": "export", "op": "renew", "requestId": "r1", "at": 1700000160000, "count": 2}`,  // two minutes ahead
		`{"activity": "export", "op": "renew", "requestId": "r1", "at": 1700000040000, "count": 3}`,  // more than it has
		`{"activity": "convert", "op": "renew", "requestId": "r1", "at": 1700000040000, "count": 2}`, // of another activity
	} {
		if got := b.mustAsk(event); got["allowed"] != false || got["reason"] != "expired" || got["granted"] != 0.0 || got["at"] != nil {
			t.Errorf("%s: %v, want expired", event, got)
		}
	}
	if got := b.answer(`{"userId": "someone-else", "activity": "export", "op": "renew", "requestId": "r1", "at": 1700000040000, "count": 2}`); got["reason"] != "expired" {
		t.Errorf("another user: %v, want expired", got)
	}
	b.now = b.now.Add(time.Second)
	if got := b.mustAsk(`{"activity": "export", "op": "renew", "requestId": "r1", "at": 1700000040000, "count": 2}`); got["reason"] != "ok" || got["granted"] != 2.0 || got["activityCount"] != 2.0 {
		t.Errorf("the slot's own receipt: %v, want ok", got)
	}
}

// In an outage, the guard can't know whether a slot counts, so it does not claim
// either. The slot lives on, and shadow mode makes no difference.
func TestARenewalFailsDuringAnOutage(t *testing.T) {
	for _, deny := range []bool{false, true} {
		for _, mode := range []Mode{Enforce, Shadow} {
			b := newBench(t)
			b.Guard, b.DenyOutage, b.Mode = exports, deny, mode
			b.mustAsk(`{"activity": "export", "requestId": "r1"}`)
			b.store.away = errAway
			event := fmt.Sprintf(renewal, int64(startMillis))
			b.wantUnavailable("the table does not exist", event)
			b.store.away = nil
			b.now = b.now.Add(6 * time.Second) // the circuit is closed again
			if got := b.mustAsk(event); got["reason"] != "ok" || got["activityCount"] != 1.0 {
				t.Errorf("after the outage: %v, want the slot renewed", got)
			}
		}
	}
}

// Shadow mode stops nobody, and renews a slot that exists.
func TestShadowModeLosesNoSlot(t *testing.T) {
	b := newBench(t)
	b.Guard, b.Mode = exports, Shadow
	b.mustAsk(`{"activity": "export", "requestId": "r1"}`)
	for _, want := range []string{"ok", "shadow"} {
		got := b.mustAsk(fmt.Sprintf(renewal, int64(startMillis)))
		if got["allowed"] != true || got["reason"] != want || got["message"] != nil || (got["heldUntil"] != nil) != (want == "ok") {
			t.Errorf("a renewal: %v, want allowed and %s", got, want)
		}
		b.now = b.now.Add(11 * time.Minute)
	}
}
