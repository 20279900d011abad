// Package guard is a rate-limit guard as a Lambda function: an event in, an answer
// out.
//
// A [Handler] takes an event through these rules, and the first one that matches
// decides:
//
//  1. An event that breaks the contract is a *input.ValidationError. Nothing is counted.
//  2. An activity without a limit, or mode off, is allowed and not counted.
//  3. A caller with a bypass role, its own or one that operators granted, is allowed and not
//     counted.
//  4. Otherwise [ratelimit.Limiter] decides, by the limit of the caller's tier.
//  5. In an outage, the limiter's memory decides or, with DenyOutage, the error
//     is *input.Unavailable.
//  6. In shadow mode a refusal becomes an admission that is marked as such.
//
// Live limits and grants are applied before these rules. This package knows no
// storage: it is given a limiter.
package guard

import (
	"context"
	"crypto/rand"
	"log/slog"
	"slices"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/cric-talk/guards/internal/deadline"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/metrics"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// A Handler decides one function's activities. It is safe for concurrent use.
type Handler struct {
	Guard   limits.Guard
	Limiter *ratelimit.Limiter

	Mode           Mode           // zero: Enforce
	DenyOutage     bool           // an outage is the error Unavailable; otherwise memory decides
	RefusalIsError bool           // a refused check is the error RateLimitExceeded; otherwise it is an answer
	BypassRoles    []string       // callers with one of these are never limited
	Log            *slog.Logger   // a line for each refusal and failure; nil: none
	Metrics        metrics.Writer // a line for each decision; zero: none

	// Live is what operators have changed and granted. Nil: nothing.
	Live *live.Follower

	// Delay puts the job of a delayed check on the delayed queue. Nil: there is no
	// queue, and a job is a ValidationError.
	Delay func(context.Context, Job) error

	refusals sample // of the refusals, those that are logged
}

// A Mode is how strict a handler is.
type Mode string

// The modes.
const (
	Enforce Mode = "enforce"
	Shadow  Mode = "shadow" // count and report, but refuse nobody
	Off     Mode = "off"    // allow without a request to the table
)

// Invoke implements lambda.Handler. Its errors are *input.ValidationError,
// *input.Unavailable and *RateLimitExceeded. An HTTP event always gets an answer.
func (h *Handler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	if call, ok := parseCall(payload); ok {
		return h.answerCall(ctx, call), nil
	}
	a, err := h.handle(ctx, payload)
	if err != nil {
		return nil, err
	}
	if h.RefusalIsError && a.Refused() && !a.delayed() { // an exception would lose the place
		return nil, &RateLimitExceeded{a.Message}
	}
	return a.AppendJSON(nil), nil
}

// RateLimitExceeded is a refusal as an exception. Lambda reports the name of this type as
// the errorType.
type RateLimitExceeded struct{ Message string }

// Error implements error.
func (e *RateLimitExceeded) Error() string { return e.Message }

// handle decides an event.
func (h *Handler) handle(ctx context.Context, payload []byte) (Answer, error) {
	r, err := input.Decode(payload, fields)
	if err != nil {
		h.logInvalid(ctx, err)
		return Answer{}, err
	}
	return h.Decide(ctx, r)
}

// Decide answers a request, and writes a line of metrics and, if it is refused or
// fails, a line of log. The error is a *input.ValidationError or a *input.Unavailable.
func (h *Handler) Decide(ctx context.Context, r Request) (Answer, error) {
	t, err := h.terms(&r)
	if err != nil {
		h.logInvalid(ctx, err)
		return Answer{}, err
	}
	defer h.look(ctx)()
	a := Answer{Allowed: true, Reason: ratelimit.Unlimited, Request: r, Granted: r.Count}
	switch {
	case t.mode == Off || t.policy.IsZero():
	case h.bypasses(r.Roles), h.bypasses(t.roles):
		a.Reason = ratelimit.Bypassed
	default:
		if a, err = h.ask(ctx, t, r); err != nil {
			return Answer{}, err
		}
	}
	h.record(ctx, a)
	if r.Job != nil && a.delayed() {
		return a, h.delay(ctx, a)
	}
	return a, nil
}

// terms are what one request is decided by.
type terms struct {
	policy policy.Policy
	mode   Mode
	roles  []string // that operators granted the user
	label  string
}

// terms fills in r's defaults, checks it, and applies the live limits and grants.
func (h *Handler) terms(r *Request) (t terms, err error) {
	activity, err := r.resolve(h.Guard)
	if err != nil {
		return t, err
	}
	now := h.Live.Limits()
	activity, mode := now.Activity(activity)
	roles, tier := now.Granted(r.UserID, h.Limiter.Clock())
	if _, ok := activity.Tiers[tier]; !ok { // nothing is granted, or a tier of other activities
		tier = r.Tier
	}
	t = terms{policy: activity.For(tier), mode: h.mode(Mode(mode)), roles: roles, label: activity.Label}
	if err := r.validPlace(t.policy, h.Delay != nil); err != nil {
		return t, err
	}
	counted := t.mode != Off && !t.policy.IsZero() && !h.bypasses(r.Roles) && !h.bypasses(roles)
	if counted {
		err = r.fits(t.policy)
	}
	return t, err
}

// mode returns the mode of an activity for which operators set live; empty: they
// set none.
func (h *Handler) mode(live Mode) Mode {
	if live == "" || h.Mode == Off {
		return h.Mode
	}
	return live
}

func (h *Handler) bypasses(roles []string) bool {
	return slices.ContainsFunc(roles, func(role string) bool { return slices.Contains(h.BypassRoles, role) })
}

// look starts a look at the live limits if one is due, beside the decision. The caller calls wait
// when the answer is ready. A handler that is off by its own setting follows nothing, and an open
// circuit breaker keeps the look from the table too.
func (h *Handler) look(ctx context.Context) (wait func()) {
	if h.Mode == Off || h.Limiter.CircuitOpen() {
		return func() {}
	}
	return h.Live.Look(ctx)
}

// ask has the limiter decide.
func (h *Handler) ask(ctx context.Context, t terms, r Request) (Answer, error) {
	fresh := r.RequestID == ""
	if fresh {
		r.RequestID = newRequestID(ctx)
	}
	if t.mode == Shadow {
		t.policy = t.policy.AtOnce() // a job that is let through waits for no place
	}
	ctx, cancel := deadline.Before(ctx, deadline.Margin)
	defer cancel()
	asked := ratelimit.Request{
		UserID: r.UserID, Activity: r.Activity, Policy: t.policy,
		Count: r.Count, Partial: r.Partial, ID: r.RequestID, Fresh: fresh, At: r.At, ReadyAt: r.ReadyAt,
		Alone: !h.DenyOutage || t.mode == Shadow,
	}
	decide := map[Op]func(context.Context, ratelimit.Request) (ratelimit.Decision, error){
		Check: h.Limiter.Check, Status: h.Limiter.Status, Release: h.Limiter.Release, Reset: h.Limiter.Reset,
	}[r.Op]
	d, err := decide(ctx, asked)
	if err != nil {
		return Answer{}, h.unavailable(ctx, r, d, err)
	}
	return h.answer(t, r, d), nil
}

// answer puts a decision into the words of the handler and its mode.
func (h *Handler) answer(t terms, r Request, d ratelimit.Decision) Answer {
	a := Answer{
		Allowed: d.Allowed, Reason: d.Reason, Request: r, Decision: &d, Granted: d.Granted,
		Display: display(t.label, &d),
	}
	if !a.short() {
		return a
	}
	if t.mode != Shadow {
		a.Message = h.Guard.Message
		return a
	}
	// A partial grant is let through too: a caller who stops there would be limited.
	a.Allowed = true
	if a.Reason != ratelimit.Unavailable {
		a.Reason = ratelimit.Shadow
	}
	return a
}

// newRequestID returns Lambda's own id of the invocation. If Lambda retries an
// asynchronous event, the id is the same. Nobody waits for that answer.
func newRequestID(ctx context.Context) string {
	if lc, ok := lambdacontext.FromContext(ctx); ok && lc.AwsRequestID != "" {
		return lc.AwsRequestID
	}
	return rand.Text()
}
