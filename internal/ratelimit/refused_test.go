package ratelimit_test

import (
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// The last of three parts refuses three actions. All of them are given back in the parts before
// it, even if a part has slots and the clock has moved.
func TestTheLastPartRefusesSeveralActions(t *testing.T) {
	for _, text := range []string{"10/1d", "log 10/1h", "now: log 10/1h, day: 10/1d"} {
		c, store := newClock(), new(memstore.Store)
		moving := func() time.Time { c.add(7 * time.Millisecond); return c.now() }
		l := &Limiter{Store: store, Now: moving}
		parts := append(message("u", "r", "a", text, text), message("u", "t", "a", text, "5/1d")[1])
		parts[2].Subject = "tenant"
		for i := range parts {
			parts[i].Count = 3
		}
		if d, err := l.DecideAll(t.Context(), Check, parts, false); err != nil || !d.Allowed {
			t.Fatalf("%s: %+v, %v, want an empty tenant to admit", text, d, err)
		}
		for i := range parts {
			parts[i].ID = "b"
		}
		cold := &Limiter{Store: store, Now: moving}
		if d, err := cold.DecideAll(t.Context(), Check, parts, false); err != nil || d.Allowed || d.LimitedBy != "tenant" {
			t.Errorf("%s: %+v, %v, want a refusal by the tenant", text, d, err)
		}
		for _, p := range parts[:2] {
			if used := usedIn(t, store, p, c); used != 3 {
				t.Errorf("%s: %s counts %d, want the 3 of before", text, p.UserID, used)
			}
		}
	}
}

// The memory knows that the user is refused. With readOn, the room is read, and counts nothing.
func TestARefusalThatIsKnownCountsNothingInTheRoom(t *testing.T) {
	c, store := newClock(), new(memstore.Store)
	l := &Limiter{Store: store, Now: c.now, Memory: NewMemory(mib)}
	mustDoAll(t, l, Check, message("u", "r", "a", "1/1d", "9/1d"), 0, "the only action")
	for _, id := range []string{"b", "c"} {
		parts := message("u", "r", id, "1/1d", "9/1d")
		d, err := l.DecideAll(t.Context(), Check, parts, true)
		if err != nil || d.Allowed || d.LimitedBy != "write" || d.Each[1].Used != 1 {
			t.Errorf("%+v, %v, want a refusal by the user's limit, and 1 used in the room", d, err)
		}
		if used := usedIn(t, store, parts[1], c); used != 1 {
			t.Errorf("the room counts %d, want 1", used)
		}
	}
}
