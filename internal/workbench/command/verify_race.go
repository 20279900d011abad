package command

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/cleanup"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/table"
)

// A race is many callers who ask at once, and the items that count what they do. Each made-up user
// has an item, and so does each made-up subject, such as a room. A race is exact if
//
//   - no limit is exceeded
//   - each item counts what was allowed
//   - nothing more fits: the next request of each user would be refused.
//
// For example, messages are limited to 3/1m for a user and 4/1m for a room. Then three users
// ask in one room, 54 times if there are 50 callers. Perhaps u1 sends 2 messages, and u2 and u3
// one each. So the users' items must count 2, 1 and 1, and the room's item 4.
//
// A limit without a group is a group of one. Without subjects, there is one user.
type race struct {
	ask      asker
	callers  int
	lanes    []*lane
	users    []string
	subjects map[string]string // the id of each subject by its name; nil: there are none
}

// A lane is the requests for one activity.
type lane struct {
	activity string
	limits   []raced // in the order of an answer's figures: the user's, then the subjects'
	fits     int64   // how many actions all users can do, if there is no other lane
}

// A raced is a limit of a lane. Its figures are those before the race.
type raced struct {
	figures
	subject string        // the key of the subject whose item counts; empty: the user's item counts
	cost    int64         // how many units of the limit an action takes; 1 if there is only one lane
	units   int64         // the limit in units: 7 of cost 2 are 3 actions. Another lane can have more of the same item
	window  time.Duration // as in [policy.Rate]
	prepaid bool          // the item can count more than what was allowed
}

// A call is one request and its answer.
type call struct {
	lane *lane
	user string
	op   guards.Op

	guards.Decision
	sent time.Time
	took time.Duration
}

// race lets callers race for the activities, which are one or a group. Then it removes what they
// have counted, even if ctx has ended.
func (c *verifyCommand) race(ctx context.Context, env session, ask asker, all []limits.Activity) (v raceResult, err error) {
	r := &race{ask: ask, callers: c.Callers, users: []string{madeUp()}}
	for _, s := range all[0].Subjects {
		if r.subjects == nil {
			r.subjects = make(map[string]string)
		}
		r.subjects[s.Name] = madeUp()
	}
	for _, a := range all {
		if err := c.enter(ctx, env, r, a, len(all) > 1); err != nil {
			return v, err
		}
	}
	if err := r.wait(ctx, env); err != nil {
		return v, err
	}
	checks, statuses := r.calls()
	if len(checks) >= manyRequests {
		env.note("sending " + plural(int64(len(checks)), "request") + "; Ctrl-C stops")
	}
	began := time.Now()
	err = r.send(ctx, env, checks)
	took := time.Since(began)
	if err == nil {
		err = r.send(ctx, env, statuses)
	}
	if err == nil {
		v, err = r.judge(checks, statuses)
	}
	v.Activity, v.Limit, v.TookMs = all[0].Name, r.lanes[0].fits, milliseconds(took)
	if len(all) > 1 {
		v.Activity, v.Limit = all[0].Group, 0
	}
	if !queues(all) { // places can't be given back, and pass by themselves
		v.left = r.clear(ctx, env, c.store.table)
	}
	return v, err
}

// madeUp returns an id that no other user or subject has.
func madeUp() string { return "verify-" + rand.Text() }

// enter adds the lane of an activity, and enough users to use up the limits of subjects.
func (c *verifyCommand) enter(ctx context.Context, env session, r *race, a limits.Activity, grouped bool) error {
	l := &lane{activity: a.Name}
	before := call{lane: l, user: r.users[0], op: guards.Status}
	if err := r.put(ctx, &before); err != nil {
		return err
	}
	got := before.each()
	if len(got) == 0 {
		return fmt.Errorf("%s is not limited now: the guard answers %s", a.Name, before.Reason)
	}
	for _, part := range a.Parts() {
		one, key := raced{cost: 1}, r.users[0]
		if part.Name != "" {
			key = limits.SubjectID(part.Name, r.subjects[part.Name])
			one.subject = key
		}
		one.prepaid = leases(env.guards, c.live, a, key, "", env.now())
		for _, rate := range termsOf(c.live, a, key, "", env.now()).Limit.Rates() {
			one.window, one.units = rate.Window, cmp.Or(rate.Burst, rate.Limit)
			if grouped {
				one.cost = max(1, rate.Cost)
			}
			l.limits = append(l.limits, one)
		}
	}
	switch {
	case len(got) == len(l.limits):
	case len(a.Parts()) == 1 && !grouped: // a live limit that only the guard knows
		l.limits = slices.Repeat(l.limits[:1], len(got))
	default:
		return fmt.Errorf("%s has %s in the guard and %d in the code", a.Name, plural(int64(len(got)), "limit"), len(l.limits))
	}
	lowest := map[bool]int64{} // of the subjects' limits (true), and of the user's
	for i, f := range got {
		one := &l.limits[i]
		one.figures = f
		one.units = min(max(one.units, f.Limit*one.cost), (f.Limit+1)*one.cost-1) // as the answer says, if it is not as in the code
		shared := one.subject != ""
		lowest[shared] = min(f.Limit, cmp.Or(lowest[shared], f.Limit))
	}
	l.fits = lowest[r.subjects != nil]
	for r.subjects != nil && int64(len(r.users)-1)*lowest[false] <= l.fits {
		r.users = append(r.users, madeUp()) // without the first one, they could exceed the lowest limit
	}
	r.lanes = append(r.lanes, l)
	return nil
}

