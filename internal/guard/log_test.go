package guard_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOnlyARefusedCheckIsLogged(t *testing.T) {
	b := newBench(t)
	b.want(`{"count": 10}`, counted(10, 10))
	if b.log.Len() > 0 {
		t.Errorf("an allowed request is logged: %s", &b.log)
	}
	b.mustAsk(`{}`)
	b.mustAsk(`{"op": "status"}`)
	line := parse(t, b.log.Bytes()) // one line only: a status refuses nobody
	delete(line, "time")
	want := fields{
		"level": "INFO", "msg": "refused", "activity": "create_post", "user": "***4711", "reason": "limited",
		"limit": 10.0, "activityCount": 10.0, "waitTime": 60000.0,
	}
	if diff := cmp.Diff(want, line); diff != "" {
		t.Errorf("the log of a refusal (-want +got):\n%s", diff)
	}
}

// At level DEBUG, each decision has a line with its reason and the number of
// requests to the table.
func TestEachDecisionIsLoggedAtDebug(t *testing.T) {
	b := newBench(t)
	var log bytes.Buffer
	b.Log = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	b.want(`{"count": 4}`, counted(4, 4))
	b.mustAsk(`{"roles": ["admin"]}`)
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	for i, want := range []fields{
		{"reason": "ok", "requests": 1.0, "limit": 10.0, "activityCount": 4.0, "waitTime": 0.0},
		{"reason": "bypassed"},
	} {
		want["level"], want["msg"], want["activity"], want["user"], want["op"] = "DEBUG", "decision", "create_post", "***4711", "check"
		line := parse(t, []byte(lines[i]))
		delete(line, "time")
		if diff := cmp.Diff(want, line); diff != "" || len(lines) != 2 {
			t.Errorf("line %d of %d (-want +got):\n%s", i, len(lines), diff)
		}
	}
}

// A flood of refusals writes ten lines a second. The next line that is written
// has the number of those that were not.
func TestAFloodOfRefusalsWritesTenLinesASecond(t *testing.T) {
	b := newBench(t)
	b.want(`{"count": 10}`, counted(10, 10))
	for range 500 {
		b.mustAsk(`{}`)
	}
	b.now = start.Add(time.Second)
	b.mustAsk(`{}`)
	lines := strings.Split(strings.TrimSpace(b.log.String()), "\n")
	if len(lines) != 11 {
		t.Fatalf("%d lines for 501 refusals, want 11", len(lines))
	}
	if n := parse(t, []byte(lines[9]))["notLogged"]; n != nil {
		t.Errorf("line 10 has notLogged %v, want none", n)
	}
	if n := parse(t, []byte(lines[10]))["notLogged"]; n != 490.0 {
		t.Errorf("line 11 has notLogged %v, want 490", n)
	}
}

func TestALogShowsTheLastFourCharactersOfALongUserId(t *testing.T) {
	for user, want := range map[string]string{
		"+573001234567": "***4567", "12345678": "***5678", "1234567": "***", "u": "***",
		strings.Repeat("u", 124) + "1234": "***1234",
	} {
		b := newBench(t)
		event := `{"userId": "` + user + `", "activity": "create_post", "count": 10}`
		for range 2 {
			b.answer(event)
		}
		if got := parse(t, b.log.Bytes())["user"]; got != want {
			t.Errorf("%s is logged as %v, want %s", user, got, want)
		}
	}
}

// The log of bad input has the name of the field, and nothing that the caller
// sent.
func TestBadInputIsLoggedByItsField(t *testing.T) {
	b := newBench(t)
	for _, event := range []string{`{"count": 0}`, `{"count": 11}`} {
		b.log.Reset()
		if _, err := b.ask(event); err == nil {
			t.Fatalf("%s is accepted", event)
		}
		line := parse(t, b.log.Bytes())
		delete(line, "time")
		want := fields{"level": "WARN", "msg": "invalid request", "field": "count"}
		if diff := cmp.Diff(want, line); diff != "" {
			t.Errorf("%s: the log (-want +got):\n%s", event, diff)
		}
	}
}
