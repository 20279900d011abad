package ratelimit_test

import (
	"errors"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// A room refuses a check so late that nothing of the user's count is left to give back. Since then,
// another action has taken from the full bucket, or has begun the next window. Still, refusals
// are not remembered, so the next attempt counts the user again. Otherwise it would pass beside
// a limit that is full.
func TestALateRefusalIsNotRemembered(t *testing.T) {
	onEachStore(t, func(t *testing.T, works Store) {
		for _, own := range []string{"bucket 1/1s", "a: 1/1s", "log 1/1s", "a: log 1/1s, b: bucket 1/1s", "lockout 1/1s for 1s"} {
			for user, lost := range map[string]error{"by the table": nil, "by memory": errors.New("timeout")} {
				name := own + " " + user
				t.Run(name, func(t *testing.T) {
					c := newClock()
					say := func(id, room string) []Part { return message(name, name+room, id, own, "1/1d") }
					meanwhile := func(Write) error { return nil }
					l := &Limiter{Now: c.now, Memory: NewMemory(mib), NewBudget: noPauses(3)}
					l.Store = beforeEach(works, func(w Write) error {
						if inRoom(w) {
							return meanwhile(w)
						}
						return lost
					})
					mustDoAll(t, l, Check, message("v "+name, name+"full", "other", "5/1d", "1/1d"), 0, "the only place in the room")
					meanwhile = once(inRoom, func() {
						c.add(time.Second)
						mustDo(t, l, Check, say("next", "")[0].Request)
					})
					l.Memory = NewMemory(mib)
					mustRefuse(t, l, say("mine", "full"), "room", "in a full room")
					if d := doAll(t, l, Check, say("mine", "empty"), 0); d.Allowed || d.LimitedBy == "room" {
						t.Errorf("in an empty room, while the user is full: %+v, want a refusal by the user's own limit", d)
					}
					c.add(time.Second)
					if d := doAll(t, l, Check, say("mine", "empty"), 0); !d.Allowed || d.Reason == Duplicate || d.Each[0].Used != 1 {
						t.Errorf("after that: %+v, want it to be counted", d)
					}
				})
			}
		}
	})
}

// An instance looks at the user's item while its own check is on the way there. So it knows the
// item from before, with the id of the first attempt. That attempt gives back, and the check is
// counted. When the room refuses the check, what is known shows nothing to give back, or not in
// each limit, but the item does.
func TestAGiveBackDoesNotTrustAnOlderItem(t *testing.T) {
	for _, own := range []string{"log 5/1d", "a: sliding 5/1d, b: log 5/1d"} {
		b := newBusy(t)
		b.mine = message("u", "r", "a", own, "1/1d")
		second := func(back Write) {
			var l *Limiter
			l = b.on(beforeEach(b.store, once(ofUser, func() {
				b.clock.add(time.Millisecond)
				mustDo(t, l, Status, b.mine[0].Request)
				if _, done, err := b.store.Update(t.Context(), back); err != nil || !done {
					t.Errorf("the first attempt gives nothing back: %v", err)
				}
			})))
			b.clock.add(time.Millisecond)
			mustRefuse(t, l, b.mine, "room", "the second attempt")
		}
		attempts := 0
		first := beforeEach(b.store, func(w Write) error {
			if givesBack(w) {
				if attempts++; attempts == 1 {
					second(w)
				}
			}
			return nil
		})
		b.refused(first, "room", "the first attempt")
		b.wants(0, 1)
	}
}

// One attempt of a request counts its user at the end of a window, and the room refuses it. In
// the next window, another attempt of it is admitted. The first one gives back nothing of that,
// and leaves the id.
func TestALateRefusalLeavesTheNextWindowAlone(t *testing.T) {
	onEachStore(t, func(t *testing.T, works Store) {
		c := newClock()
		c.at(time.Minute - time.Millisecond)
		say := func(user, id string) []Part { return message(user, "r", id, "5/1m", "1/1m") }
		other := &Limiter{Store: works, Now: c.now}
		mustDoAll(t, other, Check, say("v", "full"), 0, "the only place in the room")
		first := &Limiter{Now: c.now, Store: beforeEach(works, once(inRoom, func() {
			c.at(time.Minute)
			mustDoAll(t, other, Check, say("u", "a"), 0, "in the next window")
		}))}
		mustRefuse(t, first, say("u", "a"), "room", "the first attempt")
		if d := doAll(t, other, Check, say("u", "a"), 0); d.Reason != Duplicate || d.Each[0].Used != 1 {
			t.Errorf("a repeat: %+v, want a duplicate", d)
		}
	})
}

// The table counts a user, and its answer is lost, so the memory counts the user, too. Before the
// room refuses, another answer shows what the table counts. Only what the memory has counted is
// given back. The table's count stays, and the same id finds it.
func TestAGiveBackInMemoryLeavesWhatTheTableCounts(t *testing.T) {
	c, works := newClock(), new(memstore.Store)
	say := func(id, room string) []Part { return message("u", room, id, "5/1d", "1/1d") }
	mustDoAll(t, &Limiter{Store: works, Now: c.now}, Check, message("v", "full", "other", "5/1d", "1/1d"), 0, "the only place in the room")
	lost, down := errors.New("timeout"), error(nil)
	l := &Limiter{Now: c.now, Memory: NewMemory(mib), NewBudget: noPauses(1)}
	look := once(inRoom, func() {
		lost = nil
		c.add(5 * time.Second) // until a probe
		if d := mustDo(t, l, Status, say("look", "")[0].Request); d.Reason != OK || d.Used != 1 {
			t.Errorf("the table shows %+v, want 1 used", d)
		}
	})
	l.Store = beforeEach(works, func(w Write) error {
		switch {
		case down != nil:
			return down
		case inRoom(w):
			return look(w)
		case lost != nil:
			_, _, _ = works.Update(t.Context(), w)
		}
		return lost
	})
	mustRefuse(t, l, say("mine", "full"), "room", "while the table answers nothing")
	down = errors.New("down")
	for _, id := range []string{"next", "mine"} {
		if d := mustDoAll(t, l, Check, say(id, id), 0, "in an empty room"); d.Reason != Unavailable || d.Each[0].Used != 2 {
			t.Errorf("%s in an outage: %+v, want 2 used", id, d)
		}
	}
}
