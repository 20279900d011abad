// Package guard is the Lambda function that decides whether a user may act: an
// event comes in, an answer goes out.
//
// A [Handler] takes each event through these rules:
//
//  1. An event that breaks the contract is a *[input.ValidationError]. Nothing
//     is counted.
//  2. If an operator has blocked the caller or a subject, the request is refused
//     and not counted: "blocked". A release, a renewal and a reset still work.
//  3. If the activity has no limit, or its mode is off, the caller is allowed
//     and not counted: "unlimited".
//  4. If the caller has a bypass role, the caller is allowed and not counted:
//     "bypassed". The role comes from the event or from a grant by an operator.
//  5. Otherwise the [ratelimit.Limiter] decides, by the limit of the caller's
//     tier. A count that can never fit in that limit is a ValidationError.
//  6. If the table does not answer, the limiter's memory decides a check or a
//     status: "unavailable". A release or a reset fails with an
//     *[input.Unavailable]. With DenyOutage, so does a check or a status,
//     except in shadow mode.
//  7. In shadow mode, a refusal becomes an admission that is marked "shadow".
//
// For example, a user has used up 10/1m (userId and activity are left out):
//
//	event                              answer
//	{"count": 0,  "roles": ["admin"]}  ValidationError: rule 1 wins over rule 4
//	{"count": 50, "roles": ["admin"]}  bypassed: a limit does not matter here
//	{"count": 50}                      ValidationError: 50 can never fit
//	{}                                 limited, or shadow in shadow mode
//
// Live limits, live modes and grants apply as if they were written in the code.
// The package does not depend on a store, because its caller passes a limiter.
package guard

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/metrics"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/retry"
)

// A Handler decides one function's activities. It is safe for concurrent use.
type Handler struct {
	Guard   limits.Guard
	Limiter *ratelimit.Limiter

	Mode           string         // one of [live.Modes]; empty means live.Enforce
	DenyOutage     bool           // an outage is the error Unavailable; otherwise memory decides
	RefusalIsError bool           // a refused check is the error RateLimitExceeded; otherwise it is an answer
	Version        string         // of Guards, which a status tells; empty: none is known
	BypassRoles    []string       // callers with one of these roles are never limited
	Tiers          []string       // of all guards: a check that names another one gets the ordinary limit, and is measured; nil: any may be named
	Log            *slog.Logger   // gets a line for refusals (at most 10 in a second) and for each failure; nil for none
	Metrics        *metrics.Batch // gets each decision; nil for none
	MeasureGuard   bool           // metrics are of the guard; otherwise of each activity

	// Live holds what operators have changed and granted. Nil means that they
	// have changed and granted nothing.
	Live *live.Follower

	// NewID returns an id for a request that has none. Nil makes a random one.
	NewID func(context.Context) string

	// JobsElsewhere is set in an app's own process, and beside the app: only the guard's
	// function puts a job on the queue. Then a job is a ValidationError that names it.
	JobsElsewhere bool

	// Delay puts the job of a delayed check on the delayed queue. Nil means
	// that there is no queue; then an event with a job is a ValidationError.
	Delay func(context.Context, Job) error

	refusals sample   // chooses the refusals that are logged, at most refusalLines in a second
	strange  sync.Map // by activity: a *sample that chooses warnings of an unknown tier, one in a minute
}

// Invoke implements lambda.Handler. Its errors have the types
// *input.ValidationError, *input.Unavailable and *RateLimitExceeded. An HTTP
// event gets a response instead of an error.
func (h *Handler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	if call, ok := parseCall(payload); ok {
		return h.answerCall(ctx, payload, call), nil
	}
	a, err := h.handle(ctx, payload)
	if err != nil {
		return nil, err
	}
	if h.RefusalIsError && a.Refused() && !a.delayed() { // an error has no readyAt, so the caller would lose the place
		return nil, &RateLimitExceeded{a.Message}
	}
	return a.JSON(), nil
}

// RateLimitExceeded is a refusal as an error. Lambda sends the type's name to
// the caller as the errorType.
type RateLimitExceeded struct{ Message string }

// Error implements error.
func (e *RateLimitExceeded) Error() string { return e.Message }

// handle decodes an event and decides it.
func (h *Handler) handle(ctx context.Context, payload []byte) (Answer, error) {
	r, err := input.Decode(payload, fields)
	if err != nil {
		h.logInvalid(ctx, err)
		return Answer{}, err
	}
	return h.Decide(ctx, r)
}

// Decide answers a request, and puts the job of a delayed check on the queue. It
// adds to the metrics, writes a line to the log about a refusal or a failure, and
// may read the live limits for the next request. The error is an
// *input.ValidationError or an *input.Unavailable.
func (h *Handler) Decide(ctx context.Context, r Request) (Answer, error) {
	return h.decide(ctx, r, false)
}

// DecideQueued answers a check for a job from the delayed queue, as Decide does. The job has its
// place already, so no block refuses it.
func (h *Handler) DecideQueued(ctx context.Context, r Request) (Answer, error) {
	return h.decide(ctx, r, true)
}

