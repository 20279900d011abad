package client

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/cric-talk/guards"
)

// Guards asks the guards. It is safe for concurrent use; an app needs one.
type Guards struct {
	options  Options
	client   Invoker
	agent    *agent          // nil: functions are asked
	sdk      *lambda.Options // of client; nil if it is not the SDK's own
	sender   sender          // of sdk
	pooled   bool            // whether requests can wait for a connection
	breakers breakers
	hadKeys  atomic.Bool // whether the client ever had credentials
	slots    sync.Map    // the ids of the decisions of open slots
	reached  atomic.Bool // whether Lambda has ever answered; true if the client is not the SDK's own

	mu     sync.Mutex
	warned time.Time // when warn was last called for an outage
}

// New returns a client. It sends no requests to the guards. Its error is an
// ErrConfiguration: an option is wrong, or no region is set.
func New(ctx context.Context, options Options) (*Guards, error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	g := &Guards{options: options, client: options.Client}
	if options.Local != nil {
		return g, nil
	}
	if options.Agent != "" {
		var err error
		g.agent, err = newAgent(&options)
		g.reached.Store(true) // what a VPC lacks is no question here
		return g, err
	}
	if g.client == nil {
		cfg, err := config.LoadDefaultConfig(ctx)
		if err != nil {
			return nil, &Error{Kind: ErrConfiguration, Message: "The AWS configuration can't be read: " + err.Error(), Cause: err}
		}
		g.client = lambda.NewFromConfig(cfg)
	}
	if client, ok := g.client.(interface{ Options() lambda.Options }); ok {
		o := client.Options()
		g.sdk, g.sender, g.pooled = &o, newSender(o.HTTPClient, &g.reached), hasQueue(o.HTTPClient)
	}
	g.reached.Store(g.sdk == nil)
	switch {
	case g.sdk != nil && g.sdk.Region == "":
		return nil, wrongOption("No AWS region is set. Set AWS_REGION, or pass a Lambda client that has one.")
	case g.sdk == nil && len(options.URLs) > 0:
		return nil, wrongOption("URLs need a Client of type *lambda.Client, whose credentials sign the requests")
	}
	return g, nil
}

// unknownRegion stands in messages for the region of a Client that is not the
// SDK's own.
const unknownRegion = "the client's region"

// region returns the region for messages and signatures.
func (g *Guards) region() string {
	if g.sdk == nil {
		return unknownRegion
	}
	return g.sdk.Region
}

// Check counts the actions of a request and decides whether the user may go on.
// In an outage, OnOutage of the request or of the options decides. Activity is a name such as
// "create_post", or "GUARD/ACTIVITY" for one that is not in Options.Activities.
// The error is an ErrConfiguration, an ErrValidation, an ErrAnswer or the error
// of ctx. The guard may have counted a check even if ctx ended it.
func (g *Guards) Check(ctx context.Context, activity string, r Request) (Decision, error) {
	c, err := g.ask(guards.Check, activity, r)
	if err != nil {
		return Decision{}, err
	}
	began := time.Now()
	d, err := g.do(ctx, c)
	if r.OnOutage == Deny && err == nil && d.Allowed && d.Reason == Unavailable {
		g.giveBack(ctx, d)
		err = c.fromMemory()
	}
	if outage, ok := errors.AsType[*Error](err); ok && isOutage(err) {
		g.warn(outage)
		d, err = c.withoutGuard(outage, cmp.Or(r.OnOutage, g.options.OnOutage)), nil
	}
	g.observe(c, d, err, began)
	return d, err
}

// withoutGuard returns the decision in an outage.
func (c *call) withoutGuard(outage *Error, onOutage OnOutage) Decision {
	d := c.decision(Unavailable)
	d.Outage = outage
	if onOutage == Deny {
		d.Message = "Please try again later."
		return d
	}
	d.Allowed, d.Granted = true, max(1, c.event.Count)
	return d
}

// neverReached is what a warning adds to an outage if nothing has ever answered this client.
const neverReached = ". Lambda has not answered this client since it started: check the network. " +
	"In a VPC, the app needs a NAT gateway or an endpoint for Lambda."

// warn reports an outage, at most once a second.
func (g *Guards) warn(outage error) {
	if e, ok := errors.AsType[*Error](outage); ok && isSilence(e) && !g.reached.Load() {
		first := *e
		first.Message += neverReached
		outage = &first
	}
	now := time.Now()
	g.mu.Lock()
	recently := now.Sub(g.warned) < time.Second
	if !recently {
		g.warned = now
	}
	g.mu.Unlock()
	if !recently {
		g.options.Warn(outage)
	}
}

// Status decides as Check would, but counts nothing.
func (g *Guards) Status(ctx context.Context, activity string, r Request) (Decision, error) {
	return g.send(ctx, guards.Status, activity, r)
}

