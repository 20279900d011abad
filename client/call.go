package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// spare is what a call leaves of its caller's time. If the guard does not
// answer, the caller can then still act on OnOutage.
const spare = 50 * time.Millisecond

// A target is a function that a call asks.
type target struct {
	guard    string // its name
	function string // its name with the prefix
	region   string
	url      string // empty: by Invoke
}

func (g *Guards) target(guard string) target {
	return target{guard: guard, function: g.options.Prefix + guard, region: g.region(), url: g.options.URLs[guard]}
}

// A call is one request to a guard, with all its attempts.
type call struct {
	target
	event    event
	payload  []byte           // the event as JSON
	attempts int              // at most
	keys     *aws.Credentials // sign the requests; nil: the app chose to sign nothing
}

// do makes the call. Its error is an *Error, or the error of ctx.
func (g *Guards) do(ctx context.Context, c *call) (Decision, error) {
	if ctx.Err() != nil {
		return Decision{}, c.givenUp(ctx)
	}
	ok, probe := g.breakers.admit(c.function, time.Now())
	if !ok {
		return Decision{}, &Error{Kind: ErrOutage, Guard: c.function, Message: c.function + " did not answer a moment ago"}
	}
	d, err := g.repeat(ctx, c)
	switch {
	case err != nil && ctx.Err() != nil && (isOutage(err) || errors.Is(err, ctx.Err())):
		if probe {
			g.breakers.again(c.function, time.Now())
		}
		return Decision{}, c.givenUp(ctx)
	case isSilence(err):
		g.breakers.opened(c.function, time.Now())
	default:
		g.breakers.closed(c.function)
	}
	return d, err
}

// givenUp returns the error of a call that its caller ended.
func (c *call) givenUp(ctx context.Context) error {
	return fmt.Errorf("ask %s: %w", c.function, ctx.Err())
}

// end returns when a call ends: after Timeout, or shortly before the deadline of
// ctx. If that leaves too little time for an answer, ctx itself ends the call,
// because such a silence says nothing about the guard.
func (g *Guards) end(ctx context.Context) time.Time {
	end := time.Now().Add(g.options.Timeout)
	if deadline, ok := ctx.Deadline(); ok {
		if early := deadline.Add(-spare); early.Before(end) && time.Until(early) >= network {
			return early
		}
	}
	return end
}

// repeat makes attempts until one is not worth repeating or the time is over.
func (g *Guards) repeat(ctx context.Context, c *call) (d Decision, err error) {
	end := g.end(ctx)
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	if c.keys, err = g.credentials(ctx, c); err != nil {
		return Decision{}, err
	}
	lasts := g.options.attempt()
	for n := 1; ; n++ {
		pause := rand.N(50 * time.Millisecond << min(n-1, 9)) // up to 50 ms after the first attempt, then 100 ms and so on
		left := time.Until(end)
		if n < c.attempts && left >= 2*lasts+pause { // another attempt can follow
			left = lasts
		}
		d, err := g.attempt(ctx, c, left)
		failed, ok := errors.AsType[*Error](err)
		if !ok || !failed.repeatable || n >= c.attempts || time.Until(end) < lasts+pause || !sleep(ctx, pause) {
			return d, err
		}
	}
}

// attempt asks the guard once and waits for at most the given time.
func (g *Guards) attempt(ctx context.Context, c *call, lasts time.Duration) (Decision, error) {
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	if c.url != "" {
		return g.post(ctx, c)
	}
	return g.invoke(ctx, c)
}
