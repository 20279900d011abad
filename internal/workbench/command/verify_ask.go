package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/smithy-go"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/workbench/invokeapi"
)

// An asker sends a request to a guard and returns its answer. The answer's Limit is 0 if it has
// no figures, because a refusal is an error or no request is limited. Its At is 0 if the guard
// does not know when the action was counted.
type asker func(ctx context.Context, r guard.Request) (guards.Decision, error)

// asker returns an asker for the guard that the flags choose.
func (c *verifyCommand) asker(ctx context.Context, env session, g limits.Guard) (asker, error) {
	if c.Invoke || c.LambdaEndpoint != "" {
		return c.invoker(ctx, env, g)
	}
	if c.Function != "" {
		return nil, errors.New("--function goes with --invoke or --lambda-endpoint")
	}
	if err := c.open(ctx); err != nil {
		return nil, err
	}
	changed, err := env.follow(ctx, c.store.live)
	if err != nil {
		return nil, err
	}
	c.live = changed.Limits()
	// A person waits for the first answer. The other requests come many at once, so
	// they can be slow and throttled. If one fails, it is sent again, as in the
	// deployed functions.
	first := &guard.Handler{Guard: g, Limiter: c.store.limiter(env), Live: changed}
	many := &guard.Handler{Guard: g, Limiter: &ratelimit.Limiter{Store: c.store.Store, Now: env.now, Timeout: 30 * time.Second}, Live: changed}
	var answered atomic.Bool
	return func(ctx context.Context, r guard.Request) (guards.Decision, error) {
		ask := many.Decide
		if !answered.Load() {
			ask = func(ctx context.Context, r guard.Request) (guard.Answer, error) { return decide(ctx, first, r) }
		}
		a, err := ask(ctx, r)
		if err != nil {
			return guards.Decision{}, err
		}
		answered.Store(true)
		return a.Public(), nil
	}, nil
}

// invoker returns an asker that uses Lambda's Invoke API.
func (c *verifyCommand) invoker(ctx context.Context, env session, g limits.Guard) (asker, error) {
	if c.Store != nil || c.Table != "" || c.Endpoint != "" {
		return nil, errors.New("a function has its own table: leave out --store, --table and --endpoint; --lambda-endpoint is the function's address")
	}
	if err := checkURL("--lambda-endpoint", c.LambdaEndpoint, "http://127.0.0.1:3001"); err != nil {
		return nil, err
	}
	cfg, err := c.aws(ctx)
	if err != nil {
		return nil, err
	}
	client := lambda.NewFromConfig(cfg, func(o *lambda.Options) {
		o.HTTPClient = &reacher{client: o.HTTPClient} // once connected, a function may take long for its first answer
		if c.LambdaEndpoint != "" {
			o.BaseEndpoint = aws.String(c.LambdaEndpoint)
		}
	})
	names, err := c.functions(env, g)
	if err != nil {
		return nil, err
	}
	place := "in " + cfg.Region
	if c.LambdaEndpoint != "" {
		place = "at " + c.LambdaEndpoint
	}
	return func(ctx context.Context, r guard.Request) (a guards.Decision, err error) {
		payload, err := json.Marshal(guards.Request{UserID: r.UserID, Activity: r.Activity, Op: r.Op, Subjects: r.Subjects})
		if err != nil {
			return a, err
		}
		name := names[r.Activity]
		out, err := client.Invoke(ctx, &lambda.InvokeInput{FunctionName: &name, Payload: payload})
		switch {
		case err != nil:
			return a, notInvoked(name, place, err)
		case out.FunctionError != nil:
			return a, failed(name, out.Payload)
		}
		if err := json.Unmarshal(out.Payload, &a); err != nil {
			return a, fmt.Errorf("%s returned no answer: %w", name, err)
		}
		if a.Reason == ratelimit.Unavailable {
			return a, &input.Unavailable{What: "the guard " + name + " could not reach its table"}
		}
		return a, nil
	}, nil
}

// failed returns the error of a function's error. A refusal can be one, with
// ON_LIMIT=error; then failed returns nil. Bad input is a mistake of this
// command's user. Anything else, such as a crash, means that the guard gave no
// answer.
func failed(name string, payload []byte) error {
	var e struct{ ErrorType, ErrorMessage string }
	_ = json.Unmarshal(payload, &e) // a crash can have any payload; then both stay empty
	what := name + " failed: " + cmp.Or(e.ErrorMessage, strings.TrimSpace(string(payload)))
	switch e.ErrorType {
	case invokeapi.ErrorType(&guard.RateLimitExceeded{}):
		return nil
	case invokeapi.ErrorType(&input.ValidationError{}):
		return errors.New(what)
	}
	return &input.Unavailable{What: what}
}

// notInvoked returns the error of a guard that could not be invoked. Place is
// where the command looked for it, such as "in eu-west-1".
func notInvoked(name, place string, cause error) error {
	what := "the guard " + name + " could not be invoked"
	if e, ok := errors.AsType[*unreached](cause); ok {
		advice := "choose another address with --lambda-endpoint, or another region with --region"
		return hint{&input.Unavailable{What: what + ": " + e.Error()}, advice}
	}
	if e, ok := errors.AsType[smithy.APIError](cause); ok && e.ErrorCode() == "ResourceNotFoundException" {
		return hint{&input.Unavailable{What: "there is no function " + name + " " + place}, "name the deployed guard with --function"}
	}
	return &input.Unavailable{What: what, Cause: cause}
}

// functions returns the name of the deployed function for each activity of g, which can
// belong to several guards of the project. All have the prefix that --function has.
func (c *verifyCommand) functions(env session, g limits.Guard) (map[string]string, error) {
	prefix, ok := strings.CutSuffix(c.Function, g.Name)
	names := make(map[string]string, len(g.Activities))
	for _, a := range g.Activities {
		owner, _, _ := env.guards.Activity(a.Name)
		switch {
		case owner.Name != g.Name && c.Function != "" && !ok:
			return nil, fmt.Errorf("--function is %s, want a prefix and %s, because %s of the same group belongs to %s", c.Function, g.Name, a.Name, owner.Name)
		case c.Function != "" && !ok:
			names[a.Name] = c.Function
		default:
			names[a.Name] = prefix + owner.Name
		}
	}
	return names, nil
}
