package command

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// Callers of both activities ask at once. Posts stop at their own limit or at the shared
// one, comments at the shared one. The shared budget is used up exactly.
func TestVerifyOfAGroup(t *testing.T) {
	p := ofContent(t)
	endpoint, _ := serveGuards(t, content, atPinned)
	endpoint = " --region us-east-1 --lambda-endpoint " + endpoint
	for _, where := range []string{"", " --store dynamodb", endpoint, " --function posts-guard" + endpoint} {
		for _, activity := range []string{"create_post", "add_comment"} {
			if activity == "add_comment" && strings.Contains(where, "--function") {
				continue
			}
			status, v, log := p.verifies(activity, where)
			posts, comments := v.Activities[0], v.Activities[1]
			if status != done || !v.Exact || v.Activity != "content" || v.Asked != 62 || posts.Asked != 16 || comments.Asked != 46 ||
				posts.Allowed > 10 || 2*posts.Allowed+comments.Allowed != 40 || v.Limits[1] != (usedLimit{"writes", 40, 40}) || v.Limits[0].Used != posts.Allowed {
				t.Errorf("verify %s%s: status %d, %+v, %s", activity, where, status, v, log)
			}
		}
	}
	p.prints("stats", "0 items of 0 users, 0 stale, in the table\n") // it has removed its users
	p.contains("verify create_post --store dynamodb", " allowed, exactly the limits: posts ", "writes 40/40 (create_post ")
}

// verifies runs guards verify with twelve callers, in memory, on the table or through a server.
func (p *project) verifies(activity, where string) (status int, v raceResult, log string) {
	p.t.Helper()
	run := p.run
	if !strings.Contains(where, "dynamodb") {
		run = func(line string) (int, string, string) { return command(p.t, p.page, line) }
	}
	status, out, log := run("verify " + activity + " --callers 12 --json" + where)
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		p.t.Fatalf("verify %s%s: status %d, %s%s", activity, where, status, out, log)
	}
	return status, v, log
}

// A guard that counts a group wrongly is not exact.
func TestVerifyFindsWrongGroups(t *testing.T) {
	all := cricket.Link(content...)
	group := []limits.Activity{all[0].Activities[0], all[1].Activities[0]}
	for name, wrong := range map[string]struct {
		change func(*ratelimit.Request) // what the guard does wrong
		each   time.Duration            // how long an answer takes
		want   error
		exact  bool
	}{
		"nothing is wrong":  {func(*ratelimit.Request) {}, 0, nil, true},
		"each counts alone": {func(r *ratelimit.Request) { r.Group = "" }, 0, nil, false},
		"a post costs 1": {func(r *ratelimit.Request) {
			r.Policy = policy.Must(strings.ReplaceAll(r.Policy.String(), " cost 2", ""))
		}, 0, errLimitChanged, false},
		"comments have another limit": {func(r *ratelimit.Request) {
			r.Policy = policy.Must(strings.ReplaceAll(r.Policy.String(), "writes: 40/1h", "writes: 30/1h"))
		}, 0, nil, true},
		"the window of posts ends": {func(*ratelimit.Request) {}, 100 * time.Millisecond, errExpired, false},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			now := atPinned
			if wrong.each > 0 {
				now = func() time.Time { return pinned.Add(41*time.Second + 500*time.Millisecond).Add(time.Since(began)) }
			}
			l := &ratelimit.Limiter{Store: new(memstore.Store), Now: now}
			var mu sync.Mutex
			ask := asking(l, func(r guard.Request) []ratelimit.Part {
				mu.Lock()
				defer mu.Unlock()
				time.Sleep(wrong.each / 10)
				_, a, _ := all.Activity(r.Activity)
				parts := alone(r, a.Limit)
				parts[0].Group = a.Group
				if r.Op != guards.Status || name == "comments have another limit" {
					wrong.change(&parts[0].Request)
				}
				return parts
			})
			c := verifyCommand{Activity: "create_post", Callers: 4}
			v, err := c.race(t.Context(), session{guards: all, err: io.Discard, now: atPinned}, ask, group)
			if !errors.Is(err, wrong.want) || v.Exact != wrong.exact {
				t.Errorf("%+v, %v, want %v", v, err, wrong.want)
			}
		})
	}
}

