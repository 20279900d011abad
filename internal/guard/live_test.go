package guard_test

import (
	"context"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
)

// settings are a table's, as a test writes them.
type settings struct {
	document string
	version  int64
}

func (s *settings) Settings(context.Context, bool) ([]byte, int64, error) {
	return []byte(s.document), s.version, nil
}

func (s *settings) ChangeSettings(context.Context, int64, []byte, live.Change) error { return nil }
func (s *settings) SettingsHistory(context.Context) ([]live.Change, error)           { return nil, nil }

// set writes them, and lets the time pass after which an instance looks.
func (s *settings) set(b *bench, document string) {
	s.document = document
	s.version++
	b.now = b.now.Add(31 * time.Second)
}

func newLiveBench(t *testing.T) (*bench, *settings) {
	b, s := newBench(t), &settings{}
	b.Live = &live.Follower{Table: s, Guards: limits.All, Now: func() time.Time { return b.now }}
	return b, s
}

// reasons asks one after the other.
func (b *bench) reasons(event string, want ...string) {
	b.t.Helper()
	for i, reason := range want {
		got, err := b.ask(event)
		if err != nil || got["reason"] != reason {
			b.t.Errorf("%s, time %d: %v, %v, want %s", event, i, got, err, reason)
		}
	}
}

// What is off, or granted, asks the table nothing: it looks all the same, or it
// would be so for ever.
func TestWhatIsOffComesOnAgain(t *testing.T) {
	b, s := newLiveBench(t)
	s.set(b, `{"activities": {"create_post": {"mode": "off"}}}`)
	b.reasons(`{}`, "ok", "unlimited", "unlimited")
	s.set(b, `{"grants": [{"userId": "`+canary+`", "role": "admin", "until": "2030-01-01T00:00:00Z", "reason": "r"}]}`)
	b.reasons(`{}`, "unlimited", "bypassed", "bypassed")
	s.set(b, `{}`)
	b.reasons(`{}`, "bypassed", "ok")
}

// A granted tier is for activities that name it; elsewhere the caller's stays.
func TestAGrantedTierOfAnotherActivity(t *testing.T) {
	b, s := newLiveBench(t)
	s.set(b, `{"grants": [{"userId": "`+canary+`", "tier": "burst", "until": "2030-01-01T00:00:00Z", "reason": "r"}]}`)
	b.reasons(`{}`, "ok")
	if got, err := b.ask(`{"tier": "premium"}`); err != nil || got["limit"] != 20.0 {
		t.Errorf("%v, %v, want the premium limit", got, err)
	}
	b.Guard = limits.Chat
	if got, err := b.ask(`{"activity": "send_message"}`); err != nil || got["limit"] != 3.0 {
		t.Errorf("%v, %v, want the granted tier", got, err)
	}
}

// The mode that counts in an outage is the one that is live.
func TestLiveModeInAnOutage(t *testing.T) {
	b, s := newLiveBench(t)
	b.DenyOutage = true
	s.set(b, `{"activities": {"create_post": {"mode": "shadow"}}}`)
	b.reasons(`{}`, "ok")
	b.store.away = errAway
	b.reasons(`{}`, "unavailable")
	if _, err := b.ask(`{"activity": "update_post"}`); err == nil {
		t.Error("another activity is let through")
	}
	b.Mode = Shadow
	b.reasons(`{"activity": "update_post"}`, "unavailable")
}

// A job that an instance delays by its own memory is put on the queue, too.
func TestAJobInAnOutage(t *testing.T) {
	b := newBench(t)
	b.Guard, b.RefusalIsError = limits.Jobs, true
	b.store.away = errAway
	var q queue
	b.Delay = q.put
	for range 11 {
		if _, err := b.ask(`{"activity": "update_member_role", "job": 1}`); err != nil {
			t.Fatal(err)
		}
	}
	if len(q.jobs) != 1 || q.jobs[0].ReadyAt != startMillis+10_000 {
		t.Errorf("%+v on the queue, want the eleventh", q.jobs)
	}
}

// What a higher limit counted can be given back by a lower one.
func TestReleaseAfterALoweredLimit(t *testing.T) {
	b := newBench(t)
	if _, err := b.ask(`{"tier": "premium", "count": 15, "requestId": "r1"}`); err != nil {
		t.Fatal(err)
	}
	b.want(`{"op": "release", "count": 15, "requestId": "r1", "at": 1700000040000}`, figures(true, "ok", 0, fields{"op": "release"}))
}
