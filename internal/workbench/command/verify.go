package command

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/cleanup"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

type verifyCommand struct {
	Activity       string `arg:"" help:"The activity to verify: see guards limits."`
	Callers        int    `default:"50" placeholder:"N" help:"How many callers ask at once (${default})."`
	LambdaEndpoint string `aliases:"endpoint-url" placeholder:"URL" help:"Ask the guard through Lambda's Invoke API at this address, such as http://127.0.0.1:3001 for guards serve."`
	Function       string `placeholder:"NAME" help:"The deployed guard's name, if it is not the one that guards limits shows."`
	Invoke         bool   `help:"Ask the deployed guard through AWS's own Invoke API."`
	JSON           bool   `name:"json" help:"Print one JSON document."`
	storeFlags

	table cleanup.Table // with the items; asker sets it, unless a function has them
	live  *live.Limits  // what operators changed; asker sets it, unless a function follows it

	note func(string) // tells a person; nil: nobody
}

func (verifyCommand) Help() string {
	return `Many callers ask at once for one user. The command makes up a user, and clears
that user's count afterwards. A reservoir's places can't be given back; they expire.
If the activity is in a group, callers ask for all of its activities at once, and each
limit with a name must be used up exactly. With --function dev-{guard}, the names of the
group's other guards get the same prefix.
If the activity has subjects, such as a room, several users ask in the same subjects, for
this activity alone.
Exactly the lowest limit of a subject must get through, and each item must count what was
allowed. A guard clears users only, so with --invoke the counts of subjects stay until
they expire.
Of a prepaid limit, at most the limit must get through and at least 100, because instances
can hold the rest in leases. Its item must count no less than what was allowed. Through a function, a live limit counts as prepaid only if the
code's limit is.
The exit status is 1 unless exactly that was allowed. Examples:
  guards verify {activity}
  guards verify {activity} --store dynamodb --callers 100
  guards verify {activity} --lambda-endpoint http://127.0.0.1:3001
  guards verify {activity} --invoke --function dev-{guard}`
}

// Run returns errRefused unless exactly the limit got through, or of a prepaid limit what it promises.
func (c *verifyCommand) Run(ctx context.Context, con session) error {
	g, activity, err := con.find(c.Activity)
	if err != nil {
		return err
	}
	if activity.Unlimited {
		return fmt.Errorf("%s is unlimited: there is nothing to verify", c.Activity)
	}
	if c.Callers < 1 || c.Callers > 10_000 {
		return input.Invalid("--callers", fmt.Sprint(c.Callers), "1 to 10000")
	}
	group := countedIn(con.guards, itemOf(activity))
	if len(activity.Subjects) > 0 {
		group = []limits.Activity{activity}
	}
	group = slices.DeleteFunc(group, func(a limits.Activity) bool { return a.Name != activity.Name && len(a.Subjects) > 0 })
	if len(group) > 1 && queues(group) {
		return fmt.Errorf("%s can't be verified: its group gives places in later windows, which can't be given back", c.Activity)
	}
	g.Activities = group // the embedded store is asked about all of them at once
	ask, err := c.asker(ctx, con, g)
	if err != nil {
		return err
	}
	c.note = con.note
	var v raceResult
	switch {
	case len(activity.Subjects) > 0:
		v, err = c.verifySubjects(ctx, con, ask, activity)
	case len(group) > 1:
		v, err = c.verifyGroup(ctx, con, ask, group)
	default:
		v, err = c.verify(ctx, con, ask, termsOf(c.live, activity, "verify", "", con.now()).Limit)
	}
	if err != nil {
		return err
	}
	return v.print(con, c.JSON)
}

// verify sends the requests of a new user and removes the user afterwards. It
// compares with the limit in force, which can be a live one.
func (c *verifyCommand) verify(ctx context.Context, con session, ask asker, p policy.Policy) (raceResult, error) {
	user := guard.Request{UserID: "verify-" + rand.Text(), Activity: c.Activity, Op: guard.Status}
	before, err := ask(ctx, user)
	switch {
	case err != nil:
		return raceResult{}, err
	case before.Limit == 0:
		return raceResult{}, fmt.Errorf("%s is not limited now: the guard answers %s", c.Activity, before.Reason)
	}
	window := p.Quota().Window
	if err := wholeWindow(ctx, con, time.UnixMilli(before.ResetAt), min(10*time.Second, window/2)); err != nil {
		return raceResult{}, err
	}
	user.Op = guard.Check
	v, err := c.race(ctx, ask, user, int(before.Limit))
	if p.Prepaid() {
		v.Exact, v.Prepaid = v.ofLeases(before.Limit), true
	}
	if ctx.Err() != nil {
		con.note(fmt.Sprintf("stopped after %d of %s", v.answered, several(int64(v.Asked), "request")))
	}
	if p.Queues() { // its places can't be given back, and pass by themselves
		return v, err
	}
	v.left = forget(ctx, con, ask, user)
	return v, err
}

