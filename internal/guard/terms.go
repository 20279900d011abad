package guard

import (
	"context"

	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/retry"
)

// terms hold the rules by which one request is decided: the code's limits, with
// live limits and grants applied.
type terms struct {
	policy policy.Policy
	mode   Mode
	label  string           // see limits.Activity; may be empty
	exempt ratelimit.Reason // why nothing is counted: Unlimited or Bypassed; empty if the limiter decides
}

// terms fills in r's defaults, checks r, and asks [live.Limits.Terms] what is in
// force for it.
func (h *Handler) terms(r *Request) (terms, error) {
	deployed, err := r.resolve(h.Guard)
	if err != nil {
		return terms{}, err
	}
	now := h.Live.Limits().Terms(live.Case{
		Activity: deployed, UserID: r.UserID, Tier: r.Tier, Roles: r.Roles, At: h.Limiter.Clock(),
		BypassRoles: h.BypassRoles, Mode: string(h.Mode),
	})
	t := terms{policy: now.Limit, mode: Mode(now.Mode), label: deployed.Label}
	switch {
	case now.Unlimited:
		t.exempt = ratelimit.Unlimited
	case now.Exempt():
		t.exempt = ratelimit.Bypassed
	}
	if err := r.validPlace(t.policy, h.Delay != nil); err != nil {
		return terms{}, err
	}
	if t.exempt != "" {
		return t, nil
	}
	widest := t.policy
	if t.mode == Shadow && now.Code.Most() > widest.Most() {
		widest = now.Code // a lower live limit that is only tried must refuse nobody
	}
	return t, r.fits(widest)
}

// look starts to read the live limits, if a read is due, at the same time as
// the decision. The caller calls wait when the answer is ready. A handler whose
// own mode is off never reads live limits.
//
// While the limiter's circuit breaker is open, a decision that needs the table
// does not read live limits either, so that an outage costs it no time. An
// exempt request still reads them, and waits longer for them. It never asks the
// table otherwise, so without that a live mode "off" could stay in force forever.
// An activity that is unlimited in the code does not wait: no setting can limit
// it.
func (h *Handler) look(ctx context.Context, t terms) (wait func()) {
	if h.Mode == Off || t.exempt == "" && h.Limiter.CircuitOpen() {
		return func() {}
	}
	if t.exempt == "" || t.policy.IsZero() {
		return h.Live.Look(ctx)
	}
	ctx, release := retry.Before(ctx, retry.Margin)
	cancel := func() {}
	if h.Limiter.Timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, h.Limiter.Timeout)
	}
	alone := h.Live.LookAlone(ctx)
	return func() {
		alone()
		cancel()
		release()
	}
}
