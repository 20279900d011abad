package client

import (
	"context"
	"log/slog"
	"time"
)

// observed makes a call, and shows its decision to Options.Observe.
func (g *Guards) observed(ctx context.Context, c *call) (Decision, error) {
	began := time.Now()
	d, err := g.do(ctx, c)
	g.observe(c, d, err, began)
	return d, err
}

// observe shows a decision to Options.Observe, without ids. An error is no decision.
func (g *Guards) observe(c *call, d Decision, err error, began time.Time) {
	if g.options.Observe == nil || err != nil {
		return
	}
	took := time.Since(began)
	defer logPanic("Observe")
	d.UserID, d.RequestID, d.Subjects = "", "", nil
	g.options.Observe(d, took, g.way(c))
}

// logPanic logs a panic of one of the app's functions, and ends it. Some are called in a
// goroutine of the client's own, where a panic would end the app.
func logPanic(option string) {
	if p := recover(); p != nil {
		slog.Error("guards: a function of the options panicked", slog.String("option", option), slog.Any("panic", p))
	}
}

// way returns how a call is made.
func (g *Guards) way(c *call) string {
	switch {
	case g.options.Local != nil:
		return "local"
	case c.agent != nil:
		return "agent"
	case c.url != "":
		return "url"
	}
	return "invoke"
}
