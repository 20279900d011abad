package ratelimit

import (
	"context"
	"time"
)

// A Budget decides how many attempts one decision makes, and how long each may
// take. Package retry has the one that a limiter with a Timeout uses.
type Budget interface {
	// Next returns how long the next attempt may take; 0 means without a limit.
	// It returns false if there is no time for another attempt. If failed is
	// set, the last attempt failed, and Next pauses before it returns.
	Next(ctx context.Context, failed bool) (time.Duration, bool)
}

// oneAttempt is the budget for a store in memory: each request is sent once and
// has no time limit.
type oneAttempt struct{}

func (oneAttempt) Next(_ context.Context, failed bool) (time.Duration, bool) { return 0, !failed }