// minOfPrepaid is how many actions of a new user get through at least: a prepaid key begins as
// any other, and leases begin when its item shows this many ids.
const minOfPrepaid = 100

// ofLeases reports whether what was allowed keeps the promise of a prepaid limit: what instances
// hold is refused, and nothing above the limit is allowed.
func (v raceResult) ofLeases(limit int64) bool {
	allowed := int64(v.Allowed)
	return min(minOfPrepaid, limit) <= allowed && allowed <= limit
}

// counts reports whether an item that counts this many actions counts what was allowed. Of a
// prepaid limit it can count more, which instances hold.
func counts(counted, allowed int64, prepaid bool) bool {
	return counted == allowed || prepaid && counted > allowed
}

// forget removes the counts of the test user, also if ctx has ended.
func forget(ctx context.Context, con session, ask asker, user guard.Request) error {
	user.Op = guard.Reset
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_, err := ask(last, user)
	if err != nil {
		con.note("the counts of the test user could not be removed; they expire by themselves")
	}
	return err
}

// wholeWindow waits for the end of the current window if that is less than
// enough time away.
func wholeWindow(ctx context.Context, con session, end time.Time, enough time.Duration) error {
	if left := end.Sub(con.now()); 0 < left && left < enough {
		con.note("waiting " + wait(left) + " for the next window")
		select {
		case <-time.After(left):
		case <-ctx.Done():
			return errInterrupted
		}
	}
	return nil
}

// These errors mean that the callers did not all ask for one and the same limit.
var (
	// The requests were spread over two windows, and each window has the whole limit.
	errWindowEnded = errors.New("the window ended before all callers had asked: try again, or with fewer --callers")

	// The first actions of a bucket, of a log or of several limits expired during the
	// race, so more than the limit could get through.
	errExpired = errors.New("counted actions expired before all callers had asked: try again, or with fewer --callers")

	errLimitChanged = errors.New("the limit changed while the callers asked: an instance follows a live limit within 30 s of use, so try again in 30 s")
)

// A raceResult holds what the command prints.
type raceResult struct {
	Activity string  `json:"activity"`       // or a group
	Limit    int64   `json:"limit,omitzero"` // a group has Limits
	Asked    int     `json:"asked"`
	Allowed  int     `json:"allowed"`
	Exact    bool    `json:"exact"` // of a prepaid limit: it kept its own promise
	Prepaid  bool    `json:"prepaid,omitzero"`
	TookMs   float64 `json:"tookMs"`
	P50Ms    float64 `json:"p50Ms"`
	P99Ms    float64 `json:"p99Ms"`

	Activities []portion   `json:"activities,omitempty"` // of a group
	Limits     []usedLimit `json:"limits,omitempty"`     // of a group, or of subjects
	Users      int         `json:"users,omitzero"`       // who shared the subjects

	answered int   // requests, if the command was stopped
	left     error // why the user's counts could not be removed; nil if they were
}

// print writes the result. It returns errRefused unless the result is exact, and otherwise the error of the clean-up.
func (v raceResult) print(con session, asJSON bool) error {
	var err error
	if asJSON {
		err = con.printLine(v)
	} else {
		result := v.verdict(con, "exactly the limit", fmt.Sprintf("at most the limit of %d, as a prepaid one promises", v.Limit),
			fmt.Sprintf("not the limit of %d", v.Limit))
		switch {
		case v.Users > 0:
			result = v.ofSubjects(con)
		case v.Limits != nil:
			result = v.ofGroup(con)
		}
		_, err = fmt.Fprintf(con.out, "%s: %d of %d allowed, %s, in %.0f ms (p50 %.1f ms, p99 %.1f ms)\n",
			v.Activity, v.Allowed, v.Asked, result, v.TookMs, v.P50Ms, v.P99Ms)
	}
	if err == nil && !v.Exact {
		return errRefused
	}
	return cmp.Or(err, v.left)
}

// verdict returns which sentence is true: exactly what the limits promise was allowed, the
// promise of prepaid limits was kept, or neither.
func (v raceResult) verdict(con session, exactly, prepaid, wrong string) string {
	switch {
	case !v.Exact:
		return con.paint(red, wrong)
	case v.Prepaid:
		return con.paint(green, prepaid)
	default:
		return con.paint(green, exactly)
	}
}

// An outcome is what one caller got for one request.
type outcome struct {
	asked
	request guard.Request
	took    time.Duration
	err     error
}

