package command

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/policy"
)

type verifyCommand struct {
	Activity       string `arg:"" help:"The activity to verify: see guards limits."`
	Callers        int    `default:"50" placeholder:"N" help:"How many callers ask at once (${default})."`
	LambdaEndpoint string `aliases:"endpoint-url" placeholder:"URL" help:"Ask the guard through Lambda's Invoke API at this address, such as http://127.0.0.1:3001 for guards serve."`
	Function       string `placeholder:"NAME" help:"The deployed guard's name, if it is not the one that guards limits shows."`
	Invoke         bool   `help:"Ask the deployed guard through AWS's own Invoke API."`
	JSON           bool   `name:"json" help:"Print one JSON document."`
	storeFlags
}

// Help returns the text below the command's flags.
func (verifyCommand) Help() string {
	return `Many callers ask at once for one user. The command makes up a user, and clears
that user's count afterwards. A reservoir's places can't be given back; they expire.
The exit status is 1 unless exactly the limit was allowed. Examples:
  guards verify create_post
  guards verify create_post --store dynamodb --callers 100
  guards verify create_post --lambda-endpoint http://127.0.0.1:3001
  guards verify create_post --invoke --function dev-posts-guard`
}

// Run sends the requests. It returns errRefused unless exactly the limit got
// through.
func (c *verifyCommand) Run(ctx context.Context, con console) error {
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
	ask, err := c.asker(ctx, con, g)
	if err != nil {
		return err
	}
	v, err := c.verify(ctx, con, ask, activity.Limit)
	if err != nil {
		return err
	}
	return v.print(con, c.JSON)
}

// verify sends the requests of a new user and removes the user afterwards. It
// compares with the limit in force, which can be a live one.
func (c *verifyCommand) verify(ctx context.Context, con console, ask asker, p policy.Policy) (verdict, error) {
	user := guard.Request{UserID: "verify-" + rand.Text(), Activity: c.Activity, Op: guard.Status}
	before, err := ask(ctx, user)
	switch {
	case err != nil:
		return verdict{}, err
	case before.Limit == 0:
		return verdict{}, fmt.Errorf("%s is not limited now: the guard answers %s", c.Activity, before.Reason)
	}
	window := p.Read(con.now().UnixMilli(), 0, nil).Window
	if err := wholeWindow(ctx, con, time.UnixMilli(before.ResetAt), min(10*time.Second, window/2)); err != nil {
		return verdict{}, err
	}
	user.Op = guard.Check
	v, err := c.race(ctx, ask, user, int(before.Limit))
	if ctx.Err() != nil {
		con.note(fmt.Sprintf("stopped after %d of %s", v.answered, several(int64(v.Asked), "request")))
	}
	if p.Queues() { // its places can't be given back, and pass by themselves
		return v, err
	}
	user.Op = guard.Reset
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_, v.left = ask(last, user)
	if v.left != nil {
		con.note("the counts of the test user could not be removed; they expire by themselves")
	}
	return v, err
}

// wholeWindow waits for the end of the current window if that is less than
// enough time away.
func wholeWindow(ctx context.Context, con console, end time.Time, enough time.Duration) error {
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

// errWindowEnded means that the requests were spread over two windows, and each
// window has the whole limit.
var errWindowEnded = errors.New("the window ended before all callers had asked: try again, or with fewer --callers")

// errExpired means that the first actions of a bucket, of a log or of several
// limits expired during the race, so more than the limit could get through.
var errExpired = errors.New("counted actions expired before all callers had asked: try again, or with fewer --callers")

// errLimitChanged means that the guard decided by several limits.
var errLimitChanged = errors.New("the limit changed while the callers asked: an instance follows a live limit within 30 s of use, so try again in 30 s")

// A verdict holds what the command prints.
type verdict struct {
	Activity string  `json:"activity"`
	Limit    int64   `json:"limit"`
	Asked    int     `json:"asked"`
	Allowed  int     `json:"allowed"`
	Exact    bool    `json:"exact"`
	TookMs   float64 `json:"tookMs"`
	P50Ms    float64 `json:"p50Ms"`
	P99Ms    float64 `json:"p99Ms"`

	answered int   // requests, if the command was stopped
	left     error // why the user's counts could not be removed; nil if they were
}

// print writes the verdict. It returns errRefused unless exactly the limit got
// through, and otherwise the error of the clean-up.
func (v verdict) print(con console, asJSON bool) error {
	var err error
	if asJSON {
		err = con.printLine(v)
	} else {
		result := con.paint(green, "exactly the limit")
		if !v.Exact {
			result = con.paint(red, fmt.Sprintf("not the limit of %d", v.Limit))
		}
		_, err = fmt.Fprintf(con.out, "%s: %d of %d allowed, %s, in %.0f ms (p50 %.1f ms, p99 %.1f ms)\n",
			v.Activity, v.Allowed, v.Asked, result, v.TookMs, v.P50Ms, v.P99Ms)
	}
	if err == nil && !v.Exact {
		return errRefused
	}
	return cmp.Or(err, v.left)
}
