package ratelimit_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
)

// message returns the parts of a message of a user in a room.
func message(user, room, id string, own, shared string) []Part {
	r := Request{UserID: user, Activity: "write", Policy: policy.Must(own), Count: 1, ID: id, Fallback: true}
	inRoom := r
	inRoom.UserID, inRoom.For, inRoom.Policy = " room "+room, user, policy.Must(shared)
	return []Part{{Request: r}, {Request: inRoom, Subject: "room"}}
}

// doAll decides parts with a receipt; 0: none.
func doAll(t *testing.T, l *Limiter, op Op, parts []Part, at int64) Decision {
	t.Helper()
	for i := range parts {
		parts[i].At = at
	}
	d, err := l.DecideAll(t.Context(), op, parts, false)
	testkit.OK(t, err)
	return d
}

// mustDoAll is doAll, and fails the test unless the parts are allowed.
func mustDoAll(t *testing.T, l *Limiter, op Op, parts []Part, at int64, what string) Decision {
	t.Helper()
	d := doAll(t, l, op, parts, at)
	if !d.Allowed {
		t.Fatalf("%s: %+v", what, d)
	}
	return d
}

// usedIn returns how many actions the item of a part counts.
func usedIn(t *testing.T, store Store, p Part, c *clock) int64 {
	t.Helper()
	r := p.Request
	r.ID = "status"
	return mustDo(t, &Limiter{Store: store, Now: c.now}, Status, r).Used
}

// mustCount fails the test unless the items of the parts count so many actions, in their order.
func mustCount(t *testing.T, store Store, c *clock, what string, parts []Part, want ...int64) {
	t.Helper()
	for i, p := range parts {
		if used := usedIn(t, store, p, c); used != want[i] {
			t.Errorf("%s: %s counts %d, want %d", what, p.UserID, used, want[i])
		}
	}
}

// mustRefuse checks parts, and fails the test unless this limit refuses them.
func mustRefuse(t *testing.T, l *Limiter, parts []Part, by, what string) Decision {
	t.Helper()
	d := doAll(t, l, Check, parts, 0)
	if d.Allowed || d.LimitedBy != by {
		t.Errorf("%s: %+v, want a refusal by the %s", what, d, by)
	}
	return d
}

// A room refuses. The user's count is given back, by an update that needs no read.
func TestARoomRefuses(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		l, c := instance(store)
		for i := range 3 {
			parts := message("u"+strconv.Itoa(i), "r", "a", "10/1m", "3/1m")
			d, err := l.DecideAll(t.Context(), Check, parts, false)
			if err != nil || !d.Allowed || d.Requests != 2 || d.At == 0 || d.Each[0].Name != "write" || d.Each[1].Name != "room" || d.Name != "room" {
				t.Fatalf("%+v, %v", d, err)
			}
		}
		cold := &Limiter{Store: store, Now: c.now, Memory: NewMemory(mib), Timeout: 10 * time.Second}
		parts := message("u9", "r", "b", "10/1m", "3/1m")
		d, err := cold.DecideAll(t.Context(), Check, parts, false)
		if err != nil || d.Allowed || d.Reason != Limited || d.LimitedBy != "room" || d.Requests > 3 || d.Wait != time.Minute || d.At != 0 || d.Granted != 0 {
			t.Errorf("cold: %+v, %v, want a refusal by the room after at most 3 requests", d, err)
		}
		if d.Each[0].Used != 0 || d.Each[1].Used != 3 {
			t.Errorf("the figures are %+v, want those after what was given back", d.Each)
		}
		mustCount(t, store, c, "a refusal", parts[:1], 0)
		if d, err = cold.DecideAll(t.Context(), Check, message("u8", "r", "c", "10/1m", "3/1m"), false); err != nil || d.Allowed || d.Requests != 0 || d.LimitedBy != "room" {
			t.Errorf("known: %+v, %v, want a refusal without a request", d, err)
		}
		if d, err = cold.DecideAll(t.Context(), Check, message("u7", "r", "d", "10/1m", "3/1m"), true); err != nil || d.Allowed || d.Requests != 0 {
			t.Errorf("known, with nothing behind it: %+v, %v", d, err)
		}
	})
}

