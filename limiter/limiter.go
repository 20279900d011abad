// Package limiter decides in the app's own process what a guard's function decides on AWS:
// with the same table, live limits, memory, log and metrics. One decision is one request to
// DynamoDB, and no Lambda function runs.
//
//	l, err := limiter.New(ctx, limits.All, limiter.Options{})
//	...
//	defer l.Close(ctx)
//	d, err := l.Decide(ctx, guards.Request{UserID: userID, Activity: "create_post"})
//
// It is for an app in Go whose role may write to the table: the stack's output
// LimiterPolicyArn has these permissions. Such an app can write every count, but no limit,
// mode, grant or block. An app in another language, and one that must not write counts, asks
// the functions. Both ways count in the same items, so an app can move from one to the other
// while it runs.
//
// As Local of package client's Options, a Limiter has everything that the client offers, such
// as slots and middleware for net/http.
package limiter

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"
	_ "time/tzdata" // the zones' rules, for a machine that has none

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/metrics"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/wiring"
)

// Options configure a Limiter. A zero field has the value of a variable, or else the default
// of a guard's function. The variables are a function's variables with GUARDS_ before the
// name, such as GUARDS_MODE, because the plain names belong to the app.
type Options struct {
	Table  string      // the table in DynamoDB; GUARDS_TABLE_NAME, or else rateLimit
	Config *aws.Config // nil: the SDK's own configuration of this process

	Mode             string        // enforce, shadow or off; GUARDS_MODE
	OnOutage         string        // allow (memory decides) or deny (the error is ErrUnavailable); GUARDS_ON_OUTAGE
	DecisionTimeout  time.Duration // at most 5 s; GUARDS_DECISION_TIMEOUT
	BypassRoles      []string      // nil: GUARDS_BYPASS_ROLES; empty: nobody bypasses
	Metrics          string        // activity, guard or off; GUARDS_METRICS
	MetricsNamespace string        // in CloudWatch; GUARDS_METRICS_NAMESPACE, or else Guards

	// Log gets a line for refusals and failures, which name no user. The attribute service is
	// the guard's name. Nil means slog.Default.
	Log *slog.Logger

	// Output gets the metrics in CloudWatch's embedded metric format, which CloudWatch Logs
	// reads. Nil means standard output.
	Output io.Writer
}

// environment has the settings of a limiter.
const environment = wiring.App

// A Limiter decides the activities of all guards of a page. It is safe for concurrent use. An
// app needs one.
type Limiter struct {
	page     []guards.Guard
	handlers map[string]*guard.Handler // by activity
	clock    func() time.Time
	flush    func()
}

// New returns a limiter on a table in DynamoDB. It sends no requests. Its error names a
// setting that can't be read, or all mistakes of the page.
func New(ctx context.Context, page []guards.Guard, o Options) (*Limiter, error) {
	all, err := limits.Link(page)
	if err != nil {
		return nil, err
	}
	settings, err := o.settings()
	if err != nil {
		return nil, err
	}
	table, err := environment.Table()
	if o.Table != "" {
		table, err = wiring.TableName("Table", o.Table)
	}
	if err != nil {
		return nil, err
	}
	var cfg aws.Config
	if o.Config != nil {
		cfg = *o.Config
	} else if cfg, err = wiring.Configure(ctx); err != nil {
		return nil, err
	}
	if cfg.Region == "" {
		return nil, errors.New("no AWS region is set: set AWS_REGION, or pass a Config that has one")
	}
	log, output := o.Log, metrics.Writer{W: o.Output, Namespace: cmp.Or(o.MetricsNamespace, environment.Namespace())}
	if log == nil {
		log = slog.Default()
	}
	if output.W == nil {
		output.W = os.Stdout
	}
	return newLimiter(page, all, wiring.On(wiring.Open(cfg, table), all, settings, output, log), log), nil
}

