// Package guard is a rate-limit guard as a Lambda function: an event in, an
// answer out. It knows requests, answers, tiers, roles and modes, and leaves
// the counting to [ratelimit.Limiter].
package guard

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/cric-talk/guards/internal/deadline"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// A Guard decides one function's activities. It is safe for concurrent use.
type Guard struct {
	Rules   limits.Guard
	Limiter *ratelimit.Limiter

	Mode           Mode         // zero: Enforce
	RefusalIsError bool         // a refused check is the error RateLimitExceeded, not an answer
	BypassRoles    []string     // callers with one of these are never limited
	Log            *slog.Logger // a line for each refusal and failure; nil: none
	Metrics        io.Writer    // a line of CloudWatch's embedded metric format for each decision; nil: none
	Namespace      string       // of the metrics

	// Live is what operators have changed of Rules, and granted. Nil: nothing.
	Live *live.Follower

	// Delay puts the job of a delayed check on the delayed queue. Nil: there is
	// none, and a job is a ValidationError.
	Delay func(context.Context, Job) error

	refusals sample // that are logged
}

// A Job is what a delayed check was for.
type Job struct {
	UserID   string          `json:"userId"`
	Activity string          `json:"activity"`
	ReadyAt  int64           `json:"readyAt"`  // Unix milliseconds
	Enqueued int64           `json:"enqueued"` // with UserID, Activity and ReadyAt it names the place
	Job      json.RawMessage `json:"job"`      // as the caller gave it
}

// A Mode is how far a guard goes.
type Mode string

// The modes.
const (
	Enforce Mode = "enforce"
	Shadow  Mode = "shadow" // count and report, refuse nobody
	Off     Mode = "off"    // allow without a look at the table
)

// Invoke implements lambda.Handler. What it returns as an error is a
// *input.ValidationError, an *input.Unavailable or a *RateLimitExceeded; an HTTP event is
// always answered.
func (g *Guard) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	if call, ok := parseCall(payload); ok {
		return g.answerCall(ctx, call), nil
	}
	a, err := g.handle(ctx, payload)
	if err != nil {
		return nil, err
	}
	if g.RefusalIsError && a.Refused() && !a.delayed() { // a place would be lost in an exception
		return nil, &RateLimitExceeded{a.Message}
	}
	return a.AppendJSON(nil), nil
}

// RateLimitExceeded is a refusal as an exception. Lambda reports the type's
// name as the errorType.
type RateLimitExceeded struct{ Message string }

func (e *RateLimitExceeded) Error() string { return e.Message }

// handle decides an event, and leaves a line of log and of metrics.
func (g *Guard) handle(ctx context.Context, payload []byte) (Answer, error) {
	r, err := input.Decode(payload, fields)
	if err != nil {
		g.logInvalid(ctx, err)
		return Answer{}, err
	}
	return g.Decide(ctx, r)
}

// Decide answers a request. The error is a *input.ValidationError or an *input.Unavailable.
func (g *Guard) Decide(ctx context.Context, r Request) (Answer, error) {
	activity, err := r.resolve(g.Rules)
	if err != nil {
		g.logInvalid(ctx, err)
		return Answer{}, err
	}
	now := g.Live.Limits()
	activity, mode := now.Activity(activity)
	roles, tier := now.Granted(r.UserID, g.Limiter.Clock())
	if _, ok := activity.Tiers[tier]; !ok { // granted for other activities
		tier = r.Tier
	}
	policy := activity.For(tier)
	if err := r.validPlace(policy, g.Delay != nil); err != nil {
		g.logInvalid(ctx, err)
		return Answer{}, err
	}
	t := terms{Guard: g, policy: policy, mode: g.mode(Mode(mode)), label: activity.Label}
	a := Answer{Allowed: true, Request: r, Granted: r.Count}
	switch {
	case t.mode == Off || policy == nil:
		a.Reason = ratelimit.Unlimited
		if policy != nil && g.Mode != Off {
			g.Live.Look(ctx)() // nothing else would see that it is on again
		}
	case g.bypasses(r.Roles):
		a.Reason = ratelimit.Bypassed
	case g.bypasses(roles):
		a.Reason = ratelimit.Bypassed
		g.Live.Look(ctx)()
	default:
		if a, err = t.ask(ctx, r); err != nil {
			return Answer{}, err
		}
	}
	g.record(ctx, a)
	if r.Job != nil && a.delayed() {
		return a, g.delay(ctx, a)
	}
	return a, nil
}