// wait waits for the end of windows that end soon, because the race must fit in one.
func (r *race) wait(ctx context.Context, env session) error {
	for _, l := range r.lanes {
		for _, one := range l.limits {
			left := time.UnixMilli(one.ResetAt).Sub(env.now())
			if left <= 0 || left >= min(10*time.Second, one.window/2) {
				continue
			}
			env.note("waiting " + wait(left) + " for the next window")
			select {
			case <-time.After(left):
			case <-ctx.Done():
				return errInterrupted
			}
		}
	}
	return nil
}

// calls returns the checks of the race, in turn, and a status of each user in each lane. Each
// lane has as many checks as its limits allow, and its part of one more for each caller.
func (r *race) calls() (checks, statuses []call) {
	more, turns := int64((r.callers+len(r.lanes)-1)/len(r.lanes)), int64(0)
	for _, l := range r.lanes {
		turns = max(turns, l.fits+more)
		for _, user := range r.users {
			statuses = append(statuses, call{lane: l, user: user, op: guards.Status})
		}
	}
	for turn := range turns {
		for _, l := range r.lanes {
			if turn < l.fits+more {
				checks = append(checks, call{lane: l, user: r.users[turn%int64(len(r.users))], op: guards.Check})
			}
		}
	}
	return checks, statuses
}

// manyRequests is from how many requests on verify says first that it sends them, because
// they take long, and a deployed guard and its table cost money.
const manyRequests = 1000

