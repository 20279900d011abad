package command

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// asking asks a limiter in the place of a function. Parts tells what counts a request.
func asking(l *ratelimit.Limiter, parts func(guard.Request) []ratelimit.Part) asker {
	return func(ctx context.Context, r guard.Request) (guards.Decision, error) {
		d, err := l.DecideAll(ctx, r.Op, parts(r), false)
		answer := guard.Answer{Request: r, Allowed: d.Allowed, Reason: d.Reason, Decision: &d}
		return answer.Public(), err
	}
}

// alone is a request that only the user's item counts.
func alone(r guard.Request, p policy.Policy) []ratelimit.Part {
	return []ratelimit.Part{{Request: ratelimit.Request{UserID: r.UserID, Activity: r.Activity, Policy: p, Count: 1, ID: rand.Text(), Fresh: true}}}
}

// If counted actions expire during the race, more than the limit gets through,
// so verify must not compare that with the limit.
func TestVerifyNeedsARaceThatIsShorterThanTheLimit(t *testing.T) {
	for _, tt := range []struct {
		limit string
		each  time.Duration // how long an answer takes
		want  error
	}{
		{"bucket 1/5s", 20 * time.Millisecond, nil},
		{"bucket 1/5s", 6 * time.Second, errExpired},
		{"bucket 10/1m burst 15", 100 * time.Millisecond, nil},
		{"bucket 10/1m burst 15", time.Second, errExpired},
		{"log 10/1s", 10 * time.Millisecond, nil},
		{"log 10/1s", 200 * time.Millisecond, errExpired},
		{"second: 10/1s, day: 100/1d", 10 * time.Millisecond, nil},
		{"second: 10/1s, day: 100/1d", 200 * time.Millisecond, errExpired},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := policy.Must(tt.limit)
			limiter := &ratelimit.Limiter{Store: new(memstore.Store), Now: func() time.Time { return time.Now().AddDate(25, 0, 0) }}
			ask := asking(limiter, func(r guard.Request) []ratelimit.Part {
				time.Sleep(tt.each)
				return alone(r, p)
			})
			c := verifyCommand{Callers: 1}
			v, err := c.race(t.Context(), session{err: io.Discard, now: limiter.Now}, ask, []limits.Activity{{Name: "a", Limit: p}})
			if !errors.Is(err, tt.want) || tt.want == nil && !v.Exact {
				t.Errorf("%s, %v for each answer: %+v, %v, want %v", tt.limit, tt.each, v, err, tt.want)
			}
		})
	}
}

// A guard that lets too many through in a short time is wrong.
func TestVerifyReportsTooManyOfALimitWithoutAWindow(t *testing.T) {
	ask := func(_ context.Context, r guard.Request) (guards.Decision, error) {
		return guards.Decision{Allowed: r.Op == guards.Check, Limit: 10, ResetAt: 3_600_000, At: 1}, nil
	}
	c := verifyCommand{Callers: 5}
	if v, err := c.race(t.Context(), session{now: atPinned}, ask, one("log 10/1h")); err != nil || v.Exact || v.Allowed != 15 {
		t.Errorf("%+v, %v, want 15 of 10 allowed", v, err)
	}
}

// A mode that refuses no request can't be verified.
func TestVerifyInALiveMode(t *testing.T) {
	p := ofApp(t)
	for mode, want := range map[string]string{
		"off":    "guards: create_room is not limited now: the guard answers unlimited\n",
		"shadow": "guards: create_room is in shadow mode, in which the guard refuses nobody: set the mode to enforce, and try again\n",
	} {
		p.does("limits set create_room --mode " + mode + " --yes")
		p.fails("verify create_room --callers 5 --store dynamodb", wrongUse, want)
	}
}

// A live limit that only a function knows can consist of several.
func TestVerifyOfSeveralLiveLimits(t *testing.T) {
	l := &ratelimit.Limiter{Store: new(memstore.Store), Now: atPinned}
	ask := asking(l, func(r guard.Request) []ratelimit.Part { return alone(r, policy.Must("minute: 20/1m, hour: 7/1h")) })
	c := verifyCommand{Callers: 5}
	v, err := c.race(t.Context(), session{now: atPinned}, ask, one("10/1m"))
	if want := []usedLimit{{"minute", 20, 7}, {"hour", 7, 7}}; err != nil || !v.Exact || v.Asked != 12 || !slices.Equal(v.Limits, want) {
		t.Errorf("%+v, %v, want %v", v, err, want)
	}
}

