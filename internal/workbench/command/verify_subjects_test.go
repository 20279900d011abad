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
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

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
			l := &ratelimit.Limiter{Store: new(memstore.Store), Now: atPinned}
			var mu sync.Mutex
			ask := func(ctx context.Context, r guard.Request) (got guards.Decision, err error) {
				mu.Lock()
				defer mu.Unlock()
				one := ratelimit.Request{UserID: r.UserID, Activity: r.Activity, Policy: write.Limit, Count: 1, ID: time.Now().String(), Fresh: true}
				if r.Op == guard.Reset {
					_, err := l.Decide(ctx, r.Op, one)
					return got, err
				}
				parts := []ratelimit.Part{{Request: one}}
				for _, s := range write.Subjects {
					part := ratelimit.Part{Request: one, Subject: s.Name}
					part.UserID, part.For, part.Policy = limits.SubjectID(s.Name, r.Subjects[s.Name]), r.UserID, s.Limit
					parts = append(parts, part)
				}
				if r.Op == guard.Check {
					wrong.change(parts)
				}
				d, err := l.DecideAll(ctx, r.Op, parts, false)
				if err != nil {
					return got, err
				}
				answer := guard.Answer{Request: r, Allowed: d.Allowed, Reason: d.Reason, Decision: &d}
				err = json.Unmarshal(answer.AppendJSON(nil), &got)
				if r.Op == guard.Check && d.Allowed && wrong.limit > 0 {
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