// send sends requests. The callers run at the same time. Each sends one request after the other.
func (r *race) send(ctx context.Context, env session, calls []call) error {
	next, failed := make(chan *call, len(calls)), make(chan error, r.callers)
	for i := range calls {
		next <- &calls[i]
	}
	close(next)
	var wg sync.WaitGroup
	for range r.callers {
		wg.Go(func() {
			for one := range next {
				if err := r.put(ctx, one); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(failed)
	if ctx.Err() != nil {
		env.note(fmt.Sprintf("stopped after %d of %s", len(calls)-len(next)-len(failed), plural(int64(len(calls)), "request")))
	}
	return <-failed
}

// put puts one request to the guard.
func (r *race) put(ctx context.Context, one *call) (err error) {
	one.sent = time.Now()
	one.Decision, err = r.ask(ctx, guard.Request{UserID: one.user, Activity: one.lane.activity, Op: one.op, Subjects: r.subjects})
	one.took = time.Since(one.sent)
	return err
}

// each returns the figures of each limit in the answer. It returns none if the answer has none.
func (c *call) each() []figures {
	if c.Limit == 0 {
		return c.Limits
	}
	return guard.LimitsOf(c.Decision)
}

// These errors mean that the callers did not all ask for one and the same limit.
var (
	// The requests were spread over two windows, and each window has the whole limit.
	errWindowEnded = errors.New("the window ended before all callers had asked: try again, or with fewer --callers")

	// The first actions of a bucket, of a log or of several limits expired during the
	// race, so more than the limit could get through, and items count less.
	errExpired = errors.New("counted actions expired before all callers had asked: try again, or with fewer --callers")

	errLimitChanged = errors.New("the limit changed while the callers asked: an instance follows a live limit within 30 s of use, so try again in 30 s")
)

// minOfPrepaid is how many actions of a new user get through at least: a prepaid key begins as
// any other, and leases begin when its item shows this many ids.
const minOfPrepaid = 100

// A spot is a limit in the item of a user or of a subject.
type spot struct{ item, limit string }

// in returns the spot that counts the actions of a user.
func (l raced) in(user string) spot { return spot{cmp.Or(l.subject, user), l.Name} }

// A taken is how many units in a spot were allowed, and the highest limit of a lane there.
type taken struct{ used, limit int64 }

// by reports whether an item that counts this many actions of l counts what was taken. If it is
// prepaid, it can count more, which instances hold.
func (t taken) by(l raced, counted int64) bool {
	want := (t.used + l.cost - 1) / l.cost
	return counted == want || l.prepaid && counted > want && (counted-1)*l.cost < t.limit
}

// judge decides whether a race is exact, see [race]. The statuses are those after the checks. Of
// prepaid limits, instances can hold what is left, or have it counted and not handed out.
func (r *race) judge(checks, statuses []call) (v raceResult, err error) {
	all, err := tally(slices.Concat(checks, statuses))
	if err != nil {
		return v, err
	}
	exceeded, full, least := false, true, int64(minOfPrepaid)
	for _, s := range statuses {
		least = min(least, s.lane.fits)
		full = full && slices.ContainsFunc(s.each(), func(f figures) bool { return f.Remaining == 0 })
		for i, f := range s.each() {
			one := s.lane.limits[i]
			t := all[one.in(s.user)]
			exceeded = exceeded || t.used > t.limit
			v.Prepaid = v.Prepaid || one.prepaid
			if v.Miscount == "" && !t.by(one, f.ActivityCount) {
				v.Miscount = fmt.Sprintf("the %s's item counts %d of %s", cmp.Or(limits.SubjectName(one.subject), "user"), f.ActivityCount, s.lane.activity)
			}
		}
	}
	r.report(&v, checks, all)
	if v.Prepaid {
		full = int64(v.Allowed) >= least
	}
	if exceeded {
		v.Miscount = "" // this says more
	}
	v.Exact = !exceeded && full && v.Miscount == ""
	if !v.Exact && slices.ContainsFunc(checks, call.expired) {
		return v, errExpired
	}
	return v, nil
}

// tally returns what was taken in each spot.
func tally(calls []call) (map[spot]taken, error) {
	all, windows := make(map[spot]taken), make(map[int64]bool) // each window has the whole limit
	for _, one := range calls {
		got, check := one.each(), one.op == guards.Check
		switch {
		case one.Reason == guards.Shadow:
			return nil, fmt.Errorf("%s is in shadow mode, in which the guard refuses nobody: set the mode to enforce, and try again", one.lane.activity)
		case check && !one.Allowed && len(got) < len(one.lane.limits):
			continue // a refusal as an error, or one that leaves out the other subjects
		case !slices.EqualFunc(one.lane.limits, got, func(a raced, b figures) bool { return a.Limit == b.Limit }):
			return nil, errLimitChanged
		}
		windows[one.WindowKey] = true
		for _, l := range one.lane.limits {
			t := all[l.in(one.user)]
			t.limit = max(t.limit, l.units)
			if check && one.Allowed {
				t.used += l.cost
			}
			all[l.in(one.user)] = t
		}
	}
	if len(windows) > 1 {
		return nil, errWindowEnded
	}
	return all, nil
}

// expired reports whether the action that c counted has expired by now. For example, a bucket
// 1/5s that counts at 12:00:00 is full again at 12:00:05, and can then count the next action.
// The guard's clock can be wrong, so expired only compares how much time passes.
func (c call) expired() bool {
	passed := time.Since(c.sent).Milliseconds()
	return c.At != 0 && slices.ContainsFunc(c.each(), func(f figures) bool { return f.ResetAt-c.At <= passed })
}

// clear removes the counts of the users and the subjects, even if ctx has ended. A guard clears
// users only. So without a table, the counts of the subjects expire by themselves.
func (r *race) clear(ctx context.Context, env session, items cleanup.Table) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(len(r.users))*patience)
	defer cancel()
	for _, user := range r.users {
		if err == nil {
			err = r.put(ctx, &call{lane: r.lanes[0], user: user, op: guards.Reset})
		}
	}
	for name, id := range r.subjects {
		if err == nil && items != nil {
			_, err = items.Erase(ctx, limits.SubjectID(name, id), table.Sweep{})
			err = reached(err)
		}
	}
	if err != nil {
		env.note("the counts of the test could not be removed; they expire by themselves")
	}
	return err
}
