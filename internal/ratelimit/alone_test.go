package ratelimit_test

import (
	"strconv"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

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
