package guard_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cric-talk/guards"
	. "github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// signIn is the guard of docs/sign-in.md.
var signIn = limits.Guard{Name: "sign-in-guard", Message: "Too many.", Activities: []limits.Activity{
	{Name: "sign_in", Limit: policy.Must("lockout 5/15m for 30m"), Subjects: []limits.Subject{
		{Name: "ip", Limit: policy.Must("lockout 50/15m for 15m")},
		{Name: "account", Limit: policy.Must("lockout 100/30d for 1d")},
	}},
}}

// A door is what an app does with a guess: several instances of the guard count it first, and
// a success is given back with clear.
type door struct {
	t         *testing.T
	instances []*Handler
	now       atomic.Int64 // Unix milliseconds
	turn      atomic.Int64
	locks     atomic.Int64 // answers after which an app sends a mail
}

func newDoor(t *testing.T) *door {
	d := &door{t: t}
	d.now.Store(start.UnixMilli())
	store := new(memstore.Store)
	for range 4 {
		d.instances = append(d.instances, &Handler{Guard: signIn, Limiter: &ratelimit.Limiter{
			Store: store, Memory: ratelimit.NewMemory(1 << 20), Timeout: 10 * time.Second,
			Now: func() time.Time { return time.UnixMilli(d.now.Load()) },
		}})
	}
	return d
}

// instance returns the instances in turn.
func (d *door) instance() *Handler {
	return d.instances[d.turn.Add(1)%int64(len(d.instances))]
}

// guess reports whether a guess got through. A right one is given back.
func (d *door) guess(account, ip string, right bool) bool {
	r := Request{UserID: account + "@" + ip, Activity: "sign_in", Subjects: map[string]string{"ip": ip, "account": account}}
	r.RequestID = fmt.Sprint("t", d.turn.Add(1))
	a, err := d.instance().Decide(d.t.Context(), r)
	if err != nil {
		d.t.Error(err)
		return false
	}
	if a.Decision.Crossed == 100 {
		d.locks.Add(1)
	}
	if a.Allowed && right {
		r.Op, r.At, r.Clear = guards.Release, a.Decision.At, true
		if _, err := d.instance().Decide(d.t.Context(), r); err != nil {
			d.t.Error(err)
		}
	}
	return a.Allowed
}

// together returns how many of n guesses at once get through.
func (d *door) together(n int, guess func(i int) bool) int {
	var through atomic.Int64
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if guess(i) {
				through.Add(1)
			}
		})
	}
	wg.Wait()
	return int(through.Load())
}

func TestAttacksOnASignIn(t *testing.T) {
	for name, tt := range map[string]struct {
		guesses int
		guess   func(d *door, i int) bool
		want    int
	}{
		"one account from one address": {200, func(d *door, _ int) bool { return d.guess("victim", "192.0.2.1", false) }, 5},
		"100 addresses at one account": {300, func(d *door, i int) bool { return d.guess("victim", fmt.Sprint("192.0.2.", i%100), false) }, 100},
		"a spray over 1,000 accounts":  {1000, func(d *door, i int) bool { return d.guess(fmt.Sprint("a", i), "192.0.2.1", false) }, 50},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoor(t)
			got := d.together(tt.guesses, func(i int) bool { return tt.guess(d, i) })
			if locks := d.locks.Load(); got != tt.want || locks != 1 {
				t.Errorf("%d of %d guesses got through, and %d locked; want %d, and one lock", got, tt.guesses, locks, tt.want)
			}
		})
	}
}

// Between guesses at a victim, an attacker signs in to an account of their own, which clears
// the attacker's failures and nobody else's.
func TestASuccessOfOnesOwnClearsNoGuessAtOthers(t *testing.T) {
	d := newDoor(t)
	through := 0
	for range 6 {
		for range 4 {
			if d.guess("victim", "192.0.2.1", false) {
				through++
			}
		}
		if !d.guess("own", "192.0.2.1", true) {
			t.Error("the attacker's own sign-in is refused")
		}
		d.now.Add(time.Second.Milliseconds())
	}
	if through != 5 {
		t.Errorf("%d guesses got through, want 5", through)
	}
}

// Somebody locks a victim's account out from elsewhere. The victim's own address is not
// locked, until the account has had 100 failures from all addresses.
func TestALockOnPurposeDoesNotLockTheOwner(t *testing.T) {
	d := newDoor(t)
	for i := range 19 {
		for range 6 {
			d.guess("victim", fmt.Sprint("192.0.2.", i), false)
		}
	}
	d.now.Add(2 * time.Second.Milliseconds())
	if !d.guess("victim", "198.51.100.1", false) || !d.guess("victim", "198.51.100.1", true) {
		t.Error("the owner is refused")
	}
	for i := range 20 {
		for range 6 {
			d.guess("victim", fmt.Sprint("203.0.113.", i), false)
		}
	}
	d.now.Add(2 * time.Second.Milliseconds())
	if d.guess("victim", "198.51.100.1", true) {
		t.Error("after 100 failures the account is not locked")
	}
	d.now.Add(24 * time.Hour.Milliseconds())
	if !d.guess("victim", "198.51.100.1", true) {
		t.Error("a day later the owner is refused")
	}
}