// The user's item is throttled, so that part is decided from memory. Then the table says
// that the room is full. The reason is unavailable, as docs/events.md has it for any part.
func TestARoomRefusesAfterAPartFromMemory(t *testing.T) {
	c, store := newClock(), new(memstore.Store)
	mustDoAll(t, &Limiter{Store: store, Now: c.now}, Check, message("v", "r", "a", "10/1m", "1/1m"), 0, "the only place in the room")
	l := &Limiter{Store: throttling(store, "u"), Now: c.now, Memory: NewMemory(mib)}
	d, err := l.DecideAll(t.Context(), Check, message("u", "r", "b", "10/1m", "1/1m"), false)
	if err != nil || d.Allowed || d.Reason != Unavailable || d.Outage == nil || d.LimitedBy != "room" {
		t.Errorf("%+v, %v, want a refusal by the room, unavailable", d, err)
	}
}

// An instance dies between the updates, or before it gives back. A repeat counts what
// is missing, and nothing twice.
func TestARepeatCountsWhatIsMissing(t *testing.T) {
	for performed := range 4 {
		store, c := new(memstore.Store), newClock()
		parts := message("u", "r", "a", "10/1m", "3/1m")
		dying := &Limiter{Store: mortal(store, performed), Now: c.now, Memory: NewMemory(mib)}
		parts[0].Fallback, parts[1].Fallback = false, false
		_, _ = dying.DecideAll(t.Context(), Check, parts, false)
		d, err := (&Limiter{Store: store, Now: c.now}).DecideAll(t.Context(), Check, parts, false)
		if err != nil || !d.Allowed || d.Reason != OK && d.Reason != Duplicate || (d.Reason == Duplicate) != (performed >= 2) {
			t.Errorf("after %d requests: %+v, %v", performed, d, err)
		}
		mustCount(t, store, c, fmt.Sprintf("after %d requests", performed), parts, 1, 1)
	}
}

// A clock that moves between the requests of a decision does not change its receipt: all
// parts are decided at one reading. So all of them can be released and renewed.
func TestPartsHaveOneReceipt(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		c := newClock()
		moving := func() time.Time { c.add(7 * time.Millisecond); return c.now() }
		l := &Limiter{Store: store, Now: moving, Memory: NewMemory(mib), Timeout: 10 * time.Second}
		parts := message("u", "r", "a", "log 3/10m", "now: log 9/10m, day: 100/1d")
		first := mustDoAll(t, l, Check, parts, 0, "a check")
		if first.At == 0 || len(first.Each) != 3 || first.Each[1].Name != "room.now" || first.Each[2].Name != "room.day" {
			t.Fatalf("%+v", first)
		}
		c.add(5 * time.Minute)
		renewed := mustDoAll(t, l, Renew, parts, first.At, "a renewal")
		again := mustDoAll(t, l, Renew, parts, first.At, "the renewal again, whose answer was lost")
		if renewed.At <= first.At || again.At < renewed.At {
			t.Fatalf("receipts of %d, %d and %d", first.At, renewed.At, again.At)
		}
		c.add(8 * time.Minute)
		last := mustDoAll(t, l, Renew, parts, again.At, "the next renewal")
		if d := mustDoAll(t, l, Release, parts, last.At, "a release"); d.Each[0].Used != 0 || d.Each[1].Used != 0 {
			t.Errorf("%+v, want every slot free", d)
		}
		if d := doAll(t, l, Renew, parts, last.At); d.Allowed || d.Reason != Expired {
			t.Errorf("%+v", d)
		}
	})
}

