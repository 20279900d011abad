package outage_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// Two users act in a room, and one item of the two gives no answer: the user's item or the
// room's. It is decided from memory, or the action is an error. A throttled key has a
// circuit of its own, so the other item counts exactly what was admitted, and nothing of an
// error or a refusal is left there. Other failures open the circuit of the table, so the
// other item is decided from memory, too, and gives nothing back.
func TestAnOutageOfOneItemOfTwo(t *testing.T) {
	prove.Explain(t, "outage")
	const userLimit, roomLimit = 4, 6
	for _, f := range failures {
		for _, broken := range []string{"u0", " room r"} {
			for _, alone := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, f.name, 1, 1)
					in := w.instances[0]
					in.network.useFor(func(k ratelimit.Key) way {
						if k.UserID == broken {
							return f.way
						}
						return healthy
					})
					admitted := map[string]int64{}
					for i := range 20 {
						user := fmt.Sprint("u", i%2)
						r := ratelimit.Request{UserID: user, Activity: "act", Policy: policy.Must(fmt.Sprintf("%d/1h", userLimit)), Count: 1, ID: fmt.Sprint("r", i), Fresh: true, Fallback: alone}
						room := r
						room.UserID, room.For, room.Policy = " room r", user, policy.Must(fmt.Sprintf("%d/1h", roomLimit))
						began := time.Now()
						d, err := in.DecideAll(context.WithValue(t.Context(), units{}, int64(1)), ratelimit.Check, []ratelimit.Part{{Request: r}, {Request: room, Subject: "room"}}, false)
						out := broken == room.UserID || broken == user
						switch {
						case time.Since(began) > timeout+2*latency: // a request that begins at the very end takes its time here
							t.Errorf("%s, %q: action %d took %v", f.name, broken, i, time.Since(began))
						case err != nil && (alone || f.eachKey && !out):
							t.Errorf("%s, %q: action %d: %v", f.name, broken, i, err)
						case err == nil && d.Allowed && (d.Reason == ratelimit.Unavailable) != out && (f.eachKey || out):
							t.Errorf("%s, %q, alone %v: action %d is %s", f.name, broken, alone, i, d.Reason)
						case err == nil && d.Allowed:
							admitted[user]++
							admitted[room.UserID]++
						}
						time.Sleep(time.Second)
					}
					if n := admitted[" room r"]; f.eachKey && n > roomLimit || n > 2*roomLimit || alone && n == 0 || admitted["u0"] > 2*userLimit || admitted["u1"] > 2*userLimit {
						t.Errorf("%s, %q: admitted %v", f.name, broken, admitted)
					}
					for _, user := range []string{"u0", "u1", " room r"} {
						k := ratelimit.Key{UserID: user, Activity: "act", Window: time.Now().UnixMilli() / time.Hour.Milliseconds()}
						if counted := stored(t, in, k).State.Get("activityCount"); counted > roomLimit || f.eachKey && user != broken && counted != admitted[user] {
							t.Errorf("%s, %q, alone %v: the item of %q counts %d, and %d were admitted", f.name, broken, alone, user, counted, admitted[user])
						}
					}
				})
			}
		}
	}
}

// In an outage, a user asks in a full room again and again. Each refusal gives back what it
// has counted in memory, so the user still has the limit in another room.
func TestAFullRoomInAnOutageUsesNothingOfTheUser(t *testing.T) {
	prove.Explain(t, "outage")
	const userLimit, roomLimit = 4, 2
	for _, f := range failures {
		for _, text := range []string{"%d/1h", "log %d/1h", "sliding %d/1h", "bucket %d/4h", "a: %d/1h, b: log %[1]d/2h"} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, f.name, 1, 1)
				in, asked := w.instances[0], 0
				w.use(f.way)
				ask := func(user, inRoom string) bool {
					asked++
					r := ratelimit.Request{UserID: user, Activity: "act", Policy: policy.Must(fmt.Sprintf(text, userLimit)), Count: 1, ID: fmt.Sprint("r", asked), Fallback: true}
					room := r
					room.UserID, room.For, room.Policy = " room "+inRoom, user, policy.Must(fmt.Sprintf("%d/1d", roomLimit))
					d, err := in.DecideAll(context.WithValue(t.Context(), units{}, int64(1)), ratelimit.Check, []ratelimit.Part{{Request: r}, {Request: room, Subject: "room"}}, false)
					if err != nil || d.Outage == nil && d.Allowed {
						t.Errorf("%s, %s: %+v, %v", f.name, text, d, err)
					}
					return d.Allowed
				}
				for i := range roomLimit {
					if !ask(fmt.Sprint("other", i), "full") {
						t.Errorf("%s, %s: place %d of the room is refused", f.name, text, i)
					}
				}
				for range 3 * userLimit {
					if ask("u", "full") {
						t.Errorf("%s, %s: the full room admits", f.name, text)
					}
					time.Sleep(time.Second)
				}
				for i := range userLimit {
					if !ask("u", fmt.Sprint("empty", i)) {
						t.Errorf("%s, %s: %d of %d are admitted after refusals by a full room", f.name, text, i, userLimit)
					}
				}
			})
		}
	}
}
