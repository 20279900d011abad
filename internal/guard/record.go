package guard

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/metrics"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// record writes a line of log for a refusal or an outage, and adds every
// decision to the metrics.
func (h *Handler) record(ctx context.Context, a Answer) {
	if a.Decision != nil && a.Decision.Outage != nil {
		h.logOutage(ctx, a.Request, a.Decision.Outage)
	}
	if a.Decision != nil && a.short() && a.Op == guards.Check && !a.blocked() {
		h.logRefusal(ctx, a)
	}
	h.measure(a.Activity, figures(a))
	for _, name := range h.refusing(a) {
		h.measure(a.Activity, []metrics.Value{{Name: "RefusedBy", Count: 1}}, metrics.Dimension{Name: "LimitedBy", Value: name})
	}
	if a.Op == guards.Check && h.strangeTier(a.Tier) {
		h.measure(a.Activity, []metrics.Value{{Name: "UnknownTier", Count: 1}})
		warnings, ok := h.strange.Load(a.Activity)
		if !ok {
			warnings, _ = h.strange.LoadOrStore(a.Activity, new(sample))
		}
		if _, ok := warnings.(*sample).next(h.Limiter.Clock().Unix()/60, 1); ok {
			h.log().LogAttrs(ctx, slog.LevelWarn, "unknown tier", slog.String("activity", a.Activity)) // its name may be anything
		}
	}
	h.logDecision(ctx, a.Request, a.Reason, a.Decision)
}

// strangeTier reports whether no activity of any guard has the tier.
func (h *Handler) strangeTier(tier string) bool {
	return tier != "" && h.Tiers != nil && !slices.Contains(h.Tiers, tier) && !h.Live.Limits().HasTier(tier)
}

var discard = slog.New(slog.DiscardHandler)

// log returns the handler's log, or one that drops every line.
func (h *Handler) log() *slog.Logger { return cmp.Or(h.Log, discard) }

// logDecision logs a decision at level DEBUG, which shows why the guard decided
// as it did. D is nil if nothing had to be decided.
func (h *Handler) logDecision(ctx context.Context, r Request, reason ratelimit.Reason, d *ratelimit.Decision) {
	if !h.log().Enabled(ctx, slog.LevelDebug) {
		return
	}
	attrs := []slog.Attr{
		slog.String("activity", r.Activity), slog.String("user", mask(r.UserID)),
		slog.String("op", string(r.Op)), slog.String("reason", string(reason)),
	}
	if d != nil {
		attrs = append(attrs, slog.Int("requests", d.Requests), slog.Int64("limit", d.Limit),
			slog.Int64("activityCount", d.Used), slog.Int64("waitTime", d.Wait.Milliseconds()))
	}
	h.log().LogAttrs(ctx, slog.LevelDebug, "decision", attrs...)
}

// refusalLines is how many refusals an instance logs in one second. More lines
// would make a flood of refusals expensive.
const refusalLines = 10

// logRefusal logs a refusal, unless this second already has enough lines.
func (h *Handler) logRefusal(ctx context.Context, a Answer) {
	if !h.log().Enabled(ctx, slog.LevelInfo) {
		return
	}
	notLogged, ok := h.refusals.next(h.Limiter.Clock().Unix(), refusalLines)
	if !ok {
		return
	}
	d := a.Decision
	attrs := []slog.Attr{
		slog.String("activity", a.Activity), slog.String("user", mask(a.UserID)), slog.String("reason", string(a.Reason)),
		slog.Int64("limit", d.Limit), slog.Int64("activityCount", d.Used), slog.Int64("waitTime", d.Wait.Milliseconds()),
	}
	if d.LimitedBy != "" {
		attrs = append(attrs, slog.String("limitedBy", d.LimitedBy))
	}
	if notLogged > 0 {
		attrs = append(attrs, slog.Int64("notLogged", notLogged))
	}
	h.log().LogAttrs(ctx, slog.LevelInfo, "refused", attrs...)
}

// A sample lets the first events of each period pass and counts the others. The zero sample is
// ready to use.
type sample struct {
	mu     sync.Mutex
	period int64
	passed int64 // events that passed in this period
	held   int64 // events that did not pass since the last one that did
}

// next reports whether an event passes: at most limit do in a period. If it does, held is how many
// events were held back since the last one that passed.
func (s *sample) next(period, limit int64) (held int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if period != s.period {
		s.period, s.passed = period, 0
	}
	if s.passed == limit {
		s.held++
		return 0, false
	}
	s.passed++
	held, s.held = s.held, 0
	return held, true
}

// unavailable logs that there is no decision, and returns the caller's error.
func (h *Handler) unavailable(ctx context.Context, r Request, d ratelimit.Decision, err error) error {
	h.logOutage(ctx, r, err)
	h.measure(r.Activity, []metrics.Value{{Name: degraded, Count: 1}, {Name: "Requests", Count: int64(d.Requests)}})
	h.logDecision(ctx, r, ratelimit.Unavailable, &d)
	return input.NewUnavailable(err)
}