// The functions of a group's guards have one prefix. Another name can't stand for all.
func TestFunctionsOfAGroup(t *testing.T) {
	all := cricket.Link(content...)
	g := limits.Guard{Name: "posts-guard", Activities: all.Grouped()}
	for function, want := range map[string]string{"": "comments-guard", "posts-guard": "comments-guard", "dev-posts-guard": "dev-comments-guard", "mine": ""} {
		names, err := (&verifyCommand{Function: function}).functions(session{guards: all}, g)
		if names["add_comment"] != want || (err != nil) != (want == "") {
			t.Errorf("%q: %v, %v, want %s", function, names, err, want)
		}
	}
}

// Actions of several costs can use up units that actions of one cost leave. For example, of 11
// units, three actions of cost 3 use 9, and two of cost 3 and one of cost 4 use 10. Activities can
// also have several limits of the same count, which are shown in actions if they have names.
func TestVerifyOfUnevenGroups(t *testing.T) {
	for _, tt := range []struct {
		read, write guards.Limit // no write: an activity alone
		callers     string
		want        string
	}{
		{"units: 11/1h cost 3", "units: 11/1h cost 4", "1", "api: 3 of 7 allowed, exactly the limits: units 10/11 (read 2 of 4, write 1 of 3), in "},
		{"units: 8/1h", "units: 3/1h", "1", "api: 8 of 13 allowed, exactly the limits: units 8/8 (read 7 of 9, write 1 of 4), in "},
		{"hour: 20/1h cost 2, day: 100/1d", "", "5", "read: 10 of 15 allowed, exactly the limit: hour 10/10, day 10/100, in "},
	} {
		all := []guards.Activity{{Name: "read", Limit: tt.read}}
		if tt.write != "" {
			all = []guards.Activity{{Name: "read", Limit: tt.read, Group: "api"}, {Name: "write", Limit: tt.write, Group: "api"}}
		}
		page := []guards.Guard{{Name: "api-guard", Message: "m", Activities: all}}
		if status, out, log := command(t, page, "verify read --callers "+tt.callers); status != done || !strings.HasPrefix(out, tt.want) {
			t.Errorf("%+v: status %d, %s%s", tt, status, out, log)
		}
	}
}

// One unit more than the limit is too many, even if the activity with the higher cost shows the
// same number of actions.
func TestVerifyCountsTheUnitsOfAGroup(t *testing.T) {
	for writes, want := range map[int]bool{20: true, 21: false} {
		post := &lane{activity: "post", limits: []raced{{figures: figures{Name: "writes", Limit: 15}, cost: 2, units: 30}}, fits: 15}
		comment := &lane{activity: "comment", limits: []raced{{figures: figures{Name: "writes", Limit: 30}, cost: 1, units: 30}}, fits: 30}
		r := race{lanes: []*lane{post, comment}, users: []string{"u1"}}
		allow := func(l *lane) call {
			return call{lane: l, user: "u1", op: guards.Check, Decision: guards.Decision{Allowed: true, Limits: []figures{{Limit: l.limits[0].Limit}}}}
		}
		checks := append(slices.Repeat([]call{allow(post)}, 5), slices.Repeat([]call{allow(comment)}, writes)...)
		statuses := []call{
			{lane: post, user: "u1", op: guards.Status, Decision: guards.Decision{Limits: []figures{{Limit: 15, ActivityCount: int64(11+writes) / 2}}}},
			{lane: comment, user: "u1", op: guards.Status, Decision: guards.Decision{Limits: []figures{{Limit: 30, ActivityCount: int64(10 + writes)}}}},
		}
		if v, err := r.judge(checks, statuses); err != nil || v.Exact != want || v.Miscount != "" {
			t.Errorf("5 posts of cost 2 and %d comments of 30 units: %+v, %v", writes, v, err)
		}
	}
}

