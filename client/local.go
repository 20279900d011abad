package client

import (
	"context"
	"errors"
	"time"

	"github.com/cric-talk/guards"
)

// A Local decides in the app's own process. A *limiter.Limiter is one. If it also has a method
// Clock, as that has, Decision.Date is by this clock.
type Local interface {
	// Decide answers a request. Its error is a [guards.ErrValidation], a
	// [guards.ErrUnavailable], or a mistake of the app's configuration.
	Decide(context.Context, guards.Request) (guards.Decision, error)

	// Guards returns the guards that it decides for.
	Guards() []guards.Guard

	// Window returns the window of an activity, as in [Activity].
	Window(activity string) time.Duration
}

// decide asks Options.Local. There is no second attempt, because that has made its own.
func (g *Guards) decide(ctx context.Context, c *call) (Decision, error) {
	d, err := g.options.Local.Decide(ctx, c.event)
	switch {
	case err == nil:
		answer := c.asked(d)
		if l, ok := g.options.Local.(interface{ Clock() time.Time }); ok {
			answer.Date = l.Clock()
		}
		return answer, nil
	case ctx.Err() != nil:
		return Decision{}, c.givenUp(ctx)
	case errors.Is(err, guards.ErrValidation):
		return Decision{}, c.validation(err.Error()) // a guard never shows an id
	case errors.Is(err, guards.ErrUnavailable):
		return Decision{}, c.unavailable(err.Error())
	}
	return Decision{}, c.configuration(err, "%s can't decide: %s", c.guard, c.foreign(err.Error()))
}

// activitiesOf returns the list of activities of a limiter's guards.
func activitiesOf(l Local) (list []Activity) {
	for _, g := range l.Guards() {
		for _, a := range g.Activities {
			one := Activity{Name: a.Name, Guard: g.Name, Window: l.Window(a.Name), Hold: a.Hold}
			for _, s := range a.Subjects {
				name := s.Name
				if s.Optional {
					name += "?"
				}
				one.Subjects = append(one.Subjects, name)
			}
			list = append(list, one)
		}
	}
	return list
}
