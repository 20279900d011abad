package command

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
)

// A portion is what one activity of a group got.
type portion struct {
	Activity string `json:"activity"`
	Asked    int64  `json:"asked"`
	Allowed  int64  `json:"allowed"`
}

// A usedLimit is how much of a limit of a group was taken. Its figures are in units, of
// which an action takes as many as its cost.
type usedLimit struct {
	Name  string `json:"name"`
	Limit int64  `json:"limit"` // the most units that the activities of the group can take
	Used  int64  `json:"used"`
}

// verifyGroup does what verify does, with callers of all activities of a group. Each
// activity asks for more than its own limits allow, so at the end nothing more fits.
func (c *verifyCommand) verifyGroup(ctx context.Context, con session, ask asker, group []limits.Activity) (raceResult, error) {
	user := guard.Request{UserID: "verify-" + rand.Text(), Activity: c.Activity}
	before, err := statuses(ctx, ask, user, group)
	if err != nil {
		return raceResult{}, err
	}
	for _, a := range group {
		for i, f := range before[a.Name].Limits {
			window := a.Limit.Each()[i].Quota().Window
			if err := wholeWindow(ctx, con, time.UnixMilli(f.ResetAt), min(10*time.Second, window/2)); err != nil {
				return raceResult{}, err
			}
		}
	}
	began := time.Now()
	v, outcomes, err := c.send(ctx, ask, c.requests(group, before, user))
	v.Activity, v.Prepaid = group[0].Group, leases(con.guards, c.live, group[0], user.UserID, "", con.now())
	if ctx.Err() != nil {
		con.note(fmt.Sprintf("stopped after %d of %s", v.answered, several(int64(v.Asked), "request")))
	}
	if err == nil {
		err = v.judge(ctx, ask, user, group, before, outcomes)
	}
	if err == nil && !v.Exact && time.Since(began) >= soonest(outcomes) {
		err = errExpired
	}
	v.left = forget(ctx, con, ask, user)
	return v, err
}

// statuses asks for the figures of each activity of a group.
func statuses(ctx context.Context, ask asker, user guard.Request, group []limits.Activity) (map[string]asked, error) {
	user.Op = guard.Status
	all := make(map[string]asked, len(group))
	for _, a := range group {
		user.Activity = a.Name
		got, err := ask(ctx, user)
		switch {
		case err != nil:
			return nil, err
		case got.Limit == 0 || len(got.Limits) != len(a.Limit.Rates()):
			return nil, fmt.Errorf("%s is not limited as a part of its group now: the guard answers %s", a.Name, got.Reason)
		}
		all[a.Name] = got
	}
	return all, nil
}

// requests returns the checks of all activities in turn: of each one as many as its
// limit allows, and its part of one more for each caller.
func (c *verifyCommand) requests(group []limits.Activity, before map[string]asked, user guard.Request) (all []guard.Request) {
	user.Op = guard.Check
	more := int64((c.Callers + len(group) - 1) / len(group))
	for turn, some := int64(0), true; some; turn++ {
		some = false
		for _, a := range group {
			if turn < before[a.Name].Limit+more {
				user.Activity, some = a.Name, true
				all = append(all, user)
			}
		}
	}
	return all
}

// judge compares what was allowed with the limits. It is exact if no limit was exceeded,
// if the table has counted what was allowed, and if no activity has anything left. Of
// prepaid limits, instances can hold what is left, or have it counted and not handed out.
func (v *raceResult) judge(ctx context.Context, ask asker, user guard.Request, group []limits.Activity, before map[string]asked, outcomes []outcome) error {
	after, err := statuses(ctx, ask, user, group)
	if err != nil {
		return err
	}
	asked, allowed := map[string]int64{}, map[string]int64{}
	for _, o := range outcomes {
		name := o.request.Activity
		if len(o.Limits) > 0 && !sameLimits(o.Limits, before[name].Limits) {
			return errLimitChanged
		}
		asked[name]++
		if o.Allowed {
			allowed[name]++
		}
	}
	v.Exact = !v.Prepaid || v.Allowed >= minOfPrepaid
	for _, a := range group {
		v.Activities = append(v.Activities, portion{a.Name, asked[a.Name], allowed[a.Name]})
		v.take(a, before[a.Name], allowed[a.Name])
		v.Exact = v.Exact && (v.Prepaid || after[a.Name].Remaining == 0)
	}
	for _, l := range v.Limits {
		v.Exact = v.Exact && l.Used <= l.Limit
	}
	for _, a := range group {
		for i, r := range a.Limit.Rates() {
			cost, counted := max(1, r.Cost), after[a.Name].Limits[i].ActivityCount
			l := v.limit(r.Name)
			v.Exact = v.Exact && counts(counted, (l.Used+cost-1)/cost, v.Prepaid) && (counted-1)*cost < l.Limit
		}
	}
	return nil
}

// sameLimits reports whether two answers are about the same limits with the same numbers.
func sameLimits(a, b []figures) bool {
	return slices.EqualFunc(a, b, func(a, b figures) bool { return a.Limit == b.Limit })
}

// soonest returns how long after it was counted the first action can have expired.
func soonest(outcomes []outcome) time.Duration {
	least := math.MaxInt64 / int64(time.Millisecond)
	for _, o := range outcomes {
		for _, f := range o.Limits {
			if o.At != 0 {
				least = min(least, f.ResetAt-o.At)
			}
		}
	}
	return time.Duration(least) * time.Millisecond
}

// take adds what an activity took of each of its limits.
func (v *raceResult) take(a limits.Activity, before asked, allowed int64) {
	for i, r := range a.Limit.Rates() {
		cost, l := max(1, r.Cost), v.limit(r.Name)
		l.Limit = max(l.Limit, before.Limits[i].Limit*cost)
		l.Used += allowed * cost
	}
}

// limit returns the limit with this name.
func (v *raceResult) limit(name string) *usedLimit {
	for i := range v.Limits {
		if v.Limits[i].Name == name {
			return &v.Limits[i]
		}
	}
	v.Limits = append(v.Limits, usedLimit{Name: name})
	return &v.Limits[len(v.Limits)-1]
}

// ofGroup returns in words what the activities got, and how much of each limit is used.
func (v raceResult) ofGroup(con session) string {
	var got, used []string
	for _, s := range v.Activities {
		got = append(got, fmt.Sprintf("%s %d of %d", s.Activity, s.Allowed, s.Asked))
	}
	for _, l := range v.Limits {
		used = append(used, fmt.Sprintf("%s %d/%d", l.Name, l.Used, l.Limit))
	}
	result := v.verdict(con, "exactly the limits", "at most the limits, as prepaid ones promise", "not the limits")
	return fmt.Sprintf("%s: %s (%s)", result, strings.Join(used, ", "), strings.Join(got, ", "))
}
