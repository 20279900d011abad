// Package guardstest stands in for the guards in the unit tests of an app. It needs no process,
// no table and no AWS. Its client is a *client.Guards, so middleware, slots, Guarded and Attempt
// run through it as in the app:
//
//	limits := guardstest.New()
//	limits.Refuse("create_post", guards.Decision{WaitTime: 42_000})
//	app := newApp(limits.Client(t, activities.All))
//
// It counts nothing: it allows everything but what the test refuses. Only a Limit that the app
// gives, and that is below the request's Count, refuses as with a guard whose limit has a max: no
// wait helps, so the decision has no figures. To test against the limits themselves, with a clock
// that the test moves, take limiter.InMemory.
package guardstest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/client"
)

// Guards answers the requests of a test. It is safe for concurrent use.
type Guards struct {
	mu     sync.Mutex
	played map[string]guards.Decision // the answer that a test chose for an activity; none: it is allowed
	outage error
	calls  []guards.Request
}

// New returns guards that allow everything.
func New() *Guards { return &Guards{played: map[string]guards.Decision{}} }

// Client returns a client that asks g. List is the app's list of activities, as for
// [client.Options]. If the list is wrong, the test fails.
func (g *Guards) Client(tb testing.TB, list []client.Activity) *client.Guards {
	tb.Helper()
	c, err := client.New(context.Background(), client.Options{Activities: list, Local: local{g}, Warn: func(error) {}})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// Refuse refuses an activity from now on. The decision has the fields of d. Those that are zero
// become what a guard could say: the reason limited, a wait of a second, and a limit of one
// that is used up. Locked plays a lockout.
func (g *Guards) Refuse(activity string, d guards.Decision) {
	g.mu.Lock()
	defer g.mu.Unlock()
	d.Allowed = false
	g.played[activity] = d
}

// Allow allows an activity again.
func (g *Guards) Allow(activity string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.played, activity)
}

// AllowWith allows an activity from now on, with the fields of d in each check. Those that are
// zero become what a guard could say. For example, the next attempt is the one that locks if d
// has Crossed 100 and Locked:
//
//	limits.AllowWith("sign_in", guards.Decision{Crossed: 100, Locked: true})
func (g *Guards) AllowWith(activity string, d guards.Decision) {
	g.mu.Lock()
	defer g.mu.Unlock()
	d.Allowed = true
	g.played[activity] = d
}

// Outage lets no guard answer from now on, if down is set. A check is then refused with a
// decision whose Outage is set, or allowed if the request's OnOutage is Allow. Each other call
// fails with a [client.ErrOutage].
func (g *Guards) Outage(down bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.outage = nil; down {
		g.outage = fmt.Errorf("%w: the test plays an outage", guards.ErrUnavailable)
	}
}

// Calls returns what was asked so far, in order, with all that the app gave, such as a Limit. A
// request without an Op is a check.
func (g *Guards) Calls() []guards.Request {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.calls)
}

// local is what the client asks.
type local struct{ of *Guards }

// Decide implements [client.Local].
func (l local) Decide(ctx context.Context, r guards.Request) (guards.Decision, error) {
	g := l.of
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return guards.Decision{}, err
	}
	g.calls = append(g.calls, r)
	r.Op, r.Count = cmp.Or(r.Op, guards.Check), cmp.Or(r.Count, 1)
	d, says := g.played[r.Activity]
	limit, low := tooLow(r)
	asks := r.Op == guards.Check || r.Op == guards.Status
	switch {
	case g.outage != nil:
		return guards.Decision{}, g.outage
	case asks && low:
		return guards.Decision{Reason: guards.Limited, UserID: r.UserID, Activity: r.Activity, Op: r.Op, Message: message, LimitedBy: limit}, nil
	case asks && says && !d.Allowed:
		return refusal(r, d), nil
	case says && d.Allowed && r.Op == guards.Check:
		return allowed(r, d), nil
	}
	return allowed(r, guards.Decision{}), nil
}

// Guards implements [client.Local]. The client has a list of its own.
func (l local) Guards() []guards.Guard { return nil }

// Window implements [client.Local].
func (l local) Window(string) time.Duration { return 0 }

// allowed returns the decision that allows r.
func allowed(r guards.Request, d guards.Decision) guards.Decision {
	now := time.Now()
	d.UserID, d.Activity, d.Op = r.UserID, r.Activity, r.Op
	d.Allowed, d.Reason, d.Granted = true, cmp.Or(d.Reason, guards.OK), cmp.Or(d.Granted, r.Count)
	switch {
	case d.Limit == 0 && d.Locked:
		d.Limit, d.ActivityCount = r.Count, r.Count
	case d.Limit == 0:
		d.Limit, d.ActivityCount = million, r.Count
	}
	d.Remaining = cmp.Or(d.Remaining, d.Limit-d.ActivityCount)
	d.ResetAt = cmp.Or(d.ResetAt, now.Add(time.Minute).UnixMilli())
	if (r.Op == guards.Check || r.Op == guards.Renew) && d.Reason == guards.OK { // a bypassed check, for example, has no receipt
		d.At, d.HeldUntil = now.UnixMilli(), d.ResetAt
		d.RequestID = cmp.Or(r.RequestID, "guardstest")
	}
	return d
}

// tooLow returns the name of a limit whose number is too low: r.Count does not fit, or not even one
// action of a partial request. It returns false if there is none.
func tooLow(r guards.Request) (limit string, ok bool) {
	n := r.Count
	if r.Partial {
		n = 1
	}
	for _, name := range slices.Sorted(maps.Keys(r.Limit)) {
		if r.Limit[name] < n {
			return name, true
		}
	}
	return "", false
}

// message is for the user who is refused.
const message = "Too many requests. Please try again later."

// million is the limit of what is allowed, as high as limits can be.
const million = 1_000_000

// refusal returns the decision that refuses r.
func refusal(r guards.Request, d guards.Decision) guards.Decision {
	now := time.Now()
	d.Allowed, d.UserID, d.Activity, d.Op = false, r.UserID, r.Activity, r.Op
	d.Reason = cmp.Or(d.Reason, guards.Limited)
	d.WaitTime = cmp.Or(d.WaitTime, time.Second.Milliseconds())
	d.ResetAt = cmp.Or(d.ResetAt, now.UnixMilli()+d.WaitTime)
	d.Message = cmp.Or(d.Message, message)
	if d.Limit == 0 && d.Reason != guards.Blocked {
		d.Limit, d.ActivityCount = 1, 1
	}
	return d
}
