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
	c := new(clock)
	l := &Limiter{Store: store, Timeout: 20 * time.Second, Memory: NewMemory(mib), Now: c.now}
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

// A calendarVector is a calendar window, and which one counts at a time.
type calendarVector struct {
	Policy string
	Steps  []struct{ Now, WindowKey, StartsAt, ResetAt int64 }
}

func (v calendarVector) run(t *testing.T, store Store, user string) {
	t.Helper()
	c := new(clock)
	l := &Limiter{Store: store, Now: c.now}
	for i, step := range v.Steps {
		c.unix.Store(time.UnixMilli(step.Now).UnixNano())
		d := mustCheck(t, l, request(policy.Must(v.Policy), user+strconv.Itoa(i), 1))
		if starts := d.ResetAt - d.Window.Milliseconds(); d.WindowKey != step.WindowKey || d.ResetAt != step.ResetAt || starts != step.StartsAt {
			t.Errorf("%s: window %d from %d to %d, want %+v", v.Policy, d.WindowKey, starts, d.ResetAt, step)
		}
	}
}
