package guard_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// setBlocks writes a document of blocks, and lets the next request make the guard look.
func (s *settings) setBlocks(b *bench, blocks ...live.Block) {
	b.t.Helper()
	stored, err := live.Blocks{All: blocks}.Stored(s.blocks.Version + 1)
	testkit.OK(b.t, err)
	s.blocks = stored
	b.now = b.now.Add(31 * time.Second)
}

// block returns a block of the canary that ends this long after the start of a test.
func block(activity string, d time.Duration) live.Block {
	return live.Block{UserID: canary, Activity: activity, Until: start.Add(d), Reason: "spam"}
}

// blockedFor is the whole answer to a check or a status that a block refuses.
func blockedFor(d time.Duration, until time.Time, more fields) fields {
	want := fields{
		"allowed": false, "reason": "blocked", "granted": 0, "waitTime": int(d.Milliseconds()), "resetAt": int(until.UnixMilli()),
		"message": "You can't do this at the moment.",
	}
	maps.Copy(want, more)
	return want
}

// A block wins over tier, role, bypass and a live mode off. It costs no request, holds also
// in an activity without a limit, and ends by itself.
func TestABlockHoldsWhateverTheLimitIs(t *testing.T) {
	withLiveLimits(t, func(_ *testing.T, b *bench, s *settings) {
		s.set(b, grant("admin", ""))
		s.setBlocks(b, block("", time.Hour))
		b.reasons(`{}`, "ok") // this request reads the documents
		b.store.asked = 0
		left := start.Add(time.Hour).Sub(b.now)
		for _, event := range []string{`{}`, `{"tier": "premium"}`, `{"roles": ["admin"]}`, `{"count": 5000}`, `{"readyAt": 1700000000000}`, `{"partial": true, "count": 3}`} {
			b.want(event, blockedFor(left, start.Add(time.Hour), nil))
		}
		b.want(`{"activity": "like"}`, blockedFor(left, start.Add(time.Hour), fields{"activity": "like"}))
		status := blockedFor(left, start.Add(time.Hour), fields{"op": "status"})
		delete(status, "granted")
		b.want(`{"op": "status"}`, status)
		s.set(b, live.Settings{Activities: map[string]live.Override{"create_post": {Mode: "off"}}})
		b.reasons(`{}`, "blocked", "blocked")
		if b.store.asked != 0 {
			b.t.Errorf("%d requests, want none", b.store.asked)
		}
		b.now = start.Add(time.Hour - time.Millisecond)
		b.reasons(`{}`, "blocked")
		b.now = start.Add(time.Hour)
		b.reasons(`{}`, "unlimited")
	})
}

// What was counted before a block can be given back, and a reset works. Bad input is still
// an error.
func TestABlockLetsWhatWasCountedBeGivenBack(t *testing.T) {
	withLiveLimits(t, func(_ *testing.T, b *bench, s *settings) {
		counted := b.mustAsk(`{"requestId": "r1"}`)
		s.setBlocks(b, block("create_post", time.Hour))
		b.reasons(`{"op": "status"}`, "ok", "blocked")
		b.reasons(fmt.Sprintf(`{"op": "release", "requestId": "r1", "at": %v}`, int64(counted["at"].(float64))), "ok")
		b.reasons(`{"op": "reset"}`, "ok")
		for _, event := range []string{`{"count": -1}`, `{"op": "no"}`, `{"at": 5}`, `{"subjects": {"room": "r1"}}`, `{"activity": "pin"}`} {
			if got, err := b.ask(event); !errors.As(err, new(*input.ValidationError)) {
				b.t.Errorf("%s: %v, %v, want a ValidationError", event, got, err)
			}
		}
		b.Guard = cricket.Pins
		b.reasons(`{"activity": "pin"}`, "ok") // a block of one activity leaves the others alone
	})
}

