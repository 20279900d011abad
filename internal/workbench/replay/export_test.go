package replay

import (
	"context"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

// Check returns a func that decides lines as a replay does, with all figures or
// only with a report's.
func Check(p policy.Policy, figures bool) func(traffic.Line) ratelimit.Decision {
	return newDecider(p, figures).check
}

// Run decides all requests by r.Policy alone.
func (r *Replay) Run(ctx context.Context, t *traffic.Reader) (*Report, error) {
	reports, err := r.Compare(ctx, t)
	return reports[0], err
}
