package ratelimit_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// For an hour, one request in 25 gets through, always two in a row: a probe and
// its decision. What this instance admits alone stays within the limit, and so
// does what the table counts.
func TestAnOutageInWhichSomeRequestsGetThrough(t *testing.T) {
	onEachSubject(t, func(t *testing.T, s subject) {
		c := newClock()
		requests := 0
		l, _ := newFaulty(func(ctx context.Context, perform func() error) error {
			if requests++; requests%50 < 2 {
				return pass(ctx, perform)
			}
			return deny(ctx, perform)
		})
		l.Now, l.Timeout = c.now, 0                               // a probe ends with its decision
		model := &Limiter{Store: new(memstore.Store), Now: c.now} // gets every request
		alone, table, most := 0, 0, 0
		const every = 500 * time.Millisecond
		for i := range repeats(int(time.Hour / every)) {
			c.at(time.Duration(i) * every)
			r := request(s.policy(), strconv.Itoa(i), 1)
			if counted(mustCheck(t, model, r)) {
				most++
			}
			switch d := mustCheck(t, l, r); {
			case !counted(d):
			case d.Reason == Unavailable:
				alone++
			default:
				table++
			}
		}
		if s.text == "log 100/12h" && most != 100 {
			t.Errorf("the model admits %d, want 100", most)
		}
		if alone > most || table > most || alone == 0 || table == 0 {
			t.Errorf("%d admitted alone and %d by the table in an hour, want 1 to %d each", alone, table, most)
		}
	})
}

// counted reports whether d counted an action, now or for a place to come.
func counted(d Decision) bool { return d.Granted > 0 || d.ReadyAt != 0 }

// Without any answer, an instance admits alone what the policy allows, for
// as long as the outage lasts.
func TestALongOutage(t *testing.T) {
	onEachSubject(t, func(t *testing.T, s subject) {
		c := newClock()
		l, store := newFaulty(pass)
		l.Now = c.now
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