// Release gives back what a check counted. R needs the UserID, At and RequestID
// of the check's answer, and the Subjects, Tier and Limit of the check. Count is how
// many actions to give back. A release that is repeated or too late changes nothing.
func (g *Guards) Release(ctx context.Context, activity string, r Request) (Decision, error) {
	return g.send(ctx, guards.Release, activity, r)
}

// ReleaseDecision gives back everything that a check granted. The decision must
// have a receipt, or the error is an ErrValidation. A duplicate, bypassed or
// unlimited one has none, nor one that was made in an outage. The decision may
// have been stored as JSON.
func (g *Guards) ReleaseDecision(ctx context.Context, d Decision) (Decision, error) {
	if !d.releasable() {
		return Decision{}, g.target(d.Guard).validation("the decision has no receipt, so there is nothing to give back")
	}
	return g.Release(ctx, d.path(), d.receipt(d.Granted))
}

// Renew keeps a slot of an activity whose limit is a log, such as log 3/10m. R needs
// the UserID, At and RequestID of the check's answer, and the Count, Subjects, Tier and
// Limit of the check. The answer has a new At, and the slot counts until HeldUntil. If it does not
// count any more, the answer is not allowed and its reason is Expired. [Guards.Slot]
// renews by itself.
func (g *Guards) Renew(ctx context.Context, activity string, r Request) (Decision, error) {
	return g.send(ctx, guards.Renew, activity, r)
}

// Reset clears what is counted for the user and activity, and nothing of its
// subjects. It is sent once, because a repeat could delete what was counted since.
// After an ErrOutage, look at Status before you reset again.
func (g *Guards) Reset(ctx context.Context, activity string, r Request) (Decision, error) {
	return g.send(ctx, guards.Reset, activity, r)
}

func (g *Guards) send(ctx context.Context, op guards.Op, activity string, r Request) (Decision, error) {
	c, err := g.ask(op, activity, r)
	if err != nil {
		return Decision{}, err
	}
	return g.observed(ctx, c)
}

// Guarded checks, and calls save if the user may go on. If the user is refused,
// the error is an ErrLimited with the decision, and save is not called. In an
// outage, its cause is the ErrOutage. If save returns an error or panics, Guarded
// gives back what was counted, and returns save's own error. Each release that
// fails goes to Options.Warn. A place of a reservoir can't be given back, so there
// each of these releases fails.
func (g *Guards) Guarded(ctx context.Context, activity string, r Request, save func(Decision) error) error {
	d, err := g.Check(ctx, activity, r)
	if err != nil {
		return err
	}
	if !d.Allowed {
		return g.target(d.Guard).limited(d)
	}
	saved := false
	defer func() {
		if !saved {
			g.giveBack(ctx, d)
		}
	}()
	err = save(d)
	saved = err == nil
	return err
}

// giveBack gives back what a check counted, if it counted something. A failure goes to
// Options.Warn. The user's request may be over already, and the release is still sent.
func (g *Guards) giveBack(ctx context.Context, d Decision) {
	if !d.releasable() {
		return
	}
	if _, err := g.ReleaseDecision(context.WithoutCancel(ctx), d); err != nil {
		g.options.Warn(err)
	}
}

// Ready asks for the status of a user named "ready", once for each guard that
// decides one of the activities, to find mistakes when the app starts. An activity
// that needs subjects has to be in the list; theirs is "ready", too. Without
// names, it asks every guard of Options.Activities. If there is no list either, the
// error is an ErrConfiguration. Otherwise, the error joins the errors of Status.
func (g *Guards) Ready(ctx context.Context, names ...string) error {
	if len(names) == 0 {
		for _, a := range g.options.Activities {
			names = append(names, a.Name)
		}
	}
	switch {
	case len(names) == 0 && g.agent != nil:
		return g.agent.ready(ctx, &call{target: g.target(""), left: g.options.Timeout})
	case len(names) == 0:
		return wrongOption("no guard is known: %s", passList)
	}
	var asked []string
	var calls []*call
	for _, name := range names {
		a, _ := g.Find(name)
		c, err := g.ask(guards.Status, name, Request{UserID: "ready", Subjects: a.anySubjects("ready")})
		if err != nil {
			return err
		}
		if c.name() == "" || !slices.Contains(asked, c.name()) { // only the agent knows the guard
			asked, calls = append(asked, c.name()), append(calls, c)
		}
	}
	failures := make([]error, len(calls))
	var wg sync.WaitGroup
	for i, c := range calls {
		wg.Go(func() { _, failures[i] = g.observed(ctx, c) })
	}
	wg.Wait()
	var different []error
	for _, err := range failures {
		if err != nil && !slices.ContainsFunc(different, func(e error) bool { return e.Error() == err.Error() }) {
			different = append(different, err)
		}
	}
	if len(different) == 1 {
		return different[0]
	}
	return errors.Join(different...)
}
