package ratelimit_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// counted reports whether d counted an action, now or for a place to come.
func counted(d Decision) bool { return d.Granted > 0 || d.ReadyAt != 0 }

// Without any answer, an instance admits alone what the policy allows, for
// as long as the outage lasts.
func TestALongOutage(t *testing.T) {
	onEachSubject(t, func(t *testing.T, s subject) {
		l, store, c := onClock(pass)
		model := &Limiter{Store: new(memstore.Store), Now: c.now}
		mustCheck(t, l, request(s.policy(), "seen", 1))
		mustCheck(t, model, request(s.policy(), "seen", 1))
		store.set(deny)
		for i := range repeats(2000) {
			c.at(time.Duration(i) * 1300 * time.Millisecond)
			r := request(s.policy(), strconv.Itoa(i), 1)
			want, got := mustCheck(t, model, r), mustCheck(t, l, r)
			if got.Reason == Limited {
				got.Reason = Unavailable // refused again from memory
			}
			want.Reason = Unavailable
			if inWords(got) != inWords(want) || got.Allowed != want.Allowed {
				t.Fatalf("request %d: %s, allowed %v, want %s, allowed %v", i, inWords(got), got.Allowed, inWords(want), want.Allowed)
			}
		}
	})
}

// divided returns a limiter in an outage. The store showed some actions, and
// others were admitted alone, at different moments.
func divided(t *testing.T, p policy.Policy, seen, alone, seenAgain int) (*Limiter, *clock) {
	t.Helper()
	l, store, c := onClock(pass)
	l.Timeout = 0
	step := time.Duration(0)
	ask := func(f fault, n int, kind string) {
		step += 6 * time.Second // the circuit breaker probes
		c.at(step)
		store.set(f)
		for i := range n {
			mustCheck(t, l, request(p, kind+strconv.Itoa(i), 1))
		}
	}
	ask(pass, seen, "seen ")
	ask(deny, alone, "alone ")
	ask(pass, seenAgain, "again ")
	store.set(deny)
	c.at(step + 2*time.Second) // the memory refuses no longer
	return l, c
}

// Alone, what is left is what a partial request gets, and the wait is exact.
func TestTheFiguresAloneKeepTheirPromise(t *testing.T) {
	for _, text := range []string{
		"6/5m", "log 6/5m", "bucket 6/5m", "sliding 6/5m", "101/1h", "minute: 6/5m, pace: bucket 5/5m", "log: log 6/5m, day: 9/1d",
	} {
		p := policy.Must(text)
		for seen := range 4 {
			for alone := range 4 {
				for again := range 4 {
					l, c := divided(t, p, seen, alone, again)
					name := text + " with " + strconv.Itoa(seen) + " seen, " + strconv.Itoa(alone) + " alone, " + strconv.Itoa(again) + " seen again"
					status := mustDo(t, l, Status, request(p, "status", 1))
					all := request(p, "all", 200)
					all.Partial = true
					d := mustCheck(t, l, all)
					if d.Granted != status.Remaining || d.Remaining != 0 || d.Wait == 0 {
						t.Fatalf("%s: %d remain, but %s, granted %d", name, status.Remaining, inWords(d), d.Granted)
					}
					now := c.now().Sub(start)
					for _, n := range []int64{1, 3} {
						d := mustCheck(t, l, request(p, "refused", n))
						if d.Allowed || d.Wait == 0 {
							t.Fatalf("%s: %d more: %s, want it refused for some time", name, n, inWords(d))
						}
						c.at(now + d.Wait - time.Millisecond)
						if d := mustDo(t, l, Status, request(p, "early", n)); d.Allowed {
							t.Fatalf("%s: %d more, a millisecond early: %s", name, n, inWords(d))
						}
						c.at(now + d.Wait)
						if d := mustDo(t, l, Status, request(p, "on time", n)); !d.Allowed {
							t.Fatalf("%s: %d more after its wait of %v: %s", name, n, d.Wait, inWords(d))
						}
						c.at(now)
					}
				}
			}
		}
	}
}

