package command

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/table"
)

// A crowd is the users of a race who share each subject, such as one room.
type crowd struct {
	activity limits.Activity
	users    []string
	subjects map[string]string // the made-up id of each subject
	before   asked             // the figures of the first user
	least    int64             // the lowest limit of the subjects: so many actions fit
	prepaid  []bool            // whether each limit of the figures is prepaid
}

// verifySubjects does what verify does, with several users in the same subjects. All
// users together could do more than the subjects allow. So exactly the lowest limit of a
// subject gets through, and each item counts what was allowed.
func (c *verifyCommand) verifySubjects(ctx context.Context, con session, ask asker, a limits.Activity) (raceResult, error) {
	w, err := c.gather(ctx, ask, a)
	if err != nil {
		return raceResult{}, err
	}
	for _, part := range a.Parts() {
		key := w.users[0]
		if part.Name != "" {
			key = limits.SubjectID(part.Name, w.subjects[part.Name])
		}
		prepaid := leases(con.guards, c.live, a, key, "", con.now())
		for _, p := range part.Limit.Each() {
			window := p.Quota().Window
			if err := wholeWindow(ctx, con, time.UnixMilli(w.before.Limits[len(w.prepaid)].ResetAt), min(10*time.Second, window/2)); err != nil {
				return raceResult{}, err
			}
			w.prepaid = append(w.prepaid, prepaid)
		}
	}
	began := time.Now()
	v, outcomes, err := c.send(ctx, ask, w.requests(c.Callers))
	v.Limit, v.Users, v.Prepaid = w.least, len(w.users), slices.Contains(w.prepaid, true)
	if ctx.Err() != nil {
		con.note(fmt.Sprintf("stopped after %d of %s", v.answered, several(int64(v.Asked), "request")))
	}
	if err == nil {
		err = v.compare(ctx, ask, w, outcomes)
	}
	if err == nil && !v.Exact && time.Since(began) >= soonest(outcomes) {
		err = errExpired
	}
	v.left = c.disperse(ctx, con, ask, w)
	return v, err
}

// gather makes up ids of subjects, and as many users as could do more than the subjects
// allow.
func (c *verifyCommand) gather(ctx context.Context, ask asker, a limits.Activity) (w crowd, err error) {
	w = crowd{activity: a, subjects: map[string]string{}, users: []string{"verify-" + rand.Text()}}
	for _, s := range a.Subjects {
		w.subjects[s.Name] = "verify-" + rand.Text()
	}
	own, rates := len(a.Limit.Rates()), 0
	for _, part := range a.Parts() {
		rates += len(part.Limit.Rates())
	}
	w.before, err = ask(ctx, w.request(0, guard.Status))
	switch {
	case err != nil:
		return w, err
	case len(w.before.Limits) != rates:
		return w, fmt.Errorf("%s is not limited for its subjects now: the guard answers %s", a.Name, w.before.Reason)
	}
	least := func(all []figures) int64 {
		return slices.MinFunc(all, func(a, b figures) int { return cmp.Compare(a.Limit, b.Limit) }).Limit
	}
	w.least = least(w.before.Limits[own:])
	for range w.least/least(w.before.Limits[:own]) + 1 {
		w.users = append(w.users, "verify-"+rand.Text())
	}
	return w, nil
}

// request returns the request of the user with this number.
func (w crowd) request(user int, op guard.Op) guard.Request {
	return guard.Request{UserID: w.users[user%len(w.users)], Activity: w.activity.Name, Op: op, Subjects: w.subjects}
}

// requests returns the checks of all users in turn: as many as the subjects allow, and one
// more for each user and each caller.
func (w crowd) requests(callers int) (all []guard.Request) {
	for i := range int(w.least) + len(w.users) + callers {
		all = append(all, w.request(i, guard.Check))
	}
	return all
}

// compare compares what was allowed with the limits, and with what each item counts.
func (v *raceResult) compare(ctx context.Context, ask asker, w crowd, outcomes []outcome) error {
	allowed := map[string]int64{} // by the user
	for _, o := range outcomes {
		if o.Allowed && !sameLimits(o.Limits, w.before.Limits) {
			return errLimitChanged
		}
		if o.Allowed {
			allowed[o.request.UserID]++
		}
	}
	own := len(w.activity.Limit.Rates())
	v.Exact = int64(v.Allowed) == w.least || v.Prepaid && v.ofLeases(w.least)
	for i := range w.users {
		after, err := ask(ctx, w.request(i, guard.Status))
		if err != nil {
			return err
		}
		for k, f := range after.Limits {
			want := int64(v.Allowed)
			if k < own {
				want = allowed[w.users[i]]
			} else if i == 0 {
				v.Limits = append(v.Limits, usedLimit{f.Name, f.Limit, f.ActivityCount})
			}
			v.Exact = v.Exact && counts(f.ActivityCount, want, w.prepaid[k]) && f.ActivityCount <= f.Limit
		}
	}
	return nil
}

// disperse removes the counts of the users and the subjects, also if ctx has ended. A
// guard clears users only. So without a table, those of the subjects expire by themselves.
func (c *verifyCommand) disperse(ctx context.Context, con session, ask asker, w crowd) error {
	for i := range w.users {
		if err := forget(ctx, con, ask, w.request(i, guard.Reset)); err != nil {
			return err
		}
	}
	if c.table == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	for name, id := range w.subjects {
		if _, err := c.table.Erase(ctx, limits.SubjectID(name, id), table.Sweep{}); err != nil {
			con.note("the counts of the test's subjects could not be removed; they expire by themselves")
			return reached(err)
		}
	}
	return nil
}

// ofSubjects returns in words how much of each subject's limit is used.
func (v raceResult) ofSubjects(con session) string {
	var used []string
	for _, l := range v.Limits {
		used = append(used, fmt.Sprintf("%s %d/%d", l.Name, l.Used, l.Limit))
	}
	result := v.verdict(con, "exactly the lowest limit of a subject",
		fmt.Sprintf("at most the lowest limit of a subject, %d, as prepaid ones promise", v.Limit),
		fmt.Sprintf("not the limit of %d, or an item does not count what was allowed", v.Limit))
	return fmt.Sprintf("%s: %s (%d users)", result, strings.Join(used, ", "), v.Users)
}
