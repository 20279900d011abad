package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/cric-talk/guards"
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
	agent    *agent // nil: a function is asked; otherwise function is only for messages
}

// name returns the name of the function, for errors. An agent has one for each guard.
func (t target) name() string {
	if t.agent != nil {
		return t.guard
	}
	return t.function
}

func (g *Guards) target(guard string) target {
	if g.agent != nil {
		return target{guard: guard, function: "the agent at " + g.agent.address, agent: g.agent}
	}
	return target{guard: guard, function: g.options.Prefix + guard, region: g.region(), url: g.options.URLs[guard]}
}

// A call is one request to a guard, with all its attempts.
type call struct {
	target
	event    guards.Request
	payload  []byte           // the event as JSON
	attempts int              // at most
	keys     *aws.Credentials // sign the requests; nil: the app chose to sign nothing
	left     time.Duration    // of Timeout
	breaker  *breaker         // of the function
	ticket   ticket
}

// do makes the call. Its error is an *Error, or the error of ctx.
func (g *Guards) do(ctx context.Context, c *call) (Decision, error) {
	if ctx.Err() != nil {
		return Decision{}, c.givenUp(ctx)
	}
	if g.options.Local != nil {
		return g.decide(ctx, c)
	}
	c.breaker = g.breakers.breaker(c.function)
	var ok bool
	if c.ticket, ok = c.breaker.admit(time.Now()); !ok {
		return Decision{}, c.paused()
	}
	d, err := g.repeat(ctx, c)
	switch {
	case err != nil && ctx.Err() != nil && (isOutage(err) || isMissing(err) || errors.Is(err, ctx.Err())):
		c.breaker.again(c.ticket)
		return Decision{}, c.givenUp(ctx)
	case isMissing(err):
		c.breaker.missing.CompareAndSwap(nil, &err)
		fallthrough
	case isSilence(err):
		c.breaker.lost(c.ticket, time.Now())
	default:
		c.breaker.answered()
	}
	return d, err
}

// paused returns the outage of a call that is not sent, because another one got
// no answer. If no agent has ever answered, it is the error of that call.
func (c *call) paused() error {
	if missing := c.breaker.missing.Load(); missing != nil && !c.agent.reached.Load() {
		return *missing
	}
	return &Error{Kind: ErrOutage, Guard: c.name(), Message: c.function + " did not answer a moment ago"}
}

// givenUp returns the error of a call that its caller ended.
func (c *call) givenUp(ctx context.Context) error {
	return fmt.Errorf("ask %s: %w", c.function, ctx.Err())
}

// room returns how much time the call has left: of Timeout, and until shortly
// before the deadline of ctx. If that leaves the guard too little time for an
// answer, ctx itself ends the call, because such a silence says nothing about the
// guard.
func (g *Guards) room(ctx context.Context, c *call) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		early, used := time.Until(deadline)-spare, g.options.Timeout-c.left
		if early < c.left && used+early >= network {
			return early
		}
	}
	return c.left
}

// repeat makes attempts until one is not worth repeating or the time is over.
func (g *Guards) repeat(ctx context.Context, c *call) (d Decision, err error) {
	c.left = g.options.Timeout
	if c.keys, err = g.credentials(ctx, c); err != nil {
		return Decision{}, err
	}
	lasts := g.options.attempt()
	for n := 1; ; n++ {
		pause := rand.N(50 * time.Millisecond << min(n-1, 9)) // up to 50 ms after the first attempt, then 100 ms and so on
		most := g.room(ctx, c)
		if n < c.attempts && most >= 2*lasts+pause { // another attempt can follow
			most = lasts
		}
		d, err := g.try(ctx, c, most, n > 1)
		failed, ok := errors.AsType[*Error](err)
		if ok && failed.missing && failed.refused { // an agent can start after the app
			if pause = min(pause, network); g.room(ctx, c) > pause && sleep(ctx, pause) {
				c.left -= pause
				continue
			}
		}
		if !ok || !failed.repeatable || n >= c.attempts || g.room(ctx, c) < lasts+pause || !sleep(ctx, pause) {
			return d, err
		}
		c.left -= pause
	}
}

// try asks the guard once and waits for at most the given time.
func (g *Guards) try(ctx context.Context, c *call, most time.Duration, again bool) (d Decision, err error) {
	ctx, w := g.watch(ctx, c, most)
	defer w.stop()
	w.later = again || c.ticket.probe != 0
	if g.pooled {
		ctx = w.trace(ctx)
	}
	switch {
	case c.agent != nil:
		d, err = g.askAgent(ctx, c)
	case c.url != "":
		d, err = g.post(ctx, c)
	default:
		d, err = g.invoke(ctx, c)
	}
	if err != nil && errors.Is(context.Cause(ctx), errPaused) {
		err = c.paused()
	}
	return d, err
}
