package ratelimit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
)

// A slotVector is a log and what a model of it answered, step by step: checks that take
// slots, renewals that keep them, and releases that free them. Slots has the numbers of
// the log; an action takes as many slots as its cost. The model is in this file at commit
// b5097f4. It is a list of holders, and knows no slots, ids or updates.
type slotVector struct {
	Slots struct{ Limit, WindowMs, Cost int64 }
	Steps []slotStep
}

type slotStep struct {
	Now   int64
	Op    Op
	ID    string
	Count int64
	At    int64 // renew, release: the receipt, which can be an old one
	Want  slotAnswer
}

type slotAnswer struct {
	Allowed   bool
	Reason    Reason
	Granted   int64
	At        int64
	HeldUntil int64
	Used      int64
	Remaining int64
	WaitTime  int64
	ResetAt   int64
}

func (v slotVector) run(t *testing.T, store Store, user string) {
	t.Helper()
	text := fmt.Sprintf("log %d/%dms cost %d", v.Slots.Limit, v.Slots.WindowMs, v.Slots.Cost)
	p, c := policy.Must(text), new(clock)
	l := &Limiter{Store: store, Timeout: 20 * time.Second, Memory: NewMemory(mib), Now: c.now}
	for i, step := range v.Steps {
		c.unix.Store(time.UnixMilli(step.Now).UnixNano())
		d := mustDo(t, l, step.Op, Request{UserID: user, Activity: "act", Policy: p, Count: step.Count, ID: step.ID, At: step.At})
		got := slotAnswer{d.Allowed, d.Reason, d.Granted, d.At, 0, d.Used, d.Remaining, d.Wait.Milliseconds(), d.ResetAt}
		if d.At != 0 {
			got.HeldUntil = p.HeldUntil(d.At)
		}
		if diff := cmp.Diff(step.Want, got); diff != "" {
			t.Fatalf("%s, step %d, %s of %d for %s with %d at %d (-want +got):\n%s", text, i, step.Op, step.Count, step.ID, step.At, step.Now, diff)
		}
	}
}
