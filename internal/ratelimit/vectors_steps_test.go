package ratelimit_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/internal/ratelimit"
)

// A stepped case runs its steps on one store, as one user.
type stepped interface {
	run(t *testing.T, store Store, user string)
}

// runEach runs each case as a subtest of its own.
func runEach[C stepped](t *testing.T, name string, cases []C, store Store) {
	t.Helper()
	for i, c := range cases {
		user := name + strconv.Itoa(i)
		t.Run(user, func(t *testing.T) { c.run(t, store, user) })
	}
}

// A groupVector is a group's activities with their limits, and what an independent
// model answered when they asked in turn.
type groupVector struct {
	Group map[string]string // the limits of each activity
	Steps []struct {
		Now      int64
		Activity string
		Count    int64
		Partial  bool
		Want     groupAnswer
	}
}

// A groupAnswer has the figures of each of the activity's limits, in its own actions.
type groupAnswer struct {
	Allowed bool
	Granted int64
	Limits  map[string]struct{ Limit, ActivityCount, Remaining int64 }
	Crossed map[string]int64
}

func (v groupVector) run(t *testing.T, store Store, user string) {
	t.Helper()
	var all []policy.Policy
	policies := map[string]policy.Policy{}
	for activity, text := range v.Group {
		policies[activity] = policy.Must(text)
		all = append(all, policies[activity])
	}
	l, c := instance(store)
	for i, step := range v.Steps {
		c.unix.Store(time.UnixMilli(step.Now).UnixNano())
		d := mustCheck(t, l, Request{
			UserID: user, Activity: step.Activity, Group: "all", Policy: policies[step.Activity].Beside(all...),
			Count: max(1, step.Count), Partial: step.Partial, ID: strconv.Itoa(i),
		})
		got := groupAnswer{Allowed: d.Allowed, Granted: d.Granted, Limits: map[string]struct{ Limit, ActivityCount, Remaining int64 }{}, Crossed: map[string]int64{}}
		for _, r := range d.Each {
			got.Limits[r.Name] = struct{ Limit, ActivityCount, Remaining int64 }{r.Limit, r.Used, r.Remaining}
			if r.Crossed != 0 {
				got.Crossed[r.Name] = r.Crossed
			}
		}
		if diff := cmp.Diff(step.Want, got); diff != "" {
			t.Fatalf("step %d, %d of %s at %d (-want +got):\n%s", i, step.Count, fmt.Sprint(step.Activity, ": ", policies[step.Activity]), step.Now, diff)
		}
	}
}

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
	l, c := instance(store)
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
	p := policy.Must(text)
	l, c := instance(store)
	for i, step := range v.Steps {
		c.unix.Store(time.UnixMilli(step.Now).UnixNano())
		d := mustDo(t, l, step.Op, Request{UserID: user, Activity: "act", Policy: p, Count: step.Count, ID: step.ID, At: step.At})
		got := slotAnswer{d.Allowed, d.Reason, d.Granted, d.At, d.HeldUntil, d.Used, d.Remaining, d.Wait.Milliseconds(), d.ResetAt}
		if diff := cmp.Diff(step.Want, got); diff != "" {
			t.Fatalf("%s, step %d, %s of %d for %s with %d at %d (-want +got):\n%s", text, i, step.Op, step.Count, step.ID, step.At, step.Now, diff)
		}
	}
}
