package retry

import (
	"context"
	"time"
)

// Margin is the time that a handler needs to write its answer. Lambda ends an
// invocation at its deadline, whether or not there is an answer by then. So a
// handler stops its own work a little earlier: of 3 s, it uses 2.9 s.
const Margin = 100 * time.Millisecond

// Before returns a context that ends margin before the deadline of ctx. Without
// a deadline it ends with ctx.
func Before(ctx context.Context, margin time.Duration) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, end.Add(-margin))
}
