package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/ratelimit"
)

type verifyCommand struct {
	Activity    string `arg:"" help:"The activity to verify: see guards limits."`
	Callers     int    `default:"50" placeholder:"N" help:"How many ask at once (${default})."`
	EndpointURL string `placeholder:"URL" help:"Ask the guard through Lambda's Invoke API there, such as guards serve on http://127.0.0.1:3001."`
	Function    string `placeholder:"NAME" help:"The guard's name there, if it is not that of guards limits."`
	Invoke      bool   `help:"Ask the deployed guard through AWS's own Invoke API."`
	JSON        bool   `name:"json" help:"Print one JSON document."`
	storeFlags
}

// Help is the command's own help.
func (verifyCommand) Help() string {
	return `Many callers at once ask for one user, made for this and removed: exactly the
limit gets through, or the exit status is 1. Examples:
  guards verify create_post
  guards verify create_post --store dynamodb --callers 100
  guards verify create_post --endpoint-url http://127.0.0.1:3001
  guards verify create_post --invoke --function dev-posts-guard`
}

// An asker sends an event to a guard, and returns its answer.
type asker func(ctx context.Context, r guard.Request) (asked, error)

// asked is what a guard's answer says, as far as it matters here.
type asked struct {
	Allowed   bool
	Reason    string
	ResetAt   int64 // Unix milliseconds
	WindowKey int64
}

// A verdict is what the command prints.
type verdict struct {
	Activity string  `json:"activity"`
	Limit    int64   `json:"limit"`
	Asked    int     `json:"asked"`
	Allowed  int     `json:"allowed"`
	Exact    bool    `json:"exact"`
	TookMs   float64 `json:"tookMs"`
	P50Ms    float64 `json:"p50Ms"`
	P99Ms    float64 `json:"p99Ms"`
}

// Run asks, and ends with errRefused where not exactly the limit got through.
func (c *verifyCommand) Run(ctx context.Context, con console) error {
	rules, err := owner(c.Activity)
	if err != nil {
		return err
	}
	activity, _ := rules.Activity(c.Activity)
	if activity.Unlimited {
		return fmt.Errorf("%s is unlimited: there is nothing to verify", c.Activity)
	}
	if c.Callers < 1 {
		return input.Invalid("--callers", fmt.Sprint(c.Callers), "at least 1")
	}
	ask, err := c.asker(ctx, con, rules)
	if err != nil {
		return err
	}
	limit, window := activity.Limit.Quota()
	user := guard.Request{UserID: "verify-" + rand.Text(), Activity: c.Activity, Op: guard.Check}
	if err := c.wholeWindow(ctx, con, ask, user, min(10*time.Second, window/2)); err != nil {
		return err
	}
	v, err := c.race(ctx, ask, user, int(limit))
	if _, ok := activity.Limit.(ratelimit.Reservoir); !ok { // whose places pass by themselves
		user.Op = guard.Reset
		_, left := ask(context.WithoutCancel(ctx), user)
		err = cmp.Or(err, left)
	}
	if err != nil {
		return err
	}
	return v.print(con, c.JSON)
}

// wholeWindow waits for a window that has enough time left to finish in.
func (c *verifyCommand) wholeWindow(ctx context.Context, con console, ask asker, user guard.Request, enough time.Duration) error {
	user.Op = guard.Status
	now, err := ask(ctx, user)
	if err != nil {
		return err
	}
	if left := time.UnixMilli(now.ResetAt).Sub(con.now()); 0 < left && left < enough {
		_, _ = fmt.Fprintf(con.err, "guards: waiting %s for the next window\n", wait(left))
		select {
		case <-time.After(left):
		case <-ctx.Done():
			return errInterrupted
		}
	}
	return nil
}

