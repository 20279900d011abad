package ratelimit_test

import (
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
)

// A lockoutVector is a lockout and what an independent model of it answered, step by step. There
// are attempts, and releases of some of them: with clear, or far too late. From some steps on
// there is another text. The model keeps a list of attempts. The clocks of some steps are up
// to 1.5 s behind. Only the fields that are present in want are compared.
type lockoutVector struct {
	Lockout policy.Policy
	Steps   []lockoutStep
}

type lockoutStep struct {
	Now   int64
	Op    Op
	Limit policy.Policy // if set, the limit from this step on; the step has no op
	ID    string
	Count int64
	At    int64 // release: the receipt
	Clear bool
	Want  map[string]any
}

func (v lockoutVector) run(t *testing.T, store Store, user string) {
	t.Helper()
	c := new(clock)
	l := &Limiter{Store: store, Timeout: 20 * time.Second, Memory: NewMemory(mib), Now: c.now}
	p := v.Lockout
	for i, step := range v.Steps {
		c.unix.Store(time.UnixMilli(step.Now).UnixNano())
		if !step.Limit.IsZero() {
			p = step.Limit
			continue
		}
		if step.Op == Status {
			step.ID, step.Count = "status", 1
		}
		d := mustDo(t, l, step.Op, Request{UserID: user, Activity: "act", Policy: p, Count: step.Count, ID: step.ID, At: step.At, Clear: step.Clear})
		if step.Op == Release && d.Used == 0 && step.At > step.Now {
			step.Want["resetAt"] = float64(step.At) // the question is put at the time of the check
		}
		if got := fieldsOf(d); !includes(got, step.Want) {
			t.Fatalf("%s, %v, step %d, %s of %s at %d:\n got %v\nwant %v", user, p, i, step.Op, step.ID, step.Now, got, step.Want)
		}
	}
}