// With several blocks, the answer is about the one that ends last, and names its subject.
func TestTheBlockThatEndsLastAnswers(t *testing.T) {
	withLiveLimits(t, func(_ *testing.T, b *bench, s *settings) {
		b.Guard.Activities = []limits.Activity{{Name: "say", Limit: policy.Must("10/1m"), Subjects: []limits.Subject{{Name: "room", Limit: policy.Must("10/1m")}}}}
		room := block("", 2*time.Hour)
		room.UserID = " room r42"
		s.setBlocks(b, block("", time.Hour), block("say", 30*time.Minute), room)
		b.reasons(`{"activity": "say", "subjects": {"room": "r42"}}`, "ok")
		for event, want := range map[string]fields{
			`{"activity": "say", "subjects": {"room": "r42"}}`: {"limitedBy": "room", "resetAt": int(start.Add(2 * time.Hour).UnixMilli())},
			`{"activity": "say", "subjects": {"room": "r1"}}`:  {"resetAt": int(start.Add(time.Hour).UnixMilli())},
		} {
			got := b.mustAsk(event)
			if got["reason"] != "blocked" || got["limitedBy"] != want["limitedBy"] || int(got["resetAt"].(float64)) != want["resetAt"] {
				b.t.Errorf("%s: %v, want %v", event, got, want)
			}
		}
	})
}

// In shadow mode a blocked request goes through. With the function's own mode off, blocks
// are not read. Each outcome of a check is counted once, as Blocked.
func TestABlockByMode(t *testing.T) {
	withLiveLimits(t, func(_ *testing.T, b *bench, s *settings) {
		s.setBlocks(b, block("", time.Hour))
		b.reasons(`{}`, "ok")
		b.Metrics.Flush()
		b.lines.Reset()
		b.log.Reset()
		b.reasons(`{}`, "blocked")
		b.Mode = live.Shadow
		if got := b.mustAsk(`{}`); got["reason"] != "shadow" || got["allowed"] != true || got["message"] != nil || got["granted"] != 0.0 {
			b.t.Errorf("%v, want shadow", got)
		}
		b.reasons(`{"op": "status"}`, "shadow")
		if lines := b.measured(); !strings.Contains(lines, `"Blocked":2`) || strings.Contains(lines, "Refused") || strings.Contains(lines, "Requests") || strings.Contains(lines, "Shadowed") {
			b.t.Errorf("metrics: %s", lines)
		}
		if b.log.Len() > 0 {
			b.t.Errorf("log: %s", &b.log)
		}
		b.Mode = live.Off
		b.reasons(`{}`, "unlimited")
		b.Mode, b.RefusalIsError = live.Enforce, true
		if _, err := b.ask(`{}`); !errors.As(err, new(*RateLimitExceeded)) || err.Error() != "You can't do this at the moment." {
			b.t.Errorf("with ON_LIMIT=error: %v", err)
		}
		b.RefusalIsError, b.Guard.BlockedMessage = false, "Blocked."
		if status, headers, body := b.call("POST", `{"userId": "`+canary+`", "activity": "create_post"}`, false); status != 429 ||
			headers["Retry-After"] != "3569" || headers["RateLimit"] != nil || body["message"] != "Blocked." || body["violated-policies"] != nil || body["type"] != nil {
			b.t.Errorf("by HTTP: %v, %v, %v", status, headers, body)
		}
	})
}

// A blocked user asks the table nothing. So such a request reads the documents, also in an
// outage, and without waiting for a limit.
func TestABlockThatIsLiftedIsNoticed(t *testing.T) {
	withLiveLimits(t, func(_ *testing.T, b *bench, s *settings) {
		s.setBlocks(b, block("", time.Hour))
		b.reasons(`{}`, "ok", "blocked")
		b.store.away = errAway
		if _, err := b.Decide(b.t.Context(), Request{UserID: "other", Activity: "create_post"}); err != nil || !b.Limiter.CircuitOpen() {
			b.t.Errorf("%v, want an open circuit", err)
		}
		s.setBlocks(b)
		b.reasons(`{"activity": "like"}`, "blocked", "unlimited")
		s.setBlocks(b, block("", time.Hour))
		b.reasons(`{"activity": "like"}`, "unlimited", "blocked")
	})
}

// A block that ends within a millisecond has an end that an answer can name: a user that
// comes back then is not blocked any more. Its wait is never 0, even if the clock has gone
// on.
func TestABlockEndsAtTheTimeInItsAnswer(t *testing.T) {
	withLiveLimits(t, func(_ *testing.T, b *bench, s *settings) {
		s.setBlocks(b, block("", time.Hour+300*time.Microsecond))
		b.reasons(`{}`, "ok")
		b.now = start.Add(time.Hour + 200*time.Microsecond)
		end := start.Add(time.Hour + time.Millisecond)
		b.want(`{}`, blockedFor(time.Millisecond, end, nil))
		b.now = end
		b.reasons(`{}`, "ok")
	})
}