// leased are a group of prepaid limits, and a prepaid room whose users' limit is not prepaid.
var leased = []guards.Guard{
	{Name: "posts-guard", Message: "Too many.", Activities: []guards.Activity{
		{Name: "post", Limit: "posts: 300/1h prepaid, writes: 1000/1h cost 2 prepaid", Group: "content"},
		{Name: "comment", Limit: "writes: 1000/1h prepaid", Group: "content"},
	}},
	{Name: "rooms-guard", Message: "Too many.", Activities: []guards.Activity{
		{Name: "write", Limit: "90/1m", Subjects: []guards.Subject{{Name: "room", Limit: "400/1m prepaid"}}},
	}},
}

// A running guard counts by leases. A group of prepaid limits and a prepaid room are judged by
// the promise of a prepaid limit.
func TestVerifyOfPrepaidLimitsTogether(t *testing.T) {
	credentials(t)
	endpoint, _ := serveGuards(t, leased, atPinned)
	for activity, want := range map[string]string{
		"post":  ", at most the limits, as prepaid ones promise: posts ",
		"write": ", at most the lowest limit of a subject, 400, as prepaid ones promise: room ",
	} {
		for _, where := range []string{"", " --region us-east-1 --lambda-endpoint " + endpoint} {
			if status, out, log := command(t, leased, "verify "+activity+" --callers 8"+where); status != done || !strings.Contains(out, want) {
				t.Errorf("verify %s%s: status %d, %s%s, want %q", activity, where, status, out, log, want)
			}
		}
	}
}

// A prepaid item can count more than what was allowed, up to its limit. It is wrong if it counts
// less or above the limit, or if less than the first 100 get through. Other items must count exactly.
func TestVerifyFindsWrongPrepaidCounts(t *testing.T) {
	all := cricket.Link(leased...)
	_, write, _ := all.Activity("write")
	_, post, _ := all.Activity("post")
	_, comment, _ := all.Activity("comment")
	for _, test := range []struct {
		allowed, users, item int64 // how many requests are allowed, and what is added to the users' and the prepaid counts
		want                 bool
	}{
		{allowed: 99}, {allowed: 100, want: true}, {allowed: 150, item: 60, want: true}, {allowed: 150, item: -1},
		{allowed: 150, item: 3000}, {allowed: 150, users: 1}, {allowed: 3000},
	} {
		counted := map[string]int64{}
		allowed := int64(0)
		ask := func(_ context.Context, r guard.Request) (guards.Decision, error) {
			room, own := figures{Name: "room", Limit: 400}, figures{Limit: 90}
			got := guards.Decision{Limit: 90}
			if r.Op == guards.Check && allowed < test.allowed {
				allowed++
				counted[r.UserID]++
				counted[r.Activity]++
				got.Allowed = true
			}
			switch cost := int64(2); r.Activity {
			case "post":
				got.Limit = 300
				units := counted["post"]*cost + counted["comment"]
				got.Limits = []figures{{Name: "posts", Limit: 300, ActivityCount: counted["post"] + test.item}, {Name: "writes", Limit: 500, ActivityCount: (units+1)/cost + test.item}}
			case "comment":
				got.Limit = 1000
				got.Limits = []figures{{Name: "writes", Limit: 1000, ActivityCount: counted["post"]*cost + counted["comment"] + test.item}}
			default:
				room.ActivityCount, own.ActivityCount = allowed+test.item, counted[r.UserID]+test.users
				got.Limits = []figures{own, room}
			}
			return got, nil
		}
		env := session{guards: all, err: io.Discard, now: atPinned}
		c := verifyCommand{Activity: "write", Callers: 1}
		if v, err := c.race(t.Context(), env, ask, []limits.Activity{write}); err != nil || !v.Prepaid || v.Exact != test.want {
			t.Errorf("subjects, %+v: %+v, %v", test, v, err)
		}
		if test.users != 0 {
			continue
		}
		clear(counted)
		allowed = 0
		c.Activity = "post"
		if v, err := c.race(t.Context(), env, ask, []limits.Activity{post, comment}); err != nil || !v.Prepaid || v.Exact != test.want {
			t.Errorf("group, %+v: %+v, %v", test, v, err)
		}
	}
}