// race has all callers ask until one request each more than the limit is sent.
func (c *verifyCommand) race(ctx context.Context, ask asker, user guard.Request, limit int) (verdict, error) {
	v := verdict{Activity: c.Activity, Limit: int64(limit), Asked: limit + c.Callers}
	next := make(chan struct{}, v.Asked)
	for range v.Asked {
		next <- struct{}{}
	}
	close(next)
	var mu sync.Mutex
	var took []float64
	windows := make(map[int64]bool) // each has a limit of its own
	var failed error
	var wg sync.WaitGroup
	began := time.Now()
	for range c.Callers {
		wg.Go(func() {
			for range next {
				sent := time.Now()
				a, err := ask(ctx, user)
				ms := milliseconds(time.Since(sent))
				mu.Lock()
				took = append(took, ms)
				if err == nil {
					windows[a.WindowKey] = true
				} else if failed == nil {
					failed = err
				}
				if a.Allowed {
					v.Allowed++
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	v.TookMs, v.Exact = milliseconds(time.Since(began)), v.Allowed == limit
	slices.Sort(took)
	v.P50Ms, v.P99Ms = took[len(took)/2], took[len(took)*99/100]
	if failed == nil && len(windows) > 1 {
		failed = errors.New("the window ended before all had asked: try again, or with fewer --callers")
	}
	return v, failed
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (v verdict) print(con console, asJSON bool) error {
	var err error
	if asJSON {
		err = json.NewEncoder(con.out).Encode(v)
	} else {
		said := con.paint(green, "exactly the limit")
		if !v.Exact {
			said = con.paint(red, fmt.Sprintf("not the limit of %d", v.Limit))
		}
		_, err = fmt.Fprintf(con.out, "%s: %d of %d allowed, %s, in %.0f ms (p50 %.1f ms, p99 %.1f ms)\n",
			v.Activity, v.Allowed, v.Asked, said, v.TookMs, v.P50Ms, v.P99Ms)
	}
	if err == nil && !v.Exact {
		return errRefused
	}
	return err
}

// asker asks where the flags say.
func (c *verifyCommand) asker(ctx context.Context, con console, rules limits.Guard) (asker, error) {
	if c.Invoke || c.EndpointURL != "" {
		return c.invoker(ctx, rules)
	}
	if c.Function != "" {
		return nil, errors.New("--function goes with --invoke or --endpoint-url")
	}
	store, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	limiter := store.limiter(con)
	// Many at once may be slow and throttled, and ask again as the functions do.
	tough := &ratelimit.Limiter{Store: limiter.Store, Now: limiter.Now, Timeout: 30 * time.Second}
	return func(ctx context.Context, r guard.Request) (asked, error) {
		var a guard.Answer
		var err error
		if r.Op == guard.Status { // the first to ask
			a, err = decide(ctx, &guard.Guard{Rules: rules, Limiter: limiter}, r)
		} else {
			a, err = (&guard.Guard{Rules: rules, Limiter: tough}).Decide(ctx, r)
		}
		if err != nil {
			return asked{}, err
		}
		return asked{a.Allowed, string(a.Reason), a.Decision.ResetAt, a.Decision.WindowKey}, nil
	}, nil
}

// invoker asks through Lambda's Invoke API.
func (c *verifyCommand) invoker(ctx context.Context, rules limits.Guard) (asker, error) {
	cfg, err := c.aws(ctx)
	if err != nil {
		return nil, err
	}
	client := lambda.NewFromConfig(cfg, func(o *lambda.Options) {
		if c.EndpointURL != "" {
			o.BaseEndpoint = aws.String(c.EndpointURL)
		}
	})
	name := c.Function
	if name == "" {
		name = rules.Name
	}
	return func(ctx context.Context, r guard.Request) (a asked, err error) {
		payload := fmt.Appendf(nil, `{"userId":%q,"activity":%q,"op":%q}`, r.UserID, r.Activity, r.Op)
		out, err := client.Invoke(ctx, &lambda.InvokeInput{FunctionName: &name, Payload: payload})
		switch {
		case err != nil:
			return a, &input.Unavailable{What: "the guard " + name + " could not be invoked", Cause: err}
		case out.FunctionError != nil:
			return a, fmt.Errorf("%s failed: %s", name, strings.TrimSpace(string(out.Payload)))
		}
		if err := json.Unmarshal(out.Payload, &a); err != nil {
			return a, fmt.Errorf("%s gave no answer: %w", name, err)
		}
		if a.Reason == string(ratelimit.Unavailable) {
			return a, &input.Unavailable{What: "the guard " + name + " could not reach its table"}
		}
		return a, nil
	}, nil
}
