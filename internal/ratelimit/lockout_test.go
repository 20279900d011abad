package ratelimit_test

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// A release with clear can be the first write of an item. It keeps its id there for a while, and
// not forever.
func TestAClearOfNobodyExpires(t *testing.T) {
	store, expires := expiring()
	l := &Limiter{Store: store, Now: newClock().now}
	r := request(policy.Must("lockout 3/10m for 1h"), "r1", 1)
	r.At, r.Clear = start.UnixMilli(), true
	mustDo(t, l, Release, r)
	if least := start.Add(20 * time.Second).Unix(); *expires < least {
		t.Errorf("the item expires at %d, want %d or later", *expires, least)
	}
}

// A check is released with clear and without it at once, and the same check is counted again before
// the later of the two arrives. It gives back nothing more.
func TestOneOfTwoReleasesGivesBack(t *testing.T) {
	p := policy.Must("m: 10/10m, try: lockout 5/10m for 5m")
	for _, clears := range []bool{false, true} {
		onEachStore(t, func(t *testing.T, store Store) {
			l := &Limiter{Store: store, Now: newClock().now}
			mustCheck(t, l, request(p, "other", 1))
			r := request(p, "r", 1)
			first, second := r, r
			first.At = mustCheck(t, l, r).At
			second.At, first.Clear, second.Clear = first.At, clears, !clears
			late := &Limiter{Now: l.Now, Store: beforeEach(store, once(anyWrite, func() {
				mustDo(t, l, Release, second)
				mustCheck(t, l, r)
			}))}
			if d := mustDo(t, late, Release, first); d.Each[0].Used != 2 {
				t.Errorf("with clear last: %v: %d actions count, want 2", clears, d.Each[0].Used)
			}
		})
	}
}

// A release with clear of one activity ends the series for each activity of its group that
// shares the lockout. A lockout with another name, and the limits of the others, stay.
func TestAClearInAGroup(t *testing.T) {
	signing, paying := policy.Must("sign: 20/1d, try: lockout 3/10m for 5m"), policy.Must("pay: lockout 2/10m for 5m, try: lockout 3/10m for 5m")
	of := func(activity string, p policy.Policy, id string, n int64) Request {
		r := request(p.Beside(signing, paying), id, n)
		r.Activity, r.Group = activity, "door"
		return r
	}
	onEachStore(t, func(t *testing.T, store Store) {
		l, c := instance(store)
		mustCheck(t, l, of("sign_in", signing, "a", 1))
		d := mustCheck(t, l, of("pay", paying, "a", 2))
		if !d.Each[0].Locked || !d.Each[1].Locked || d.Each[1].Used != 3 {
			t.Fatalf("%+v, want both locked", d)
		}
		c.add(sec)
		if d = mustCheck(t, l, of("sign_in", signing, "b", 1)); d.Allowed || d.LimitedBy != "try" || !d.Locked {
			t.Fatalf("%+v, want a lock of the other activity, too", d)
		}
		r := of("sign_in", signing, "a", 1)
		r.At, r.Clear = start.UnixMilli(), true
		if d = mustDo(t, l, Release, r); d.Each[0].Used != 0 || d.Each[1].Used != 0 {
			t.Fatalf("%+v, want nothing counted", d)
		}
		if d = mustDo(t, l, Status, of("pay", paying, "status", 1)); d.Each[0].Used != 2 || !d.Each[0].Locked || d.Each[1].Used != 0 {
			t.Fatalf("%+v, want the lock of paying alone", d)
		}
	})
}

// 500 attempts on four instances, each first answer lost: five, then none until the lock ends, to
// the millisecond. Then five again, and the lock is twice as long.
func TestFiveGuessesUnderARace(t *testing.T) {
	const instances = 4
	racers := repeats(500)
	p := policy.Must("lockout 5/15m for 1m to 1h")
	onEachStore(t, func(t *testing.T, store Store) {
		c := newClock()
		var asked sync.Map // the ids
		lossy := beforeEach(store, func(w Write) error {
			if _, again := asked.LoadOrStore(w.ID, true); again {
				return nil // so no decision is out of tries, and no circuit opens
			}
			return lose(t.Context(), func() error {
				_, _, err := store.Update(t.Context(), w)
				return err
			})
		})
		var limiters []*Limiter
		for range instances {
			limiters = append(limiters, &Limiter{Store: lossy, Now: c.now, Memory: NewMemory(mib), Timeout: time.Minute})
		}
		race := func(round string) (allowed int) {
			var mu sync.Mutex
			atOnce(racers, func(i int) {
				r := request(p, round+strconv.Itoa(i), 1)
				r.Fallback = false
				d, err := limiters[i%instances].Check(t.Context(), r)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err != nil:
					t.Error(err)
				case d.Allowed:
					allowed++
				case !d.Locked:
					t.Errorf("%+v, want a refusal by the lock", d)
				}
			})
			return allowed
		}
		for _, step := range []struct {
			at   time.Duration
			want int
		}{{0, 5}, {time.Minute - time.Millisecond, 0}, {time.Minute, 5}, {3*time.Minute - time.Millisecond, 0}, {3 * time.Minute, 5}} {
			c.at(step.at)
			if got := race(step.at.String()); got != step.want {
				t.Errorf("at %v: %d of %d allowed, want %d", step.at, got, racers, step.want)
			}
		}
	})
}