// decide answers a request. Queued: it is for a job from the delayed queue.
func (h *Handler) decide(ctx context.Context, r Request, queued bool) (Answer, error) {
	h.Live.CatchUp(ctx)
	t, low, err := h.terms(&r, queued)
	if err != nil {
		h.logInvalid(ctx, err)
		return Answer{}, err
	}
	blocked := r.blocked(t)
	refused := low != nil && (r.Op == guards.Check || r.Op == guards.Status) && !r.placed(t, h.Limiter.Clock())
	defer h.refresh(ctx, blocked || refused || t.Exempt())()
	a := Answer{Allowed: true, Reason: ratelimit.Bypassed, Request: r, Granted: r.Count}
	switch {
	case blocked:
		d := h.block(t)
		a = h.answer(t, r, d)
	case t.Unlimited:
		a.Reason = ratelimit.Unlimited
	case refused:
		a = h.answer(t, r, ratelimit.Decision{Reason: ratelimit.Limited, LimitedBy: low.limit})
	case !t.Exempt():
		if a, err = h.ask(ctx, t, r, low != nil); err != nil {
			return Answer{}, err
		}
	}
	h.record(ctx, a)
	if r.Op == guards.Status {
		a.Version = h.Version
	}
	if r.Job != nil && a.delayed() {
		return a, h.delay(ctx, a)
	}
	return a, nil
}

// terms fills in r's defaults, checks r, and returns what is in force for it. Low is the number
// that has no room for r; nil: there is none, or no limit decides.
func (h *Handler) terms(r *Request, queued bool) (t live.Terms, low *tooLow, err error) {
	activity, err := r.resolve(h.Guard)
	if err != nil {
		return t, nil, err
	}
	if r.Job != nil && h.JobsElsewhere {
		return t, nil, &input.ValidationError{Field: "job", Problem: "goes only to a function: ask " + h.Guard.Name + " by Invoke"}
	}
	t = h.Live.Limits().Terms(live.Query{
		Activity: activity, UserID: r.UserID, Subjects: r.Subjects, Numbers: r.Limit, Tier: r.Tier, Roles: r.Roles, At: h.Limiter.Clock(),
		BypassRoles: h.BypassRoles, Mode: h.Mode,
	})
	if queued {
		t.Block, t.Blocked = live.Block{}, ""
	}
	if r.blocked(t) {
		return t, nil, nil
	}
	if err := r.validPlace(t.Limit, h.Delay != nil); err != nil || t.Exempt() {
		return t, nil, err
	}
	if err := r.takesNumbers(activity); err != nil {
		return t, nil, err
	}
	if t.Mode == live.Shadow {
		t.Limit = t.Limit.AtOnce() // shadow mode lets every job through, so none needs a place
	}
	held := false
	low = r.tooLow(t)
	for s := range t.Parts {
		if err := r.fits(widest(t, s), s.Name, low != nil); err != nil {
			return t, nil, err
		}
		held = held || s.Limit.HasLog()
	}
	if r.Op == guards.Renew && !held {
		return t, nil, input.Invalid("op", string(r.Op), "another one, because only a log has slots to renew")
	}
	return t, low, nil
}

// refresh starts to read the live limits, if a read is due, at the same time as
// the decision. A handler whose own mode is off never reads live limits.
//
// While the limiter's circuit breaker is open, a decision that needs the table
// does not read live limits either, so that an outage costs it no time. A request
// that is decided without the table still reads them, and waits up to a second for them. It
// never asks the table otherwise, so without that a live mode "off" or a block could stay
// forever, or a new block go unnoticed.
func (h *Handler) refresh(ctx context.Context, withoutTable bool) (wait func()) {
	if h.Mode == live.Off || !withoutTable && h.Limiter.CircuitOpen() {
		return func() {}
	}
	if !withoutTable {
		return h.Live.Refresh(ctx, 0)
	}
	ctx, release := retry.Before(ctx, retry.Margin)
	longest := min(time.Second, cmp.Or(h.Limiter.Timeout, time.Second)) // 0: there is no Timeout
	read := h.Live.Refresh(ctx, longest)
	return func() {
		read()
		release()
	}
}

