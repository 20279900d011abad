package ratelimit_test

import (
	"context"
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

// A reservoir gives places alone while some requests get through, two in a row. No window
// has more than the limit, from memory and from the table together.
func TestPlacesAloneStayWithinEachWindow(t *testing.T) {
	for _, text := range []string{"reservoir 2/10s ahead 1m", "reservoir 3/10s ahead 15m", "jobs: reservoir 2/10s ahead 1m, day: 200/1d"} {
		for _, through := range []int{2, 3, 7, 25} {
			p := policy.Must(text)
			c := newClock()
			requests := 0
			l, _ := newFaulty(func(ctx context.Context, perform func() error) error {
				if requests++; requests%(2*through) < 2 {
					return pass(ctx, perform)
				}
				return deny(ctx, perform)
			})
			l.Now, l.Timeout = c.now, 0 // a probe ends with its decision
			places, alone, table := map[int64]int{}, 0, 0
			for i := range 2000 { // fewer would not show both, the memory and the table
				c.at(time.Duration(i) * 430 * time.Millisecond)
				d := mustCheck(t, l, request(p, strconv.Itoa(i), 1))
				switch {
				case !counted(d):
					continue
				case d.Reason == Unavailable || d.Outage != nil:
					alone++
				default:
					table++
				}
				places[max(d.ReadyAt, c.now().UnixMilli())/10_000]++
			}
			limit := int(p.Rates()[0].Limit)
			for window, n := range places {
				if n > limit {
					t.Errorf("%s, one of %d requests gets through: window %d has %d places, want at most %d", text, through, window, n, limit)
				}
			}
			if alone == 0 || table == 0 {
				t.Errorf("%s, one of %d: %d places alone, %d from the table, want some", text, through, alone, table)
			}
		}
	}
}
