package client

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cric-talk/guards"
)

// For this long after its check, an attempt can be given back for sure. The guards promise 20 s, and
// 15 minutes with Hold; the rest is for clocks that differ and for the way.
const (
	inTime     = 18 * time.Second
	inTimeHeld = 14 * time.Minute
)

// Attempt counts an attempt, such as a sign-in, and then calls verify. It counts first, so
// that guesses at the same moment can't be more than the limit allows. If verify returns true
// and no error, the attempt is given back in all parts, with Clear of the request if it is
// set, and Attempt returns true. If verify returns false or an error, or panics, the attempt
// stays counted. Attempt then returns false and the error of verify, or the panic goes on.
//
// If the user is refused, the error is an ErrLimited with the decision, and verify is not
// called. The decision that verify gets has what is left, as Remaining.
//
// The check has an id of its own, because repeats of an id from outside would be guesses that
// nobody counts. So RequestID, Count, Partial, At, ReadyAt and Job don't go with an attempt:
// the error is an ErrValidation, and nothing is sent. For the other errors see [Guards.Check].
//
// The attempt is given back however late the success is, and even if ctx has ended. A
// release that fails goes to Options.Warn, because verify has succeeded. So does a hint at
// Hold if the success comes more than 18 s after the check, because the guard may not know the
// check any more. It is 14 minutes if the list says that the activity has Hold. A decision
// without a receipt, such as a bypassed one, sends no release.
func (g *Guards) Attempt(ctx context.Context, activity string, r Request, verify func(context.Context, Decision) (bool, error)) (bool, error) {
	a, err := g.BeginAttempt(ctx, activity, r)
	if err != nil {
		return false, err
	}
	if !a.Allowed {
		return false, g.target(a.Guard).limited(a.Decision)
	}
	defer a.Failed() // after a panic, too, and without effect after a success
	ok, err := verify(ctx, a.Decision)
	if !ok || err != nil {
		return false, err
	}
	a.Succeeded(ctx)
	return true, nil
}

// An Attempt is a check that stays counted until it succeeds. Most callers use
// [Guards.Attempt] and never need this type. It is for code that can't verify in one
// function, such as middleware:
//
//	a, err := guards.BeginAttempt(ctx, "sign_in", client.Request{UserID: account})
//	switch {
//	case err != nil:
//		return err
//	case !a.Allowed:
//		return tooMany(a.Message, a.RetryAfter())
//	}
//	defer a.Failed()
//	if verify(account, password) {
//		a.Succeeded(ctx)
//	}
//
// The first call of Succeeded or Failed counts, and later ones have no effect. An attempt
// whose process ends without any stays counted. An Attempt is safe for concurrent use.
type Attempt struct {
	Decision // of the check

	guards   *Guards
	sent     time.Time // before the check
	hold     bool
	clear    bool
	onLocked func(Decision)
	over     atomic.Bool
}

// BeginAttempt counts an attempt as [Guards.Attempt] does. Like Check, it returns a refusal as
// a Decision.
func (g *Guards) BeginAttempt(ctx context.Context, activity string, r Request) (*Attempt, error) {
	known, _ := g.Find(activity)
	if field := r.notOfAttempts(); field != "" {
		return nil, g.target(known.Guard).validation(field + " does not go with an attempt, which is one action with an id of its own")
	}
	a := &Attempt{guards: g, sent: time.Now(), hold: known.Hold, clear: r.Clear, onLocked: r.OnLocked}
	r.Clear, r.OnLocked = false, nil
	var err error
	if a.Decision, err = g.Check(ctx, activity, r); err != nil {
		return nil, err
	}
	return a, nil
}

// notOfAttempts returns the name of a field that an attempt can't have; "" if there is none.
func (r *Request) notOfAttempts() string {
	switch {
	case r.RequestID != "":
		return "requestId"
	case r.Count != 0:
		return "count"
	case r.Partial:
		return "partial"
	case r.At != 0:
		return "at"
	case r.ReadyAt != 0:
		return "readyAt"
	case r.Job != nil:
		return "job"
	}
	return ""
}

// Succeeded gives the attempt back, in all its parts and even if ctx has ended. What goes
// wrong goes to Options.Warn.
func (a *Attempt) Succeeded(ctx context.Context) {
	if a.over.Swap(true) || !a.releasable() {
		return
	}
	if late := a.late(time.Since(a.sent)); late != nil {
		a.guards.options.Warn(late)
	}
	r := a.receipt(a.Granted)
	r.Clear = a.clear
	if _, err := a.guards.Release(context.WithoutCancel(ctx), a.path(), r); err != nil {
		a.guards.options.Warn(err)
	}
}

// late returns a warning for an attempt that took too long to be sure of its release, or nil.
func (a *Attempt) late(took time.Duration) error {
	limit, advice := inTime, "Mark the activity as Hold in limits.go, so that there are 15 minutes"
	if a.hold {
		limit, advice = inTimeHeld, "With Hold, there are 15 minutes"
	}
	if took <= limit {
		return nil
	}
	return a.guards.target(a.Guard).configuration(nil,
		"an attempt of %s succeeded %v after its check, which may be too late to give it back. %s.", a.Activity, took.Round(time.Second), advice)
}

// Failed leaves the attempt counted, and calls OnLocked of the request if the attempt used the
// last action of a limit.
func (a *Attempt) Failed() {
	if a.over.Swap(true) || a.onLocked == nil || !a.locks() {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			c := call{target: a.guards.target(a.Guard), event: guards.Request{UserID: a.UserID, RequestID: a.RequestID, Subjects: a.Subjects}}
			cause, _ := p.(error)
			a.guards.options.Warn(c.configuration(cause, "OnLocked panicked: %s", c.foreign(fmt.Sprint(p))))
		}
	}()
	a.onLocked(a.Decision)
}

// locks reports whether the check used the last action of one of its limits.
func (a *Attempt) locks() bool {
	return a.Crossed == 100 || slices.ContainsFunc(a.Limits, func(f guards.Figures) bool { return f.Crossed == 100 })
}
