package command

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
)

// What a guard decides about a subject is what guards status and limits --live show, whatever operators have set and granted.
func TestCommandsShowWhatTheGuardDecidesAboutSubjects(t *testing.T) {
	guards, err := rooms.Link()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		var s liveedit.Draft
		tier := rapid.SampledFrom([]string{"", "pro", "gold"})
		for range rapid.IntRange(0, 4).Draw(t, "changes") {
			name := rapid.SampledFrom([]string{"write/room", "write/tenant", "note/room", "content.room.minute", "write"}).Draw(t, "name")
			limit := rapid.SampledFrom(map[string][]string{
				"write/room": {"5/1m", "2/1m", "5/1h"}, "write/tenant": {"minute: 5/1m, day: 9/1d", "5/1m"}, "note/room": {"minute: 50/1m", "minute: 7/1m"},
				"content.room.minute": {"26/1m", "16/1m", "20/1h"}, "write": {"8/1m"},
			}[name]).Draw(t, "limit")
			s = s.Set(name, tier.Draw(t, "tier"), limit, "")
		}
		at := pinned.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "hour")) * time.Hour)
		key := rapid.SampledFrom([]string{" room r1", " tenant t1"}).Draw(t, "subject")
		for range rapid.IntRange(0, 2).Draw(t, "grants") {
			granted := tier.Filter(func(tier string) bool { return tier != "" }).Draw(t, "granted tier")
			s = s.Grant(live.Grant{UserID: key, Tier: granted, Until: pinned.Add(time.Duration(rapid.IntRange(-2, 30).Draw(t, "ends in hours")) * time.Hour), Reason: "r"}, time.Time{})
		}
		r := guard.Request{
			UserID: "u1", Activity: rapid.SampledFrom([]string{"write", "note"}).Draw(t, "activity"), Tier: tier.Draw(t, "tier of the caller"),
			Op: guard.Status, Subjects: map[string]string{"room": "r1", "tenant": "t1"},
		}
		g, code, _ := guards.Activity(r.Activity)
		subject := subjectOf(key)
		if !code.Has("tenant") {
			delete(r.Subjects, "tenant")
		}
		if !code.Has(subject) {
			t.Skip("the activity has no such subject")
		}
		content, err := s.Document()
		if err != nil {
			t.Fatal(err)
		}
		f := &live.Follower{Source: document{content: content}, Guards: guards}
		if err := f.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
		h := &guard.Handler{Guard: g, Live: f, Limiter: &ratelimit.Limiter{Store: new(memstore.Store), Now: func() time.Time { return at }}}
		a, err := h.Decide(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		var want []int64
		for _, l := range a.Decision.Each {
			if l.Name == subject || strings.HasPrefix(l.Name, subject+".") {
				want = append(want, l.Limit)
			}
		}
		v := session{guards: guards, now: func() time.Time { return at }}.viewOf(s.Settings)
		one := standings(limits.Guards{{Activities: []limits.Activity{code}}}, key, r.Tier, nil, v.limits, at)[0]
		got := []int64{one.Limit}
		if len(one.Limits) > 0 {
			got = nil
		}
		for _, f := range one.Limits {
			got = append(got, f.Limit)
		}
		shown := policy.Must(v.limitOfSubject(code, subject, r.Tier, key))
		for i, rate := range shown.Rates() {
			if want[i] != got[i] || want[i] != rate.Actions() {
				t.Fatalf("the guard has %v for %s, status shows %v, and limits --live shows %s", want, shown, got, shown)
			}
		}
	})
}

// limitOfSubject returns what limits --live shows of a subject to a reader who
// knows its grants: the row of the tier that is in force, or else that without a tier.
func (v view) limitOfSubject(code limits.Activity, subject, tier, key string) string {
	rows := map[string]string{}
	for _, l := range v.list() {
		if l.Activity == code.Name && l.Subject == subject {
			rows[l.Tier] = l.Limit
		}
	}
	for _, g := range liveedit.GrantsAt(v.Settings, v.at) {
		if _, ok := rows[g.Tier]; ok && g.UserID == key {
			tier = g.Tier
		}
	}
	if text, ok := rows[tier]; ok {
		return text
	}
	return rows[""]
}
