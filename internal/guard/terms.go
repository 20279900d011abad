package guard

import (
	"context"
	"slices"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// terms are what one request is decided by: the code's limits, with live limits
// and grants applied.
type terms struct {
	policy policy.Policy
	mode   Mode
	label  string           // see limits.Activity; may be empty
	exempt ratelimit.Reason // why nothing is counted: Unlimited or Bypassed; empty if the limiter decides
}

// terms fills in r's defaults, checks r, and applies live limits and grants.
func (h *Handler) terms(r *Request) (terms, error) {
	activity, err := r.resolve(h.Guard)
	if err != nil {
		return terms{}, err
	}
	now := h.Live.Limits()
	activity, mode := now.Activity(activity)
	roles, tier := now.Granted(r.UserID, h.Limiter.Clock())
	if _, ok := activity.Tiers[tier]; !ok { // nothing is granted, or a tier of other activities
		tier = r.Tier
	}
	t := terms{policy: activity.For(tier), mode: h.mode(Mode(mode)), label: activity.Label}
	switch {
	case t.mode == Off || t.policy.IsZero():
		t.exempt = ratelimit.Unlimited
	case h.bypasses(r.Roles) || h.bypasses(roles):
		t.exempt = ratelimit.Bypassed
	}
	if err := r.validPlace(t.policy, h.Delay != nil); err != nil {
		return terms{}, err
	}
	if t.exempt != "" {
		return t, nil
	}
	return t, r.fits(t.policy)
}

// mode returns the mode of an activity. Live is the mode that operators set for
// the activity; empty means that they set none. They can't switch a handler on
// that is off by its own setting.
func (h *Handler) mode(live Mode) Mode {
	if live == "" || h.Mode == Off {
		return h.Mode
	}
	return live
}

func (h *Handler) bypasses(roles []string) bool {
	return slices.ContainsFunc(roles, func(role string) bool { return slices.Contains(h.BypassRoles, role) })
}

// look starts to read the live limits, if they are due, beside the decision.
// The caller calls wait when the answer is ready. A handler that is off by its
// own setting reads none.
//
// While the limiter's circuit breaker is open, decisions that need the table
// read none either, so that an outage costs them no time. Exempt requests do:
// they never close the breaker, so a live mode "off" would otherwise stay
// forever.
func (h *Handler) look(ctx context.Context, t terms) (wait func()) {
	if h.Mode == Off || t.exempt == "" && h.Limiter.CircuitOpen() {
		return func() {}
	}
	return h.Live.Look(ctx)
}