// logOutage logs why the table did not decide. For an unreadable item it names
// the attribute, so that somebody can repair the item. It never names the user.
func (h *Handler) logOutage(ctx context.Context, r Request, cause error) {
	if e, ok := errors.AsType[*ratelimit.StoreError](cause); ok && e.Failure == ratelimit.Unreadable {
		h.log().LogAttrs(ctx, slog.LevelError, "item unreadable",
			slog.String("activity", r.Activity), slog.String("attribute", e.Attr), slog.String("op", string(r.Op)))
		return
	}
	h.log().LogAttrs(ctx, slog.LevelWarn, "table unavailable",
		slog.String("activity", r.Activity), slog.String("op", string(r.Op)), slog.Any("error", cause))
}

// logInvalid logs the name of the field at fault, never its value. Of limit.minute it logs only
// limit, because a caller can give anything as the name of a member.
func (h *Handler) logInvalid(ctx context.Context, err error) {
	if e, ok := errors.AsType[*input.ValidationError](err); ok {
		field, _, _ := strings.Cut(e.Field, ".")
		h.log().LogAttrs(ctx, slog.LevelWarn, "invalid request", slog.String("field", field))
	}
}

// mask returns what a log may show of a user's id: the last four characters, or
// nothing if the id has fewer than eight.
func mask(userID string) string {
	if len(userID) < 8 {
		return "***"
	}
	return "***" + userID[len(userID)-4:]
}

// degraded is the metric of a decision without the table. An alarm counts these decisions
// by the lines that logOutage writes, because it must work without metrics, too.
const degraded = "Degraded"

// measure adds values to the metrics. It writes them at once if the table did
// not decide, so that no alarm comes late.
func (h *Handler) measure(activity string, values []metrics.Value, more ...metrics.Dimension) {
	dimensions := []metrics.Dimension{{Name: "Guard", Value: h.Guard.Name}}
	if !h.MeasureGuard {
		dimensions = append(dimensions, metrics.Dimension{Name: "Activity", Value: activity})
	}
	h.Metrics.Add(h.Limiter.Clock(), append(dimensions, more...), values)
	if slices.ContainsFunc(values, func(v metrics.Value) bool { return v.Name == degraded }) {
		h.Metrics.Flush()
	}
}

// figures returns a decision's metrics.
func figures(a Answer) []metrics.Value {
	values := make([]metrics.Value, 0, 4)
	count := func(name string, n int) {
		if n > 0 {
			values = append(values, metrics.Value{Name: name, Count: int64(n)})
		}
	}
	mark := func(name string, holds bool) {
		if holds {
			count(name, 1)
		}
	}
	check, d := a.Op == guards.Check, a.Decision
	mark(outcome(a), check)
	if d == nil || a.blocked() { // decided without the limiter
		return values
	}
	values = append(values, metrics.Value{Name: "Requests", Count: int64(d.Requests)}) // also none
	mark(degraded, d.Outage != nil)
	mark("NearLimit", check && outcome(a) == "Allowed" && d.Limit != 0 && d.Used >= d.Limit-d.Limit/5) // at least 80 % are used
	count("Crossed80", crossed(d, 80))
	count("Crossed100", crossed(d, 100))
	mark("Expired", d.Reason == ratelimit.Expired) // also in shadow mode
	mark("Leased", d.Leased)
	mark("Visits", d.Acquired)
	mark("CacheRefusals", d.Requests == 0 && d.Outage == nil && d.Limit != 0 && !d.Allowed) // if Limit is 0, a place was presented
	return values
}

// crossed returns the number of d's limits whose count the check raised to this share.
func crossed(d *ratelimit.Decision, percent int64) (limits int) {
	for _, l := range d.Limits() {
		if l.Crossed == percent {
			limits++
		}
	}
	return limits
}

// refusing returns whose limits refuse a check that has subjects, or would refuse it in
// shadow mode: the names of subjects, and the activity's name for the user. Metrics of
// the guard have no such names.
func (h *Handler) refusing(a Answer) (names []string) {
	if h.MeasureGuard || len(a.Subjects) == 0 || a.Decision == nil || a.Op != guards.Check || !a.short() {
		return nil
	}
	each := a.Decision.Each
	if a.tooLow() { // such a refusal has no figures
		each = []policy.Reading{{Name: a.Decision.LimitedBy}}
	}
	for _, l := range each {
		name, _, _ := strings.Cut(l.Name, ".")
		if _, subject := a.Subjects[name]; !subject {
			name = a.Activity
		}
		if (l.Wait > 0 || l.Limit < a.Count) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// outcome returns the name of the metric that counts a check.
func outcome(a Answer) string {
	switch {
	case a.blocked():
		return "Blocked"
	case a.Reason == ratelimit.Bypassed:
		return "Bypassed"
	case a.Reason == ratelimit.Shadow:
		return "Shadowed"
	case !a.Allowed:
		return "Refused"
	}
	return "Allowed"
}
