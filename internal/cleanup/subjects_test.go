package cleanup_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	. "github.com/cric-talk/guards/internal/cleanup"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/liveedit"
	"github.com/cric-talk/guards/internal/liveedit/dynamoedit"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/table"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// An erasure of a room deletes what the guard counted for it, in every activity, and its
// grant. It leaves the room's users, other rooms and a tenant of the same id as they are.
func TestASubjectIsErased(t *testing.T) {
	endpoint, name := dynamotest.Endpoint(t), dynamotest.Table(t)
	now := time.UnixMilli(1_700_000_000_000)
	clock := func() time.Time { return now }
	room := []limits.Subject{
		{Name: "room", Limit: policy.Must("4/1m"), Tiers: limits.Tiers{"big": policy.Must("9/1m")}},
		{Name: "tenant", Limit: policy.Must("log 9/1d"), Optional: true},
	}
	g := limits.Guard{Name: "rooms-guard", Message: "m", Activities: []limits.Activity{
		{Name: "write", Limit: policy.Must("100/1m"), Subjects: room},
		{Name: "upload", Limit: policy.Must("bucket 100/1m"), Subjects: room[:1]},
	}}
	config, client := dynamotest.Config(endpoint), dynamotest.Client(t, endpoint)
	settings := dynamoedit.New(client, name)
	var log bytes.Buffer
	c := &Cleanup{Table: table.New(client, name), Live: settings, Guards: limits.Guards{g}, Now: clock, Log: slog.New(slog.NewJSONHandler(&log, nil))}
	grant := func(key string) {
		t.Helper()
		testkit.OK(t, liveedit.Edit(t.Context(), settings, c.Guards, liveedit.Change{At: now, By: "op", Op: "grant"}, func(s liveedit.Draft) (liveedit.Draft, error) {
			return s.Grant(live.Grant{UserID: key, Tier: "big", Until: now.Add(time.Hour), Reason: "fair"}, now), nil
		}))
	}
	grant(limits.SubjectID("room", canary))
	grant(limits.SubjectID("room", "r2"))
	ask := func(rest string) string {
		t.Helper()
		h := &guard.Handler{Guard: g, Limiter: &ratelimit.Limiter{Store: dynamostore.New(config, name), Timeout: time.Minute, Now: clock}}
		h.Live = &live.Follower{Source: settings, Guards: c.Guards, Now: clock}
		h.Live.Refresh(t.Context(), time.Minute)()
		return string(testkit.Must(h.Invoke(t.Context(), []byte(`{"userId": "u1", `+rest+`}`)))(t))
	}
	ask(`"activity": "write", "count": 4, "subjects": {"room": "` + canary + `", "tenant": "` + canary + `"}`)
	ask(`"activity": "upload", "count": 4, "subjects": {"room": "` + canary + `"}`)
	ask(`"activity": "write", "count": 4, "subjects": {"room": "r2"}`)
	erase := func(event, want string) {
		t.Helper()
		if out, err := c.Invoke(t.Context(), []byte(event)); err != nil || !strings.HasPrefix(string(out), want) {
			t.Errorf("%s: %s, %v, want %s...", event, out, err, want)
		}
	}
	erase(`{}`, `{"scanned":9,"stale":0,"deleted":0,"users":1,"subjects":{"room":2,"tenant":1},"finished":true,`)
	one := `{"subject": {"room": "` + canary + `"}`
	erase(one+`, "dryRun": true}`, `{"scanned":2,"stale":2,"deleted":0,"users":0,"subjects":{"room":1},"finished":true,`)
	if s, _, err := liveedit.Read(t.Context(), settings); err != nil || len(s.Grants) != 2 {
		t.Errorf("after a dry run: %+v, %v, want two grants", s.Grants, err)
	}
	erase(one+`}`, `{"scanned":2,"stale":2,"deleted":2,"users":0,"subjects":{"room":1},"finished":true,`)
	erase(one+`}`, `{"scanned":0,"stale":0,"deleted":0,"users":0,"finished":true,`)
	if s, _, err := liveedit.Read(t.Context(), settings); err != nil || len(s.Grants) != 1 || s.Grants[0].UserID != limits.SubjectID("room", "r2") {
		t.Errorf("%+v, %v, want the grant of the other room alone", s.Grants, err)
	}
	for subjects, want := range map[string]string{
		`{"room": "` + canary + `"}`:                      `{"name":"room","limit":4,"activityCount":0,`, // no grant, nothing counted
		`{"room": "r2", "tenant": "` + canary + `"}`:      `{"name":"room","limit":9,"activityCount":4,`,
		`{"tenant": "` + canary + `", "room": "another"}`: `{"name":"tenant","limit":9,"activityCount":4,`,
	} {
		out := ask(`"activity": "write", "op": "status", "subjects": ` + subjects)
		if !strings.Contains(out, want) || !strings.Contains(out, `{"name":"write","limit":100,"activityCount":8,`) {
			t.Errorf("%s: %s, want %s and 8 of the user", subjects, out, want)
		}
	}
	changes, err := settings.SettingsHistory(t.Context())
	for _, change := range changes {
		log.WriteString(change.What + change.Why + change.Activity + change.Tier)
	}
	if err != nil || len(changes) != 3 || strings.Contains(log.String(), canary) {
		t.Errorf("the log and the history are %s, %v, want 3 changes, and no id of a room", log.String(), err)
	}
}