// A room's slot was renewed. Its item knows when the check came, so a release with clear is put
// to the user's item with that time. A second later the room has forgotten it. A copy of the
// release changes nothing even then.
func TestACopyOfAClearAfterTheRoomHasForgotten(t *testing.T) {
	l, c := instance(new(memstore.Store))
	say := func(id string) []Part { return message("u", "r", id, "lockout 3/10m for 5m", "log 9/20s") }
	parts := say("a")
	first := mustDoAll(t, l, Check, parts, 0, "a check")
	c.at(3 * sec)
	renewed := mustDoAll(t, l, Renew, parts, first.At, "a renewal").At
	parts[0].Clear = true
	c.at(34 * sec)
	mustDoAll(t, l, Release, parts, renewed, "a release")
	mustCheck(t, l, say("wrong")[0].Request)
	c.at(36 * sec)
	mustDoAll(t, l, Release, parts, renewed, "a copy of the release")
	if n := used(t, l, parts[0].Request); n != 1 {
		t.Errorf("%d attempts count after a copy, want the one that came after the first release", n)
	}
}

// An attempt that succeeded is given back. With clear, the series ends.
func TestLockoutTimelines(t *testing.T) {
	stories(t, []story{
		// A success is given back once, even if the release is sent twice, late, or by an instance
		// that knows nothing.
		{"a success is given back once", "lockout 3/10m for 5m", []moment{
			{at: 0, id: "wrong", want: "ok 1/3"},
			{at: sec, id: "right", want: "ok 2/3"},
			{at: 2 * sec, by: "cold", ask: Release, id: "right", want: "ok 1/3"},
			{at: 2 * sec, ask: Release, id: "right", want: "ok 1/3"},
			{at: 3 * sec, by: "ahead", ask: Release, id: "right", want: "ok 1/3"},
			{at: 4 * sec, id: "right", want: "ok 2/3"},                                         // counted again
			{at: 5 * sec, by: "cold", ask: Release, id: "right", receipt: sec, want: "ok 2/3"}, // a late copy of the first release
			{at: 6 * sec, ask: Release, id: "right", want: "ok 1/3"},
			{at: 7 * sec, id: "last", count: 2, want: "ok 3/3 locked"},
			{at: 8 * sec, id: "last", count: 2, want: "duplicate 3/3 locked"},
			{at: 8 * sec, id: "more", want: "limited 3/3 locked, wait 4m59s"},
			{at: 35 * sec, ask: Release, id: "last", count: 2, want: "ok 3/3 locked"}, // too late: the id is forgotten
			{at: 307*sec - time.Millisecond, id: "more", want: "limited 3/3 locked, wait 1ms"},
			{at: 307 * sec, id: "more", want: "ok 1/3"},
		}},
		// A copy of a release with clear changes nothing for 20 s: not if failures were counted
		// meanwhile, and not if the release found no check.
		{"a clear is done once", "lockout 3/10m for 5m to 1h", []moment{
			{at: 0, id: "a", count: 2, want: "ok 2/3"},
			{at: sec, id: "right", want: "ok 3/3 locked"},
			{at: 2 * sec, ask: Release, id: "right", clear: true, want: "ok 0/3"},
			{at: 3 * sec, id: "b", count: 2, want: "ok 2/3"},
			{at: 19 * sec, by: "cold", ask: Release, id: "right", clear: true, want: "ok 2/3"},
			{at: 19 * sec, ask: Release, id: "a", count: 2, want: "ok 2/3"}, // of the series before
			{at: 19 * sec, id: "right", want: "ok 3/3 locked"},              // its id is free again
			{at: 20 * sec, by: "cold", ask: Release, id: "nobody", receipt: 19 * sec, clear: true, want: "ok 0/3"},
			{at: 21 * sec, id: "c", want: "ok 1/3"},
			{at: 22 * sec, ask: Release, id: "nobody", receipt: 19 * sec, clear: true, want: "ok 1/3"},
			{at: 22 * sec, id: "right", want: "duplicate 1/3"},        // a clear frees no id but its own
			{at: 23 * sec, ask: Release, id: "right", want: "ok 1/3"}, // and its receipt is of before
			{at: 24 * sec, id: "d", count: 2, want: "ok 3/3 locked"},  // the first lock again, for 5 minutes
			{at: 25 * sec, id: "e", want: "limited 3/3 locked, wait 4m59s"},
		}},
		// A release with clear needs no check, so its receipt can come from a clock that is far ahead. That
		// drops no ids: a repeat of another request is not counted again.
		{"a clear by a clock far ahead", "lockout 3/10m for 5m to 1h", []moment{
			{at: 0, id: "a", want: "ok 1/3"},
			{at: 9 * sec, ask: Release, id: "nobody", receipt: 30 * sec, clear: true, want: "ok 0/3"},
			{at: 10 * sec, id: "a", want: "duplicate 0/3"},
		}},
		// A release without clear is no copy of one with it, and a copy of either gives back nothing.
		{"a clear after a release", "lockout 3/10m for 5m to 1h", []moment{
			{at: 0, id: "a", count: 2, want: "ok 2/3"},
			{at: sec, id: "right", want: "ok 3/3 locked"},
			{at: 2 * sec, ask: Release, id: "right", want: "ok 2/3"},
			{at: 3 * sec, by: "cold", ask: Release, id: "right", receipt: sec, clear: true, want: "ok 0/3"},
			{at: 4 * sec, id: "b", count: 2, want: "ok 2/3"},
			{at: 5 * sec, ask: Release, id: "right", receipt: sec, clear: true, want: "ok 2/3"},
			{at: 6 * sec, ask: Release, id: "right", receipt: sec, want: "ok 2/3"},
			{at: 7 * sec, id: "right", want: "ok 3/3 locked"},
			{at: 8 * sec, ask: Release, id: "right", receipt: sec, want: "ok 3/3 locked"},
			{at: 9 * sec, ask: Release, id: "right", receipt: 7 * sec, clear: true, want: "ok 0/3"},
			{at: 10 * sec, id: "right", want: "ok 1/3"},
			{at: 11 * sec, ask: Release, id: "right", receipt: 7 * sec, want: "ok 1/3"}, // a copy of the one that cleared
		}},
		{"a clear leaves other limits", "day: 20/1d, try: lockout 3/10m for 5m", []moment{
			{at: 0, id: "a", count: 2, want: "ok 2/3", used: []int64{2, 2}},
			{at: sec, id: "b", want: "ok 3/3 locked", used: []int64{3, 3}},
			{at: 2 * sec, ask: Release, id: "b", clear: true, want: "ok 0/3", used: []int64{2, 0}},
			{at: 3 * sec, ask: Release, id: "unknown", clear: true, want: "ok 0/3", used: []int64{2, 0}},
			{at: 4 * sec, ask: Release, id: "a", count: 2, want: "ok 0/3", used: []int64{0, 0}}, // the day's are given back as ever
		}},
		// A live limit may change any number but the window. It decides from then on.
		{"a live lockout", "lockout 3/10m for 5m to 20m", []moment{
			{at: 0, id: "a", count: 2, want: "ok 2/3"},
			{at: sec, limit: "lockout 2/10m for 5m to 20m", id: "b", want: "limited 2/2 locked, wait 4m59s"}, // two have been counted
			{at: sec, limit: "lockout 2/10m for 1m to 20m", id: "b", want: "limited 2/2 locked, wait 59s"},
			{at: sec, limit: "lockout 5/10m for 1m", id: "b", count: 3, want: "ok 5/5 locked"},
			{at: 61 * sec, id: "c", count: 5, want: "ok 5/5 locked"}, // the second lock, as long as the first
			{at: 62 * sec, id: "d", want: "limited 5/5 locked, wait 59s"},
			{at: 62 * sec, limit: "lockout 5/10m for 1m to 20m", id: "d", want: "limited 5/5 locked, wait 1m59s"}, // twice as long
			{at: 182 * sec, limit: "lockout 1/10m for 30s to 10m", id: "d", want: "ok 1/1 locked"},
			{at: 183 * sec, id: "e", want: "limited 1/1 locked, wait 1m59s"}, // 30 s, doubled twice
		}},
		// An instance that knows the item sends one request for each attempt. It sends none while it
		// knows of the lock, which is for a second after each look.
		{"the requests of a lockout", "lockout 5/15m for 30m", []moment{
			{id: "a", times: 4, sent: 1, want: "ok 4/5"},
			{at: sec, id: "b", sent: 1, want: "ok 5/5 locked"},
			{at: sec, id: "c", sent: none, want: "limited 5/5 locked, wait 30m0s"},
			{at: 2 * sec, id: "d", sent: none, want: "limited 5/5 locked, wait 29m59s"},
			{at: 3 * sec, id: "e", sent: 1, want: "limited 5/5 locked, wait 29m58s"},
			{at: 3 * sec, id: "f", sent: none, want: "limited 5/5 locked, wait 29m58s"},
		}},
		// If two clocks differ by 2 s, the limit still holds, and no lock ends early for either.
		{"a lockout on other clocks", "lockout 5/10m for 5m", []moment{
			{at: 0, id: "a", by: "ahead", count: 2, want: "ok 2/5"},
			{at: sec, id: "b", want: "ok 3/5"},
			{at: 3 * sec, id: "c", want: "ok 4/5"},
			{at: 2 * sec, id: "d", by: "ahead", want: "ok 5/5 locked"}, // at 4 s
			{at: 2 * sec, id: "e", want: "limited 5/5 locked, wait 5m2s"},
			{at: 302*sec - time.Millisecond, id: "f", by: "ahead", want: "limited 5/5 locked, wait 1ms"},
			{at: 304*sec - time.Millisecond, id: "g", want: "limited 5/5 locked, wait 1ms"},
			{at: 304 * sec, id: "g", want: "ok 1/5"},
		}},
	})
}
