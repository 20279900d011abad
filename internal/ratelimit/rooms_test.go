package ratelimit_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// failingFor returns a limiter on a store that fails the requests for one user or room, and works
// otherwise.
func failingFor(user string, faults ...fault) (l *Limiter, works *memstore.Store, broken *faulty) {
	works = new(memstore.Store)
	broken = &faulty{Store: works, user: user, faults: faults}
	return &Limiter{Store: broken, Timeout: time.Second, Memory: NewMemory(mib)}, works, broken
}

// say returns the parts of a message in a room.
func say(id, room string, fresh, alone bool) []Part {
	user := Request{UserID: "u", Activity: "say", Policy: policy.Must("log 5/12h"), Count: 1, ID: id, Fresh: fresh, Fallback: alone}
	there := user
	there.UserID, there.For, there.Policy = room, "u", policy.Must("30/1m")
	return []Part{{Request: user}, {Request: there, Subject: "room"}}
}

// If the requests of one room fail, its users keep their own limits. What the user's item
// counted is given back, and the user can act in another room at once. Only this room's
// circuit opens, and its requests wait for it once in 5 s.
func TestAFailingRoomCostsItsUsersNothing(t *testing.T) {
	for name, f := range map[string]fault{"throttled": throttle, "hanging": hang, "failing": refuse, "denied": deny} {
		for _, fresh := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				c := fmt.Sprintf("%s, fresh ids: %v", name, fresh)
				l, works, broken := failingFor("broken", f)
				waited, asked := time.Duration(0), 0
				for n := range 40 { // 20 s
					began := time.Now()
					d, err := l.DecideAll(t.Context(), Check, say(fmt.Sprint("r", n), "broken", fresh, false), false)
					if err == nil {
						t.Errorf("%s: %+v, want an error", c, d)
					}
					took := time.Since(began)
					if waited += took; d.Requests > 0 || took > 0 {
						asked++
					}
					if took > time.Second {
						t.Errorf("%s: a decision took %v", c, took)
					}
					item, _ := works.Read(t.Context(), Key{UserID: "u", Activity: "say"})
					if used := policy.Must("log 5/12h").Read(time.Now().UnixMilli(), 0, item.State).Used; used != 0 {
						t.Fatalf("%s: after %d requests, the user's item counts %d, want 0", c, n+1, used)
					}
					time.Sleep(500*time.Millisecond - min(took, 500*time.Millisecond))
				}
				if waited > 1850*time.Millisecond || asked > 6 {
					t.Errorf("%s: %d decisions in 20 s asked the table, and waited for %v", c, asked, waited)
				}
				for n := range 5 {
					mustDoAll(t, l, Check, say(fmt.Sprint("o", n), "other", fresh, false), 0, c+": in another room")
				}
				if l.CircuitOpen() {
					t.Errorf("%s: the table's circuit is open", c)
				}
				broken.set(pass)
				time.Sleep(13 * time.Hour)
				mustDoAll(t, l, Check, say("back", "broken", fresh, false), 0, c+": when the room works again")
				settle()
			})
		}
	}
}

// With Fallback, such a room is decided from memory, and its users by the table.
func TestAFailingRoomIsDecidedFromMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _, _ := failingFor("broken", hang)
		for n := range 8 {
			began := time.Now()
			d, err := l.DecideAll(t.Context(), Check, say(fmt.Sprint("r", n), "broken", true, true), false)
			if want := n < 5; err != nil || d.Allowed != want {
				t.Errorf("request %d: %s, %v, want allowed: %v", n, inWords(d), err, want)
			}
			if took := time.Since(began); took > 850*time.Millisecond || n > 0 && took > 0 {
				t.Errorf("request %d took %v", n, took)
			}
		}
		if l.CircuitOpen() {
			t.Error("the table's circuit is open")
		}
		settle()
	})
}

