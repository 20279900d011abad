package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// Each field of a guard's answer is in the Decision. As JSON, the Decision has the
// form of the answer, with the guard's name, the subjects and what was asked.
func TestADecisionHasEachFieldOfTheAnswer(t *testing.T) {
	several := limits.Guard{Name: "several-guard", Message: "too many", Activities: []limits.Activity{
		{Name: "post", Limit: policy.Must("minute: 1/1m, day: 2/1d")},
		{Name: "write", Limit: policy.Must("1/1m"), Subjects: []limits.Subject{{Name: "room", Limit: policy.Must("minute: 1/1m, day: 2/1d")}}},
	}}
	for name, tt := range map[string]struct {
		guard    limits.Guard
		activity string
		request  client.Request
	}{
		"fixed window": {cricket.Posts, "create_post", client.Request{UserID: "u1", Count: 6}},
		"partial":      {cricket.Posts, "create_post", client.Request{UserID: "u1", Count: 12, Partial: true}},
		"bypassed":     {cricket.Posts, "create_post", client.Request{UserID: "u1", Roles: []string{"admin"}}},
		"unlimited":    {cricket.Posts, "like", u1},
		"log":          {cricket.Pins, "pin", client.Request{UserID: "u1", Count: 60}},
		"bucket":       {cricket.Chat, "send_message", client.Request{UserID: "u1", Tier: "burst"}},
		"counter":      {cricket.Ingest, "ingest", client.Request{UserID: "u1", RequestID: "same"}},
		"reservoir":    {cricket.Jobs, "update_member_role", u1},
		"several":      {several, "several-guard/post", u1},
		"subjects":     {several, "several-guard/write", client.Request{UserID: "u1", Subjects: map[string]string{"room": "r1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newLocal(t, tt.guard)
				for range 11 { // a reservoir delays the last one
					d, err := g.Check(t.Context(), tt.activity, tt.request)
					compare(t, d, err, tt.guard.Name, g.raw)
				}
				if tt.guard.Name == "jobs-guard" { // a place cannot be given back
					return
				}
				for _, verb := range []func(context.Context, string, client.Request) (client.Decision, error){g.Status, g.Reset} {
					d, err := verb(t.Context(), tt.activity, client.Request{UserID: "u1", Subjects: tt.request.Subjects})
					compare(t, d, err, tt.guard.Name, g.raw)
				}
			})
		})
	}
}

func compare(t *testing.T, d client.Decision, err error, guard string, raw []byte) {
	t.Helper()
	testkit.OK(t, err)
	again := testkit.Must(json.Marshal(d))(t)
	added := `,"guard":"` + guard + `"`
	if d.Subjects != nil {
		added += `,"subjects":{"room":"r1"}`
	}
	if d.Asked.Tier != "" {
		added += `,"asked":{"tier":"` + d.Asked.Tier + `"}`
	}
	if want := strings.TrimSuffix(string(raw), "}") + added + "}"; string(again) != want {
		t.Errorf("as JSON, the decision is\n%s, want\n%s", again, want)
	}
	var stored client.Decision
	testkit.OK(t, json.Unmarshal(again, &stored))
	if diff := cmp.Diff(d, stored); diff != "" {
		t.Errorf("(-decision +from JSON):\n%s", diff)
	}
}

// A delayed job presents its place with the Decision's own ReadyAt.
func TestADelayedJobPresentsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLocal(t, cricket.Jobs)
		var d client.Decision
		var err error
		for d.Reason != client.Delayed {
			if d, err = g.Check(t.Context(), "update_member_role", client.Request{UserID: "group"}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(d.RetryAfter())
		d, err = g.Check(t.Context(), "update_member_role", client.Request{UserID: "group", RequestID: d.RequestID, ReadyAt: d.ReadyAt})
		if err != nil || !d.Allowed || d.Reason != client.OK {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

// The golden answers of a lockout are in the Decision, and the same as JSON.
func TestTheGoldenAnswersOfALockout(t *testing.T) {
	files, err := filepath.Glob("../schema/golden/lockout*.json")
	if err != nil || len(files) < 3 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, file := range files {
		text := testkit.Must(os.ReadFile(file))(t)
		var golden struct{ Answer json.RawMessage }
		var d, again client.Decision
		var want, got map[string]any
		testkit.OK(t, errors.Join(json.Unmarshal(text, &golden), json.Unmarshal(golden.Answer, &d), json.Unmarshal(golden.Answer, &want)))
		stored := testkit.Must(json.Marshal(d))(t)
		testkit.OK(t, errors.Join(json.Unmarshal(stored, &again), json.Unmarshal(stored, &got)))
		if diff := cmp.Diff(want, got); diff != "" || cmp.Diff(d, again) != "" || d.Locked != (want["locked"] == true) {
			t.Errorf("%s (-golden +decision):\n%s", file, diff)
		}
	}
}
