package guard

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/cric-talk/guards/internal/input"
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
		g.logRefusal(ctx, a)
	}
	g.measure(a.Activity, measures(a))
}

func (g *Guard) logRefusal(ctx context.Context, a Answer) {
	left, ok := g.refusals.next(g.Limiter.Clock().Unix())
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
	g.Log.LogAttrs(ctx, slog.LevelInfo, "refused", attrs...)
}

// refusalLines is how many refusals an instance logs in a second: enough to see
// who and what, while a flood of them must not cost more than the flood itself.
const refusalLines = 10

// A sample lets the first few of each second through, and counts the others.
type sample struct {
	mu      sync.Mutex
	second  int64
	through int64
	left    int64 // out, since one got through
}

// next says whether this one gets through, and how many before it did not.
func (s *sample) next(second int64) (left int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if second != s.second {
		s.second, s.through = second, 0
	}
	if s.through == refusalLines {
		s.left++
		return 0, false
	}
	s.through++
	left, s.left = s.left, 0
	return left, true
}

// unavailable is the error of a decision that nobody made, logged with its
// cause.
func (g *Guard) unavailable(ctx context.Context, r Request, d ratelimit.Decision, err error) error {
	g.logOutage(ctx, r, err)
	g.measure(r.Activity, []metric{{"Degraded", 1}, {"Requests", int64(d.Requests)}})
	return input.NewUnavailable(err)
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
	e, ok := errors.AsType[*input.ValidationError](err)
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
		if a.Op == Check && outcome(a) == "Allowed" && d.Limit != 0 && d.Used >= d.Limit-d.Limit/5 { // 80 % of it is used
			m = append(m, metric{"NearLimit", 1})
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