// Alone, status answers a repeat as check does: by what was seen, and by what was
// admitted alone.
func TestStatusAloneFindsARepeat(t *testing.T) {
	onEachSubject(t, func(t *testing.T, s subject) {
		p := s.policy()
		if p.Queues() {
			t.Skip("these repeats are late jobs, which a check counts: see TestALateRepeatInAnOutage")
		}
		l, _ := divided(t, p, 1, 1, 1)
		for _, id := range []string{"alone 0", "again 0"} {
			asked := mustDo(t, l, Status, request(p, id, 1))
			checked := mustCheck(t, l, request(p, id, 1))
			if inWords(asked) != inWords(checked) || asked.Allowed != checked.Allowed || asked.Granted != checked.Granted {
				t.Errorf("status of %q: %+v, and check: %+v", id, asked, checked)
			}
		}
		after := mustDo(t, l, Status, request(p, "new", 1))
		if before := mustDo(t, l, Status, request(p, "new", 1)); inWords(before) != inWords(after) {
			t.Errorf("a status changed %s to %s", inWords(after), inWords(before))
		}
	})
}

// During an outage, the memory goes on from what it last saw. After it, the table goes on from
// what it has, and its places come after those that were given from memory.
func TestOutageTimelines(t *testing.T) {
	midnight := start.Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(start)
	stories(t, []story{
		{"an outage goes on from the last state seen", "3/1m", []moment{
			{id: "seen", want: "ok 1/3"},
			{at: 6 * sec, table: deny, id: "a", want: "unavailable 2/3"},
			{at: 12 * sec, id: "seen", want: "unavailable 2/3"},                  // a repeat is counted once, here too
			{at: 18 * sec, id: "b", count: 2, want: "unavailable 2/3, wait 42s"}, // the same policy
			{at: 24 * sec, table: pass, id: "c", want: "ok 2/3"},                 // the table never saw the action that was admitted alone
			{at: 30 * sec, table: deny, id: "d", want: "unavailable 3/3"},        // this instance did: one action alone, and two in the table
			{at: 36 * sec, id: "e", want: "unavailable 3/3, wait 24s"},
			{at: 36 * sec, ask: Status, id: "e", want: "unavailable 3/3, wait 24s"},
		}},
		{"what was admitted alone counts for its whole window", "3/1m", []moment{
			{table: deny, id: "a", count: 2, want: "unavailable 2/3"},
			{at: 20 * sec, table: pass, id: "b", want: "ok 1/3"},
			{at: 26 * sec, table: deny, id: "c", want: "unavailable 3/3"},
		}},
		{"a lost answer that was counted is not counted twice", "3/1m", []moment{
			{table: lose, id: "a", want: "unavailable 1/3"},
			{at: 6 * sec, table: pass, id: "b", want: "ok 2/3"}, // the one that reached the table and this
			{at: 6 * sec, table: deny, id: "c", want: "unavailable 3/3"},
		}},
		// None can be given back, so right and wrong attempts count alike.
		{"a lock that is known holds to its end, and then the limit is allowed again", "lockout 3/10m for 5m", []moment{
			{id: "a", times: 2, want: "ok 2/3"},
			{at: sec, id: "b", times: 5, want: "limited 3/3 locked, wait 5m0s"},
			{at: 3 * sec, table: deny, id: "c", times: 5, want: "unavailable 3/3 locked, wait 4m58s"},
			{at: 301*sec - time.Millisecond, id: "d", want: "unavailable 3/3 locked, wait 1ms"},
			{at: 301 * sec, id: "e", times: 3, want: "unavailable 3/3 locked"},
			{at: 301 * sec, id: "f", want: "unavailable 3/3 locked, wait 5m0s"},
			{at: 601*sec - time.Millisecond, id: "g", want: "unavailable 3/3 locked, wait 1ms"},
			{at: 601 * sec, id: "h", times: 3, want: "unavailable 3/3 locked"},
		}},
		{"a window is shared by memory and table", "reservoir 10/10s ahead 15m", []moment{
			{id: "seen", times: 13, want: "delayed 10/10, wait 10s, place at 10s after 2"},
			{table: deny, id: "alone", times: 4, want: "unavailable 10/10, wait 10s, place at 10s after 6"},
			{at: 6 * sec, table: pass, id: "a", want: "delayed 10/10, wait 4s, place at 10s after 7"},
			{at: 6 * sec, id: "b", times: 3, want: "delayed 10/10, wait 14s, place at 20s after 10"},
		}},
		{"places from memory that have passed delay nobody", "reservoir 10/10s ahead 15m", []moment{
			{table: deny, id: "alone", times: 25, want: "unavailable 10/10, wait 20s, place at 20s after 14"},
			{at: 6 * sec, table: pass, ask: Status, id: "s", want: "delayed 10/10, wait 14s, place at 20s after 15"},
			{at: 29 * sec, id: "a", times: 5, want: "ok 10/10"}, // beside the five from memory
			{at: 29 * sec, id: "b", want: "delayed 10/10, wait 1s, place at 30s after 0"},
			{at: 50 * sec, id: "c", want: "ok 1/10"},
		}},
		{"jobs that get a place after midnight count for today", "q: reservoir 1/10s ahead 15m, day: 50/1d", []moment{
			{at: midnight - 2*time.Minute, id: "table", times: 20, want: "delayed 1/1, wait 3m10s, place at 1h47m10s after 18"},
			{at: midnight - 2*time.Minute, table: deny, id: "alone", times: 5, want: "unavailable 1/1, wait 4m0s, place at 1h48m0s after 23", used: []int64{1, 25}},
		}},
		{"a repeat finds its place after the table is back", "reservoir 2/10s ahead 1m", []moment{
			{table: deny, id: "alone", times: 5, want: "unavailable 2/2, wait 20s, place at 20s after 2"},
			{at: 6 * sec, table: pass, ask: Status, id: "new", want: "delayed 2/2, wait 14s, place at 20s after 3"},
			{at: 6 * sec, id: "new", want: "delayed 2/2, wait 14s, place at 20s after 3"},
			{at: 6 * sec, id: "new", want: "delayed 2/2, wait 14s, place at 20s after 3"},
		}},
		{"all places are given from memory", "reservoir 2/10s ahead 20s", []moment{
			{id: "seen", want: "ok 1/2"},
			{table: deny, id: "alone", times: 5, want: "unavailable 2/2, wait 20s, place at 20s after 3"},
			{at: 6 * sec, table: pass, id: "a", want: "limited 2/2, wait 4s"}, // until the window of second 30 is in reach
			{at: 6 * sec, id: "b", want: "limited 2/2, wait 4s"},
			{at: 6 * sec, id: "seen", want: "duplicate 2/2"}, // the table still finds its repeats
			{at: 10 * sec, id: "c", want: "delayed 2/2, wait 20s, place at 30s after 2"},
		}},
		{"the memory decides a late repeat as the table does", "reservoir 2/10s ahead 20s", []moment{
			{id: "a", want: "ok 1/2"},
			{id: "b", want: "ok 2/2"},
			{id: "c", want: "delayed 2/2, wait 10s, place at 10s after 0"},
			{at: 9 * sec, table: deny, id: "a", want: "unavailable 2/2"},
			{at: 10 * sec, ask: Status, id: "a", want: "unavailable 1/2"},
			{at: 10 * sec, id: "a", want: "unavailable 2/2"},
			{at: 10 * sec, id: "a", want: "unavailable 2/2"}, // found
			{at: 10 * sec, id: "c", want: "unavailable 2/2"}, // its window
			{at: 10 * sec, ask: Status, id: "b", want: "unavailable 2/2, wait 10s, place at 20s after 0"},
			{at: 10 * sec, id: "b", want: "unavailable 2/2, wait 10s, place at 20s after 0"},
			{at: 15 * sec, id: "b", want: "unavailable 2/2, wait 5s, place at 20s after 0"},
			{at: 15 * sec, id: "d", want: "unavailable 2/2, wait 5s, place at 20s after 1"},
			{at: 20 * sec, id: "b", want: "unavailable 2/2"},
			{at: 20 * sec, id: "a", want: "unavailable 2/2, wait 10s, place at 30s after 0"},
		}},
	})
}