// An instance dies between the renewals of two parts. The next attempt moves the later
// part to the time of the earlier one, so one receipt serves for both, even after
// their ids are forgotten.
func TestARenewalEndsBetweenTwoParts(t *testing.T) {
	for performed := range 3 {
		store, c := new(memstore.Store), newClock()
		l := &Limiter{Store: store, Now: c.now, Memory: NewMemory(mib)}
		parts := message("u", "r", "a", "log 3/10m", "log 9/10m")
		parts[0].Fallback, parts[1].Fallback = false, false
		d := mustDoAll(t, l, Check, parts, 0, "a check")
		c.add(3 * time.Minute)
		parts[0].At, parts[1].At = d.At, d.At
		dying := &Limiter{Store: mortal(store, performed), Now: c.now}
		_, _ = dying.DecideAll(t.Context(), Renew, parts, false)
		c.add(2 * time.Second)
		if d = mustDoAll(t, l, Renew, parts, d.At, "a renewal"); d.At == 0 {
			t.Fatalf("after %d requests: %+v, want one receipt", performed, d)
		}
		for range 3 {
			c.add(200 * time.Second)
			if d = mustDoAll(t, l, Renew, parts, d.At, "a later renewal"); d.At != c.now().UnixMilli() {
				t.Fatalf("after %d requests: %+v, want both renewed", performed, d)
			}
		}
	}
}

// A room's window counts what others did since a slot was taken. The release of a slot
// that was renewed in that window does not give back the others' actions, even if a reset
// has made the user's item forget the renewal.
func TestAReleaseAfterARenewalLeavesTheRoomAlone(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		for i, room := range []string{"30/1m", "300/1h", "all: 30/1m, day: 100/1d", "bucket 30/1h", "sliding 300/1h"} {
			for _, how := range []string{"", "held", "held, reset"} {
				l, c := instance(store)
				name := fmt.Sprint(i, how)
				mine, theirs := message("u"+name, name, "a", "log 3/10m", room), message("v"+name, name, "b", "log 3/10m", room)
				for i := range mine {
					mine[i].Hold, theirs[i].Hold = strings.Contains(how, "held"), strings.Contains(how, "held")
				}
				d := mustDoAll(t, l, Check, mine, 0, room)
				c.add(3 * time.Minute)
				mustDoAll(t, l, Check, theirs, 0, room)
				before := usedIn(t, store, mine[1], c)
				if how == "held" && strings.HasSuffix(room, "300/1h") { // the check still counts, and the slots know its time
					before--
				}
				d = mustDoAll(t, l, Renew, mine, d.At, room)
				if strings.Contains(how, "reset") {
					mustDo(t, l, Reset, mine[0].Request)
				}
				c.add(30 * time.Second)
				mustDoAll(t, l, Release, mine, d.At, room)
				mustCount(t, store, c, room+", "+how+", after the release", mine, 0, before)
			}
		}
	})
}

// With Hold, a check is counted once even if its repeat comes a minute later and one of its
// items has slots.
func TestAHeldCheckOfSlotsCountsOnce(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		l, c := instance(store)
		parts := message("u", "held", "a", "log 3/10m", "sliding 300/1h")
		parts[0].Hold, parts[1].Hold = true, true
		mustDoAll(t, l, Check, parts, 0, "check")
		c.add(time.Minute)
		if d := mustDoAll(t, l, Check, parts, 0, "repeat"); d.Reason != Duplicate {
			t.Errorf("the repeat is told %s, want duplicate", d.Reason)
		}
		mustCount(t, store, c, "after the repeat", parts, 1, 1)
	})
}