// A decision that only looks at a circuit leaves its probe to others: a hanging room must not
// keep the circuit of its tenant open for the tenant's other rooms.
func TestLookingClaimsNoProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _, room := failingFor("broken", hang)
		user := &faulty{Store: room, user: "u", faults: []fault{pass}}
		l.Store = user
		_, _ = l.DecideAll(t.Context(), Check, say("r1", "broken", true, false), false) // opens the room's circuit
		user.set(throttle)
		_, _ = l.DecideAll(t.Context(), Check, say("r2", "other", true, false), false) // opens the user's circuit
		user.set(pass)
		time.Sleep(5 * time.Second)
		before := room.count()
		if _, err := l.DecideAll(t.Context(), Check, say("r3", "broken", true, false), false); err == nil { // probes the user, and not the room
			t.Error("the room's circuit is due, so the decision should end")
		}
		if room.count() != before {
			t.Errorf("%d requests for the room, want none", room.count()-before)
		}
		mustDoAll(t, l, Check, say("r4", "other", true, false), 0, "in another room")
		settle()
	})
}

// A repeat gets no answer about its user, and memory knows the request. Then its mark finds the
// count. The lost attempt can have been the one that counted, so the answer is ok.
func TestALostAttemptIsRememberedUntilTheMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _, user := failingFor("u", pass)
		parts := say("r1", "lounge", false, true)
		for i := range parts {
			parts[i].Policy = policy.Must("30/1m")
		}
		if d, err := l.DecideAll(t.Context(), Check, parts, false); err != nil || d.Reason != OK {
			t.Fatalf("the first time: %s, %v, want ok", inWords(d), err)
		}
		user.set(repeat(6, refuse)...)
		if d, err := l.DecideAll(t.Context(), Check, parts, false); err != nil || d.Reason != OK || d.At != 0 {
			t.Errorf("the second time: %s, %v, want ok without a receipt", inWords(d), err)
		}
		settle()
	})
}

// A mark that fails opens the circuit of its key only, because the table has answered the
// decision before. The answers are about the user and the room, or about the user of an
// activity whose subjects are left out.
func TestAMarkThatFailsOpensTheCircuitOfItsKey(t *testing.T) {
	both := say("r1", "lounge", false, true)
	single := both[0].Request
	single.Shared = true
	for name, check := range map[string]func(context.Context, *Limiter) (Decision, error){
		"user and room": func(ctx context.Context, l *Limiter) (Decision, error) { return l.DecideAll(ctx, Check, both, false) },
		"user alone":    func(ctx context.Context, l *Limiter) (Decision, error) { return l.Check(ctx, single) },
	} {
		synctest.Test(t, func(t *testing.T) {
			other, _, user := failingFor("u", pass)
			if d, err := check(t.Context(), &Limiter{Store: other.Store, Timeout: time.Second}); err != nil || d.Reason != OK {
				t.Fatalf("%s: %s, %v, want ok", name, inWords(d), err)
			}
			user.set(pass, refuse)
			d, err := check(t.Context(), other) // finds what the first one has counted
			table, key := other.CircuitProbed(Key{UserID: "u", Activity: "say"})
			if err != nil || !d.Allowed || !table.IsZero() || key.IsZero() {
				t.Errorf("%s: %s, %v; the table's circuit opened at %v, the user's at %v, want only the user's", name, inWords(d), err, table, key)
			}
			settle()
		})
	}
}

// A repeat finds in memory what an outage of its user has counted there. Then the table answers
// again, and has no room for it: the answer is this refusal, and no mark is sent.
func TestARepeatThatOnlyMemoryKnowsIsRefusedByAFullTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, works, user := failingFor("u", throttle)
		if d, err := l.DecideAll(t.Context(), Check, say("r1", "lounge", false, true), false); err != nil || d.Reason != Unavailable || !d.Allowed {
			t.Fatalf("the first time: %s, %v, want it allowed from memory", inWords(d), err)
		}
		other := &Limiter{Store: works}
		for n := range 5 {
			mustDoAll(t, other, Check, say(fmt.Sprint("o", n), "lounge", false, true), 0, "another instance")
		}
		time.Sleep(6 * time.Second)
		before := user.count()
		user.set(append([]fault{pass}, repeat(6, throttle)...)...) // the probe, the check, and once more
		d, err := l.DecideAll(t.Context(), Check, say("r1", "lounge", false, true), false)
		if sent := user.count() - before; err != nil || d.Reason != Limited || sent != 8 {
			t.Errorf("the second time: %s, %v, after %d requests for the user, want limited after 8", inWords(d), err, sent)
		}
		settle()
	})
}
