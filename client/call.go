package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// A target is a function that a call asks.
type target struct {
	function string // its name, with the prefix
	region   string
	url      string // empty: by Invoke
}

func (g *Guards) target(guard string) target {
	return target{function: g.options.Prefix + guard, region: g.region(), url: g.options.URLs[guard]}
}

// A call is one request to a guard, with all its attempts.
type call struct {
	target
	activity string // as the caller named it
	event    event
	payload  []byte // the event as JSON
	attempts int    // at most
}

// do makes the call. Its error is an *Error, or the error of ctx.
func (g *Guards) do(ctx context.Context, c *call) (Decision, error) {
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
		return Decision{}, fmt.Errorf("ask %s: %w", c.function, ctx.Err())
	case isSilence(err):
		g.breakers.opened(c.function, time.Now())
	default:
		g.breakers.closed(c.function)
	}
	return d, err
}

// repeat makes attempts until one is not worth repeating or the time is over.
func (g *Guards) repeat(ctx context.Context, c *call) (Decision, error) {
	deadline := time.Now().Add(g.options.Timeout)
	lasts := g.options.attempt()
	for n := 1; ; n++ {
		pause := rand.N(50 * time.Millisecond << min(n, 10))
		left := time.Until(deadline)
		if n < c.attempts && left >= 2*lasts+pause { // another attempt can follow
			left = lasts
		}
		d, err := g.attempt(ctx, c, left)
		failed, ok := errors.AsType[*Error](err)
		if !ok || !failed.repeatable || n >= c.attempts || time.Until(deadline) < lasts+pause || !sleep(ctx, pause) {
			return d, err
		}
	}
}

// attempt asks the guard once and waits for at most the given time.
func (g *Guards) attempt(ctx context.Context, c *call, lasts time.Duration) (Decision, error) {
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	if err := g.checkCredentials(ctx); err != nil {
		return Decision{}, err
	}
	if c.url != "" {
		return g.post(ctx, c)
	}
	return g.invoke(ctx, c)
}