// A slot is renewed and released within 20 s, while the room knows the id, and in the
// room's next period. The release leaves what others counted there. This holds even if it
// is sent again, if the slot is the room's, and if a reset has made its item forget the
// renewal.
func TestAReleaseSoonAfterARenewalLeavesOthersAlone(t *testing.T) {
	onEachStore(t, func(t *testing.T, store Store) {
		for i, other := range []string{"sliding 300/10s", "all: 30/10s, day: 100/1d", "bucket 10/10s"} {
			for n, resets := range []bool{false, false, true, true} {
				slots := n % 2
				l, c := instance(store)
				texts := []string{other, other}
				texts[slots] = "log 3/10m"
				name := fmt.Sprint(i, slots, resets)
				mine, theirs := message("u"+name, name, "a", texts[0], texts[1]), message("u"+name, name, "b", texts[0], texts[1])
				c.at(9 * time.Second)
				d := mustDoAll(t, l, Check, mine, 0, name)
				c.at(11 * time.Second)
				mustDoAll(t, l, Check, theirs, 0, name)
				d = mustDoAll(t, l, Renew, mine, d.At, name)
				taken := int64(1) // b's action
				if resets {
					mustDo(t, l, Reset, mine[slots].Request)
					taken = 0
				}
				c.at(12 * time.Second)
				before := usedIn(t, store, mine[1-slots], c)
				for range 2 {
					mustDoAll(t, l, Release, mine, d.At, name)
				}
				want := []int64{before, before}
				want[slots] = taken
				mustCount(t, store, c, name+", after the release", mine, want...)
			}
		}
	})
}

// The room is throttled, so the check ends with an error. What it counted for the user is given
// back, by an id of the guard and by one of the app. But if a second attempt with the same id is
// admitted meanwhile, the first one leaves the user's count to it.
func TestAnErrorKeepsWhatARepeatReliesOn(t *testing.T) {
	for name, tt := range map[string]struct{ fresh, repeated bool }{
		"an id of the guard": {true, false}, "an id of the app": {false, false}, "a second attempt": {false, true},
	} {
		store, c := new(memstore.Store), newClock()
		parts := message("u", "r", "a", "10/1m", "3/1m")
		for i := range parts {
			parts[i].Fallback, parts[i].Fresh = false, tt.fresh
		}
		first := &Limiter{Now: c.now, Store: beforeEach(store, func(w Write) error {
			if !inRoom(w) {
				return nil
			}
			if tt.repeated {
				if d := doAll(t, &Limiter{Store: store, Now: c.now}, Check, parts, 0); d.Reason != OK {
					t.Errorf("%s: the second attempt: %+v", name, d)
				}
			}
			return errThrottled
		})}
		if _, err := first.DecideAll(t.Context(), Check, parts, false); err == nil {
			t.Errorf("%s: the first attempt has no error", name)
		}
		want := int64(0)
		if tt.repeated {
			want = 1
		}
		mustCount(t, store, c, name, parts, want, want)
	}
}

// An instance dies after the user's update, and others fill the room. The repeat is
// refused by the room, and the user's count stays: the attempt that died may still be
// on its way to the room.
func TestWhatAnEarlierAttemptCountedStays(t *testing.T) {
	store, c := new(memstore.Store), newClock()
	parts := message("u", "r", "a", "10/1m", "1/1m")
	_, _ = (&Limiter{Store: mortal(store, 1), Now: c.now}).DecideAll(t.Context(), Check, parts, false)
	mustDoAll(t, &Limiter{Store: store, Now: c.now}, Check, message("v", "r", "b", "10/1m", "1/1m"), 0, "the only place in the room")
	mustRefuse(t, &Limiter{Store: store, Now: c.now}, parts, "room", "the repeat")
	mustCount(t, store, c, "after the repeat", parts[:1], 1)
}

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
		mustDoAll(t, l, Check, parts, 0, text+", with an empty tenant")
		for i := range parts {
			parts[i].ID = "b"
		}
		mustRefuse(t, &Limiter{Store: store, Now: moving}, parts, "tenant", text)
		mustCount(t, store, c, text, parts[:2], 3, 3)
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
		mustCount(t, store, c, "after a refusal", parts, 1, 1)
	}
}