// InMemory returns a limiter that counts in this process, for tests and for programs of one
// process. Now is its clock, which a test can move; nil means time.Now. Nothing is logged or
// measured, there are no live limits, and the variables are not read. The error has all
// mistakes of the page.
func InMemory(page []guards.Guard, now func() time.Time) (*Limiter, error) {
	all, err := limits.Link(page)
	if err != nil {
		return nil, err
	}
	settings := wiring.Settings{Mode: live.Enforce, BypassRoles: []string{"admin"}, Metrics: wiring.NoMetrics, ForApp: true}
	process := wiring.In(new(memstore.Store), all, settings)
	process.Limiter.Now = now
	return newLimiter(page, all, process, slog.New(slog.DiscardHandler)), nil
}

func newLimiter(page []guards.Guard, all limits.Guards, process *wiring.Process, log *slog.Logger) *Limiter {
	l := &Limiter{slices.Clone(page), map[string]*guard.Handler{}, process.Limiter.Clock, process.Flush}
	for _, g := range all {
		h := process.Handler(g, log.With("service", g.Name))
		for _, a := range g.Activities {
			l.handlers[a.Name] = h
		}
	}
	return l
}

// settings returns the settings of the environment, and of the options instead of these.
func (o *Options) settings() (wiring.Settings, error) {
	s, err := environment.Settings()
	if err != nil {
		return s, err
	}
	s.DecisionTimeout = cmp.Or(o.DecisionTimeout, s.DecisionTimeout)
	s.Mode, s.Metrics = cmp.Or(o.Mode, s.Mode), cmp.Or(wiring.Metrics(o.Metrics), s.Metrics)
	if o.BypassRoles != nil {
		s.BypassRoles = o.BypassRoles
	}
	if o.OnOutage != "" {
		s.DenyOutage = o.OnOutage == "deny"
	}
	return s, errors.Join(
		wiring.CheckChoice("Mode", cmp.Or(o.Mode, live.Modes[0]), live.Modes),
		wiring.CheckChoice("OnOutage", cmp.Or(o.OnOutage, wiring.OnOutages[0]), wiring.OnOutages),
		wiring.CheckChoice("Metrics", cmp.Or(o.Metrics, wiring.MetricsChoices[0]), wiring.MetricsChoices),
		wiring.CheckTimeout("DecisionTimeout", s.DecisionTimeout))
}

// Guards returns the guards of the page.
func (l *Limiter) Guards() []guards.Guard { return slices.Clone(l.page) }

// Clock returns the time by which the limiter decides.
func (l *Limiter) Clock() time.Time { return l.clock() }

// Window returns how long an action of an activity counts at most. It is 0 for an activity that
// is unknown, unlimited, or has several limits or subjects. It is also 0 for windows that
// differ in length: months, and days and weeks of a time zone.
func (l *Limiter) Window(activity string) time.Duration {
	if h, ok := l.handlers[activity]; ok {
		a, _ := h.Guard.Activity(activity)
		return a.Window()
	}
	return 0
}

// Decide answers a request as the function of the activity's guard does. A refusal is a
// decision. The error is a [guards.ErrValidation] if the request is wrong, and then nothing was
// counted. It is a [guards.ErrUnavailable] if the table did not answer and nothing else
// decided: with OnOutage deny, and for a release, a renewal and a reset.
//
// If ctx has ended already, the error is that of ctx. A decision that has begun goes on if ctx
// ends, for example because the user has left. That is no outage, and the decision must be able to
// give back what it has counted. It takes at most the DecisionTimeout.
func (l *Limiter) Decide(ctx context.Context, r guards.Request) (guards.Decision, error) {
	if err := ctx.Err(); err != nil {
		return guards.Decision{}, err
	}
	h, ok := l.handlers[r.Activity]
	if !ok {
		return guards.Decision{}, input.Invalid("activity", input.Show(r.Activity), "one that the page of limits names")
	}
	a, err := h.Decide(context.WithoutCancel(ctx), guard.Request(r))
	if err != nil {
		return guards.Decision{}, err
	}
	return a.Public(), nil
}

// Close writes the metrics that wait. Decisions that come later are counted, and their metrics
// can be lost.
func (l *Limiter) Close(context.Context) error {
	l.flush()
	return nil
}