// race sends as many requests as the limit allows, and one more for each caller.
func (c *verifyCommand) race(ctx context.Context, ask asker, user guard.Request, limit int) (raceResult, error) {
	v, outcomes, err := c.send(ctx, ask, slices.Repeat([]guard.Request{user}, limit+c.Callers))
	v.Limit = int64(limit)
	if err != nil {
		return v, err
	}
	windows := make(map[int64]bool) // each has the whole limit
	for _, o := range outcomes {
		switch {
		case o.Limit == 0 && !o.Allowed: // a refusal as an error
			continue
		case o.Limit != v.Limit:
			return v, errLimitChanged
		}
		windows[o.WindowKey] = true
	}
	switch {
	case len(windows) > 1:
		return v, errWindowEnded
	case v.Allowed > limit && windows[0] && expired(outcomes):
		return v, errExpired
	}
	v.Exact = v.Allowed == limit
	return v, nil
}

// manyRequests is from how many requests on verify says first that it sends them, because
// they take long, and a deployed guard and its table cost money.
const manyRequests = 1000

// send sends requests. The callers run at the same time. Each sends one request after
// the other.
func (c *verifyCommand) send(ctx context.Context, ask asker, requests []guard.Request) (raceResult, []outcome, error) {
	v := raceResult{Activity: c.Activity, Asked: len(requests)}
	if v.Asked >= manyRequests && c.note != nil {
		c.note("sending " + several(int64(v.Asked), "request") + "; Ctrl-C stops")
	}
	outcomes := make([]outcome, v.Asked)
	next := make(chan *outcome, v.Asked)
	for i := range outcomes {
		outcomes[i].request = requests[i]
		next <- &outcomes[i]
	}
	close(next)
	began := time.Now()
	var wg sync.WaitGroup
	var answered atomic.Int64 // requests
	for range c.Callers {
		wg.Go(func() {
			for o := range next {
				sent := time.Now()
				o.asked, o.err = ask(ctx, o.request)
				o.took = time.Since(sent)
				if o.err != nil {
					return
				}
				answered.Add(1)
			}
		})
	}
	wg.Wait()
	v.TookMs = milliseconds(time.Since(began))
	took := make([]float64, v.Asked)
	for i, o := range outcomes {
		if o.err != nil {
			v.answered = int(answered.Load())
			return v, outcomes, o.err
		}
		if o.Allowed {
			v.Allowed++
		}
		took[i] = milliseconds(o.took)
		if o.Reason == guards.Shadow {
			return v, outcomes, fmt.Errorf("%s is in shadow mode, in which the guard refuses nobody: set the mode to enforce, and try again", o.request.Activity)
		}
	}
	slices.Sort(took)
	v.P50Ms, v.P99Ms = took[len(took)/2], took[len(took)*99/100]
	return v, outcomes, nil
}

// expired reports whether an action was counted after an earlier one had expired.
// For example, a bucket 1/5s that counts at 12:00:00 is full again at 12:00:05,
// and can then count the next action. Both times are the guard's.
func expired(outcomes []outcome) bool {
	first, last := int64(math.MaxInt64), int64(0) // the first expiry, the last count
	for _, o := range outcomes {
		if o.At != 0 {
			first, last = min(first, o.ResetAt), max(last, o.At)
		}
	}
	return last >= first
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// An asker sends a request to a guard and returns its answer.
type asker func(ctx context.Context, r guard.Request) (asked, error)

// An asked is an answer. Its Limit is 0 if it has no figures, because a refusal is an error or
// no request is limited, and its At is 0 if the guard does not know when the action was counted.
type asked = guards.Decision

// asker returns an asker for the guard that the flags choose.
func (c *verifyCommand) asker(ctx context.Context, con session, g limits.Guard) (asker, error) {
	if c.Invoke || c.LambdaEndpoint != "" {
		return c.invoker(ctx, con, g)
	}
	if c.Function != "" {
		return nil, errors.New("--function goes with --invoke or --lambda-endpoint")
	}
	store, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	c.table = store.table
	changed, err := con.follow(ctx, store.live)
	if err != nil {
		return nil, err
	}
	c.live = changed.Limits()
	// A person waits for the first request, a status. The others come all at
	// once, so they can be slow and throttled. If one fails, it is sent again, as
	// in the deployed functions.
	first := &guard.Handler{Guard: g, Limiter: store.limiter(con), Live: changed}
	many := &guard.Handler{Guard: g, Limiter: &ratelimit.Limiter{Store: store.Store, Now: con.now, Timeout: 30 * time.Second}, Live: changed}
	return func(ctx context.Context, r guard.Request) (asked, error) {
		ask := many.Decide
		if r.Op == guard.Status {
			ask = func(ctx context.Context, r guard.Request) (guard.Answer, error) { return decide(ctx, first, r) }
		}
		a, err := ask(ctx, r)
		if err != nil {
			return asked{}, err
		}
		return a.Public(), nil
	}, nil
}