// ask lets the limiter decide. TooLow: the caller gave a number that has no room for an action.
func (h *Handler) ask(ctx context.Context, t live.Terms, r Request, tooLow bool) (Answer, error) {
	op, most, fresh := r.Op, largest(t), r.RequestID == ""
	if fresh {
		r.RequestID = h.newID(ctx)
	}
	ctx, cancel := retry.Before(ctx, retry.Margin)
	defer cancel()
	asked := ratelimit.Request{
		UserID: r.UserID, Activity: r.Activity, Group: t.Group, Policy: t.Limit, Hold: t.Hold, Shared: t.Shared,
		Count: r.Count, Partial: r.Partial, ID: r.RequestID, Fresh: fresh, At: r.At, Clear: r.Clear, ReadyAt: r.ReadyAt,
		Fallback: !h.DenyOutage || t.Mode == live.Shadow,
	}
	never := (op == guards.Check || op == guards.Status) && r.Count > most && !r.Partial
	if never {
		op, asked.Count = guards.Status, most
	}
	subjects := t.Subjects
	if op == guards.Reset {
		subjects = nil // a reset clears the user alone
	}
	all := parts(asked, subjects)
	d, err := h.Limiter.DecideAll(ctx, op, all, t.Mode == live.Shadow)
	if err != nil {
		return Answer{}, h.unavailable(ctx, r, d, err)
	}
	switch {
	case never && d.Reason == ratelimit.Duplicate: // counted when the limit was higher
		d.Granted = r.Count
	case never:
		refuse(&d)
	}
	if tooLow {
		d.Reading = policy.Reading{} // no limit is so low
	}
	return h.answer(t, r, d), nil
}

// block returns the decision about a request that is blocked.
func (h *Handler) block(t live.Terms) ratelimit.Decision {
	d := ratelimit.Decision{Reason: ratelimit.Blocked, LimitedBy: t.Blocked}
	until := t.Block.Until.Add(time.Millisecond - 1).Truncate(time.Millisecond)             // the first moment that an answer can name
	d.Wait = max(time.Millisecond, until.Sub(h.Limiter.Clock().Truncate(time.Millisecond))) // the clock goes on after the terms
	d.ResetAt = until.UnixMilli()
	return d
}

// parts returns the request of the user, and the same request of each subject.
func parts(user ratelimit.Request, subjects []live.Subject) []ratelimit.Part {
	parts := []ratelimit.Part{{Request: user}}
	for _, s := range subjects {
		one := ratelimit.Part{Request: user, Subject: s.Name}
		one.UserID, one.For, one.Policy, one.Clear = s.UserID, user.UserID, s.Limit, false
		parts = append(parts, one)
	}
	return parts
}

// answer turns a decision into an answer, as the mode demands.
func (h *Handler) answer(t live.Terms, r Request, d ratelimit.Decision) Answer {
	a := Answer{Request: r, Allowed: d.Allowed, Reason: d.Reason, Decision: &d, Granted: d.Granted}
	if t.Label != "" && d.Limit != 0 {
		a.Display = h.display(t.Label, a)
	}
	switch {
	case !a.short():
	case t.Mode == live.Shadow:
		// A partial grant also becomes "shadow", without a message. A message would
		// make the caller stop there, and shadow mode would have limited somebody.
		a.Allowed = true
		if a.Reason != ratelimit.Unavailable {
			a.Reason = ratelimit.Shadow
		}
		d.ReadyAt, d.Waiting = 0, 0 // a place that was given before shadow mode has no meaning
	case a.blocked():
		a.Message = cmp.Or(h.Guard.BlockedMessage, "You can't do this at the moment.")
	case a.Op != guards.Renew: // a slot that has expired is no refusal
		a.Message = h.Guard.Message
	}
	return a
}

// display returns the label and the figures of the user's limit that comes first in the
// code. It is empty if a has no figures of the user, which happens if a subject refused
// from memory.
func (h *Handler) display(label string, a Answer) string {
	code, _ := h.Guard.Activity(a.Activity)
	first := code.Limit.Rates()[0].Name
	for _, l := range a.Decision.Limits() {
		if l.Name == first || first == "" && l.Name == a.Activity { // its name beside subjects
			return fmt.Sprintf("%s: %d/%d", label, l.Used, l.Limit)
		}
	}
	return ""
}

func (h *Handler) newID(ctx context.Context) string {
	if h.NewID == nil {
		return rand.Text()
	}
	return h.NewID(ctx)
}

// A Job is what a delayed check puts on the delayed queue, as JSON.
type Job struct {
	UserID    string          `json:"userId"`
	Activity  string          `json:"activity"`
	RequestID string          `json:"requestId"` // lets the queue's consumer run each job once
	ReadyAt   int64           `json:"readyAt"`   // when its place comes up, in Unix milliseconds
	Enqueued  int64           `json:"enqueued"`  // places given in later windows, up to this one
	Tier      string          `json:"tier,omitempty"`
	Limit     guards.Numbers  `json:"limit,omitempty"`
	Job       json.RawMessage `json:"job"` // the caller's job, unchanged
}

// delay puts the job of a delayed check on the queue. If that fails, the caller
// can send the event again with the same requestId and gets the same place.
func (h *Handler) delay(ctx context.Context, a Answer) error {
	err := h.Delay(ctx, Job{
		UserID: a.UserID, Activity: a.Activity, RequestID: a.RequestID,
		ReadyAt: a.Decision.ReadyAt, Enqueued: a.Decision.Waiting, Tier: a.Tier, Limit: a.Limit, Job: a.Job,
	})
	if err == nil {
		return nil
	}
	h.log().LogAttrs(ctx, slog.LevelError, "job not delayed", slog.String("activity", a.Activity), slog.Any("error", err))
	return &input.Unavailable{What: "the job could not be put on the delayed queue", Cause: err}
}
