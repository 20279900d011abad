package guard

import (
	"context"
	"errors"
	"log/slog"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/metrics"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// record writes a line of log for a refusal or an outage, and one of metrics for
// every decision.
func (h *Handler) record(ctx context.Context, a Answer) {
	d := a.Decision
	if d != nil && d.Outage != nil {
		h.logOutage(ctx, a.Request, d.Outage)
	}
	if d != nil && a.short() && a.Op == Check {
		h.logRefusal(ctx, a)
	}
	h.measure(a.Activity, figures(a))
}

func (h *Handler) logRefusal(ctx context.Context, a Answer) {
	if h.Log == nil {
		return
	}
	left, ok := h.refusals.next(h.Limiter.Clock().Unix())
	if !ok {
		return
	}
	d := a.Decision
	attrs := []slog.Attr{
		slog.String("activity", a.Activity),
		slog.String("user", mask(a.UserID)),
		slog.String("reason", string(a.Reason)),
		slog.Int64("limit", d.Limit),
		slog.Int64("activityCount", d.Used),
		slog.Int64("waitTime", d.Wait.Milliseconds()),
	}
	if left > 0 {
		attrs = append(attrs, slog.Int64("notLogged", left))
	}
	h.Log.LogAttrs(ctx, slog.LevelInfo, "refused", attrs...)
}

// unavailable logs a decision that nobody could make, and returns its error.
func (h *Handler) unavailable(ctx context.Context, r Request, d ratelimit.Decision, err error) error {
	h.logOutage(ctx, r, err)
	h.measure(r.Activity, []metrics.Value{{Name: "Degraded", Count: 1}, {Name: "Requests", Count: int64(d.Requests)}})
	return input.NewUnavailable(err)
}

// logOutage names an unreadable item's attribute, so that somebody can repair
// it, but never the user.
func (h *Handler) logOutage(ctx context.Context, r Request, cause error) {
	if h.Log == nil {
		return
	}
	if e, ok := errors.AsType[*ratelimit.StoreError](cause); ok && e.Failure == ratelimit.Unreadable {
		h.Log.LogAttrs(ctx, slog.LevelError, "item unreadable",
			slog.String("activity", r.Activity), slog.String("attribute", e.Attr), slog.String("op", string(r.Op)))
		return
	}
	h.Log.LogAttrs(ctx, slog.LevelWarn, "table unavailable",
		slog.String("activity", r.Activity), slog.String("op", string(r.Op)), slog.Any("error", cause))
}

// logInvalid names the field, never what a caller put there.
func (h *Handler) logInvalid(ctx context.Context, err error) {
	e, ok := errors.AsType[*input.ValidationError](err)
	if h.Log == nil || !ok {
		return
	}
	h.Log.LogAttrs(ctx, slog.LevelWarn, "invalid request", slog.String("field", e.Field))
}

// mask returns as much of a user's id as a log may have.
func mask(userID string) string {
	if len(userID) < 8 {
		return "***"
	}
	return "***" + userID[len(userID)-4:]
}

func (h *Handler) measure(activity string, values []metrics.Value) {
	dimensions := []metrics.Dimension{{Name: "Guard", Value: h.Guard.Name}, {Name: "Activity", Value: activity}}
	h.Metrics.Write(h.Limiter.Clock(), dimensions, values)
}

// figures returns a decision's metrics.
func figures(a Answer) []metrics.Value {
	var values []metrics.Value
	if a.Op == Check {
		values = append(values, metrics.Value{Name: outcome(a), Count: 1})
	}
	d := a.Decision
	if d == nil {
		return values
	}
	values = append(values, metrics.Value{Name: "Requests", Count: int64(d.Requests)})
	if d.Outage != nil {
		values = append(values, metrics.Value{Name: "Degraded", Count: 1})
	}
	nearLimit := d.Limit != 0 && d.Used >= d.Limit-d.Limit/5 // 80 % of it is used
	if a.Op == Check && outcome(a) == "Allowed" && nearLimit {
		values = append(values, metrics.Value{Name: "NearLimit", Count: 1})
	}
	if d.Requests == 0 && d.Outage == nil && d.Limit != 0 { // without a limit it was a place, not a refusal
		values = append(values, metrics.Value{Name: "CacheRefusals", Count: 1})
	}
	return values
}

func outcome(a Answer) string {
	switch {
	case a.Reason == ratelimit.Bypassed:
		return "Bypassed"
	case a.Reason == ratelimit.Shadow:
		return "Shadowed"
	case !a.Allowed:
		return "Refused"
	}
	return "Allowed"
}
