package guard_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	. "github.com/cric-talk/guards/internal/guard"
)

// newSpoiledBench returns a guard whose items have an attribute of the wrong
// type.
func newSpoiledBench(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.store.spoil = []string{"activityCount"}
	return b
}

// wantUnreadableLogged fails the test unless each line of the log is an ERROR
// that names the attribute and the activity, and nothing else that could be the
// user.
func (b *bench) wantUnreadableLogged(ops ...string) {
	b.t.Helper()
	lines := strings.Split(strings.TrimSpace(b.log.String()), "\n")
	if len(lines) != len(ops) {
		b.t.Fatalf("%d lines, want %d:\n%s", len(lines), len(ops), &b.log)
	}
	for i, op := range ops {
		line := parse(b.t, []byte(lines[i]))
		delete(line, "time")
		want := fields{"level": "ERROR", "msg": "item unreadable", "activity": "create_post", "attribute": "activityCount", "op": op}
		if diff := cmp.Diff(want, line); diff != "" {
			b.t.Errorf("line %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestMemoryDecidesAboutAnUnreadableItem(t *testing.T) {
	b := newSpoiledBench(t)
	b.want(`{"count": 10}`, figures(true, "unavailable", 10, fields{"granted": 10}))
	b.want(`{"op": "status"}`, figures(false, "unavailable", 10, fields{"op": "status", "waitTime": 60000, "message": message}))
	b.wantUnreadableLogged("check", "status")
	if b.store.asked > 2 || b.Limiter.CircuitOpen() {
		t.Errorf("%d requests, circuit open: %v, want at most 2 and a closed circuit", b.store.asked, b.Limiter.CircuitOpen())
	}
}

func TestAnUnreadableItemCanBeAnError(t *testing.T) {
	b := newSpoiledBench(t)
	b.DenyOutage = true
	for _, event := range []string{`{}`, `{"op": "status"}`} {
		_, err := b.ask(event)
		b.wantUnavailable(event, "an attribute of the item has the wrong type", err)
	}
	b.wantUnreadableLogged("check", "status")
}

func TestAnUnreadableItemAllowsInShadowMode(t *testing.T) {
	b := newSpoiledBench(t)
	b.Mode, b.DenyOutage = Shadow, true
	for range 2 {
		if got := b.mustAsk(`{"count": 10}`); got["allowed"] != true || got["reason"] != "unavailable" {
			t.Errorf("%v, want allowed and unavailable", got)
		}
	}
}

// A release of an unreadable item is an error, because its count is unknown. A
// reset deletes the item and so repairs it.
func TestAResetRepairsAnUnreadableItem(t *testing.T) {
	b := newSpoiledBench(t)
	event := `{"op": "release", "requestId": "r1", "at": 1700000040000}`
	_, err := b.ask(event)
	b.wantUnavailable(event, "an attribute of the item has the wrong type", err)
	b.wantUnreadableLogged("release")
	b.want(`{"op": "reset"}`, figures(true, "ok", 0, fields{"op": "reset"}))
	b.want(`{}`, counted(1, 1))
}