func (g *Guard) bypasses(roles []string) bool {
	return slices.ContainsFunc(roles, func(role string) bool { return slices.Contains(g.BypassRoles, role) })
}

// mode is how far the guard goes with an activity whose mode operators have set;
// empty: they have not.
func (g *Guard) mode(live Mode) Mode {
	if live == "" || g.Mode == Off {
		return g.Mode
	}
	return live
}

// terms are what decides one request.
type terms struct {
	*Guard
	policy ratelimit.Policy
	mode   Mode
	label  string
}

// delay puts the job of a delayed check on the queue. Where that fails its place
// passes, and a caller who asks again with the same requestId is given it again.
func (g *Guard) delay(ctx context.Context, a Answer) error {
	err := g.Delay(ctx, Job{UserID: a.UserID, Activity: a.Activity, ReadyAt: a.Decision.ReadyAt, Enqueued: a.Decision.Enqueued, Job: a.Job})
	if err == nil {
		return nil
	}
	if g.Log != nil {
		g.Log.LogAttrs(ctx, slog.LevelError, "job not delayed", slog.String("activity", a.Activity), slog.Any("error", err))
	}
	return &input.Unavailable{What: "the job could not be put on the delayed queue", Cause: err}
}

// display is the limit and its use in words, for people.
func display(label string, d *ratelimit.Decision) string {
	if label == "" || d.Limit == 0 {
		return ""
	}
	return fmt.Sprintf("%s: %d/%d", label, d.Used, d.Limit)
}

// ask has the limiter decide.
func (t terms) ask(ctx context.Context, r Request) (Answer, error) {
	p := t.policy
	if err := r.fits(p); err != nil {
		t.logInvalid(ctx, err)
		return Answer{}, err
	}
	if r.RequestID == "" {
		r.RequestID = newRequestID(ctx)
	}
	if reservoir, ok := p.(ratelimit.Reservoir); ok && t.mode == Shadow {
		reservoir.Ahead = 0 // a job that is let through waits for no place
		p = reservoir
	}
	ctx, cancel := deadline.Before(ctx, deadline.Margin)
	defer cancel()
	asked := ratelimit.Request{
		UserID: r.UserID, Activity: r.Activity, Policy: p,
		Count: r.Count, Partial: r.Partial, ID: r.RequestID, At: r.At, ReadyAt: r.ReadyAt,
		Alone: t.mode == Shadow, // where nobody is refused
	}
	var d ratelimit.Decision
	var err error
	switch r.Op {
	case Check:
		d, err = t.Limiter.Check(ctx, asked)
	case Status:
		d, err = t.Limiter.Status(ctx, asked)
	case Release:
		d, err = t.Limiter.Release(ctx, asked)
	case Reset:
		d, err = t.Limiter.Reset(ctx, asked)
	}
	if err != nil {
		return Answer{}, t.unavailable(ctx, r, d, err)
	}
	return t.answer(r, d), nil
}

// answer is the limiter's decision in the guard's mode and words.
func (t terms) answer(r Request, d ratelimit.Decision) Answer {
	a := Answer{Allowed: d.Allowed, Reason: d.Reason, Request: r, Decision: &d, Granted: d.Granted, Display: display(t.label, &d)}
	short := d.Granted < r.Count && d.Reason != ratelimit.Duplicate // refused, in whole or part
	switch {
	case short && t.mode == Shadow: // also in part: a caller who does as many as were granted would be refused the rest
		a.Allowed = true
		if a.Reason != ratelimit.Unavailable {
			a.Reason = ratelimit.Shadow
		}
	case short:
		a.Message = t.Rules.Message
	}
	return a
}

// newRequestID is Lambda's own, which its retry of an event repeats.
func newRequestID(ctx context.Context) string {
	if lc, ok := lambdacontext.FromContext(ctx); ok && lc.AwsRequestID != "" {
		return lc.AwsRequestID
	}
	return rand.Text()
}
