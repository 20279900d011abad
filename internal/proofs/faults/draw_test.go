package faults_test

import (
	"context"
	"fmt"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// draw draws the next call.
func (w *world) draw() call {
	c := call{op: ratelimit.Check, instance: w.random.IntN(instances), n: 1 + w.random.Int64N(min(3, w.policy.Max()))}
	queue := w.policy.Queues()
	switch what := w.random.IntN(20); {
	case what < 5 && len(w.receipts) > 0:
		r := w.receipts[max(0, len(w.receipts)-1-w.random.IntN(3))]
		if r.at == 0 {
			r.id, r.at = "unknown", w.now
		}
		c.op, c.id, c.n, c.at = ratelimit.Release, r.id, max(1, r.n-w.random.Int64N(2)), r.at
	case what < 10 && len(w.receipts) > 0 && w.renews(c.instance):
		r := w.receipts[max(0, len(w.receipts)-1-w.random.IntN(3))]
		c.op, c.id, c.n, c.at = ratelimit.Renew, r.id, r.n, r.at
		if r.at == 0 {
			c.id, c.at = "unknown", w.now
		}
	case what == 5 && !queue:
		c.op, c.id = ratelimit.Reset, "reset"
	case what < 8 || what == 10:
		c.op, c.id = ratelimit.Status, "status"
	case what < 12 && len(w.receipts) > 0: // a repeat, perhaps of a check that was given back
		r := w.receipts[len(w.receipts)-1]
		c.id, c.n, c.partial = r.id, r.n, false
		if r.partial {
			w.ids++
			c.id = fmt.Sprint("r", w.ids)
		}
	default:
		w.ids++
		c.id, c.partial = fmt.Sprint("r", w.ids), !queue && w.random.IntN(3) == 0
	}
	return c
}

// renews reports whether slots are renewed: of a log alone, because a release after a
// renewal leaves other limits as they are. An instance that times its attempts can lose
// any answer, and then it is unknown which receipts serve.
func (w *world) renews(instance int) bool {
	return len(w.limits) == 1 && w.policy.HasLog() && w.limiters[instance].Timeout == 0
}

func (w *world) send(ctx context.Context, c call) (ratelimit.Decision, error) {
	r := ratelimit.Request{
		UserID: w.user, Activity: "act", Policy: w.policy, Count: c.n, Partial: c.partial, Fresh: c.partial,
		ID: c.id, At: c.at, Fallback: w.random.IntN(2) == 0,
	}
	if w.group { // the request's id tells which of two activities it is of
		r.Group, r.Activity = "act", []string{"post", "comment"}[len(c.id)%2]
	}
	return w.limiters[c.instance].Decide(ctx, c.op, r)
}
