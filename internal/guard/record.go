package guard

import (
	"context"
	"errors"
	"log/slog"

	"github.com/cric-talk/guards/internal/event"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// record leaves a line of log for a refusal or an outage, and one of metrics
// for every decision.
func (g *Guard) record(ctx context.Context, a Answer) {
	d := a.Decision
	if d != nil && d.Outage != nil {
		g.logOutage(ctx, a.Request, d.Outage)
	}
	if d != nil && a.Granted < a.Count && a.Reason != ratelimit.Duplicate && a.Op == Check && g.Log != nil {
		g.Log.LogAttrs(ctx, slog.LevelInfo, "refused",
			slog.String("activity", a.Activity),
			slog.String("user", mask(a.UserID)),
			slog.String("reason", string(a.Reason)),
			slog.Int64("limit", d.Limit),
			slog.Int64("activityCount", d.Used),
			slog.Int64("waitTime", d.Wait.Milliseconds()))
	}
	g.measure(a.Activity, measures(a))
}

// unavailable is the error of a decision that nobody made, logged with its
// cause.
func (g *Guard) unavailable(ctx context.Context, r Request, d ratelimit.Decision, err error) error {
	g.logOutage(ctx, r, err)
	g.measure(r.Activity, []metric{{"Degraded", 1}, {"Requests", int64(d.Requests)}})
	return event.NewUnavailable(err)
}

func (g *Guard) logOutage(ctx context.Context, r Request, cause error) {
	if g.Log == nil {
		return
	}
	g.Log.LogAttrs(ctx, slog.LevelWarn, "table unavailable",
		slog.String("activity", r.Activity), slog.String("op", string(r.Op)), slog.Any("error", cause))
}

// logInvalid names the field, never what a caller put there.
func (g *Guard) logInvalid(ctx context.Context, err error) {
	e, ok := errors.AsType[*event.ValidationError](err)
	if g.Log == nil || !ok {
		return
	}
	g.Log.LogAttrs(ctx, slog.LevelWarn, "invalid request", slog.String("field", e.Field))
}

// mask is a user's id as logs may have it.
func mask(userID string) string {
	if len(userID) < 8 {
		return "***"
	}
	return "***" + userID[len(userID)-4:]
}

// A metric is one figure of a decision.
type metric struct {
	name  string
	count int64
}

// measures are a decision's figures.
func measures(a Answer) []metric {
	var m []metric
	if a.Op == Check {
		m = append(m, metric{outcome(a), 1})
	}
	if d := a.Decision; d != nil {
		m = append(m, metric{"Requests", int64(d.Requests)})
		if d.Outage != nil {
			m = append(m, metric{"Degraded", 1})
		}
		if d.Requests == 0 && d.Outage == nil && d.Limit != 0 { // a place given before takes no request either
			m = append(m, metric{"CacheRefusals", 1})
		}
	}
	return m
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

// measure writes figures in CloudWatch's embedded metric format: one line, the
// dimensions as members of its root.
func (g *Guard) measure(activity string, metrics []metric) {
	if g.Metrics == nil || len(metrics) == 0 {
		return
	}
	o := newObject()
	o.string("Guard", g.Rules.Name)
	o.string("Activity", activity)
	definitions := make([][]byte, len(metrics))
	for i, m := range metrics {
		o.int(m.name, m.count)
		d := newObject()
		d.string("Name", m.name)
		d.string("Unit", "Count")
		definitions[i] = d.end()
	}
	directive := newObject()
	directive.string("Namespace", g.Namespace)
	directive.rawArray("Dimensions", []byte(`["Guard","Activity"]`))
	directive.rawArray("Metrics", definitions...)
	aws := newObject()
	aws.int("Timestamp", g.Limiter.Clock().UnixMilli())
	aws.rawArray("CloudWatchMetrics", directive.end())
	o.raw("_aws", aws.end())
	_, _ = g.Metrics.Write(append(o.end(), '\n')) // a metric that is lost is no reason to refuse
}