// Several users ask in one room. The room's limit is used up exactly, and each item counts
// what was allowed.
func TestVerifyOfSubjects(t *testing.T) {
	p := ofRooms(t)
	endpoint, _ := serveGuards(t, rooms, atPinned)
	for _, where := range []string{"", " --store dynamodb", " --region us-east-1 --lambda-endpoint " + endpoint} {
		for activity, want := range map[string][]usedLimit{
			"write":  {{"room", 4, 4}, {"tenant.minute", 20, 4}, {"tenant.day", 100, 4}},
			"export": {{"room", 1, 1}},
			"note":   {{"room.minute", 15, 15}},
		} {
			status, v, log := p.verifies(activity, where)
			if status != done || !v.Exact || v.Limit != want[0].Limit || v.Allowed != int(v.Limit) || v.Asked != int(v.Limit)+12 || v.Users < 2 || !slices.Equal(v.Limits, want) {
				t.Errorf("verify %s%s: status %d, %+v, %s", activity, where, status, v, log)
			}
		}
	}
	p.prints("stats", "0 items of 0 users, 0 stale, in the table\n") // it has removed its users and subjects
	mixed := []guards.Guard{{Name: "notes-guard", Message: "m", Activities: []guards.Activity{
		{Name: "note", Limit: "writes: 10/1m", Group: "content", Subjects: []guards.Subject{{Name: "room", Limit: "minute: 30/1m"}}},
		{Name: "tag", Limit: "writes: 10/1m", Group: "content"},
		{Name: "sort", Limit: "writes: 10/1m cost 2", Group: "content"},
	}}}
	for activity, want := range map[string]string{"note": "room.minute 30/30", "tag": "writes 10/10 (tag "} {
		if status, out, log := command(t, mixed, "verify "+activity); status != done || !strings.Contains(out, want) {
			t.Errorf("%s: status %d, %s%s, want %s", activity, status, out, log, want)
		}
	}
	p.contains("verify write --store dynamodb", "write: 4 of 54 allowed, exactly the lowest limit of a subject: room 4/4, tenant.minute 4/20, tenant.day 4/100 (3 users), in ")
}

// A guard that counts subjects wrongly is not exact.
func TestVerifyFindsWrongSubjects(t *testing.T) {
	all := cricket.Link(rooms...)
	_, write, _ := all.Activity("write")
	for name, wrong := range map[string]struct {
		change func(parts []ratelimit.Part) // what the guard does wrong at a check
		limit  int64                        // what the guard says that the room's limit is; 0: the truth
		want   error
		exact  bool
	}{
		"nothing is wrong":        {change: func([]ratelimit.Part) {}, exact: true},
		"each user has a room":    {change: func(parts []ratelimit.Part) { parts[1].UserID += parts[0].UserID }},
		"the tenant is forgotten": {change: func(parts []ratelimit.Part) { parts[2].UserID = " tenant other" }},
		"users have one item":     {change: func(parts []ratelimit.Part) { parts[0].UserID = "u" }},
		"the limit changes":       {change: func([]ratelimit.Part) {}, limit: 5, want: errLimitChanged},
	} {
		t.Run(name, func(t *testing.T) {
			guarded := asking(&ratelimit.Limiter{Store: new(memstore.Store), Now: atPinned}, func(r guard.Request) []ratelimit.Part {
				parts := alone(r, write.Limit)
				if r.Op == guards.Reset {
					return parts
				}
				for _, s := range write.Subjects {
					part := ratelimit.Part{Request: parts[0].Request, Subject: s.Name}
					part.UserID, part.For, part.Policy = limits.SubjectID(s.Name, r.Subjects[s.Name]), r.UserID, s.Limit
					parts = append(parts, part)
				}
				if r.Op == guards.Check {
					wrong.change(parts)
				}
				return parts
			})
			ask := func(ctx context.Context, r guard.Request) (guards.Decision, error) {
				got, err := guarded(ctx, r)
				if r.Op == guards.Check && got.Allowed && wrong.limit > 0 {
					got.Limits[1].Limit = wrong.limit
				}
				return got, err
			}
			c := verifyCommand{Activity: "write", Callers: 4}
			v, err := c.race(t.Context(), session{guards: all, err: io.Discard, now: atPinned}, ask, []limits.Activity{write})
			if !errors.Is(err, wrong.want) || v.Exact != wrong.exact {
				t.Errorf("%+v, %v, want %v", v, err, wrong.want)
			}
		})
	}
}
