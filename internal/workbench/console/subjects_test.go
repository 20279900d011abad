package console_test

import (
	"html"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/wiring"
	"github.com/cric-talk/guards/internal/workbench/console"
)

// ofRooms starts a rig whose messages count for a room and, if it is named, a tenant.
func ofRooms(t *testing.T) *rig {
	t.Helper()
	return start(t, 0, func(c *console.Console, _ *wiring.Settings) {
		c.Guards = limits.Guards{{Name: "rooms-guard", Message: "Too many.", Activities: []limits.Activity{
			{Name: "plain", Limit: policy.Must("9/1m")},
			{Name: "write", Limit: policy.Must("3/1m"), Subjects: []limits.Subject{
				{Name: "room", Limit: policy.Must("4/1m"), Tiers: limits.Tiers{"pro": policy.Must("9/1m")}},
				{Name: "tenant", Limit: policy.Must("minute: 20/1m, day: 100/1d"), Optional: true},
			}},
		}}}
	})
}

// The page has a field for subjects, and lists their limits. A page without such an
// activity has none.
func TestTheFormTakesSubjects(t *testing.T) {
	page := html.UnescapeString(ofRooms(t).get("/"))
	for _, want := range []string{
		`<input id="subjects" name="subjects"`, `data-guard="rooms-guard" data-subjects="room=room1 tenant=tenant1">write`, `data-guard="rooms-guard">plain`,
		`<span class="quiet">room 4/1m, optional tenant minute: 20/1m, day: 100/1d</span>`, `room, pro: 9/1m`, `<option value="pro">`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	if page := start(t, 0, nil).get("/"); strings.Contains(page, "subjects") {
		t.Error("a page without subjects has a field for them")
	}
}

// Users and subjects have windows of their own. Each has only its own limits.
func TestWindowsOfSubjects(t *testing.T) {
	r := ofRooms(t)
	s := r.watch("")
	r.app("rooms-guard", `{"userId": "u1", "activity": "write", "count": 3, "subjects": {"room": "r42", "tenant": "acme"}}`)
	seen := s.wait("windows", `"user":"tenant=acme"`).data
	for _, want := range []string{
		`"user":"u1","activity":"write","guard":"rooms-guard","limit":"3/1m"`, `"bars":[{"name":"","used":3,"limit":3,`,
		`"user":"room=r42","activity":"write","guard":"rooms-guard","limit":"4/1m"`, `"bars":[{"name":"","used":3,"limit":4,`,
		`"bars":[{"name":"minute","used":3,"limit":20,`, `{"name":"day","used":3,"limit":100,`,
	} {
		if !strings.Contains(seen, want) {
			t.Errorf("the windows lack %s:\n%s", want, seen)
		}
	}
	if strings.Count(seen, `"reset":""`) != 2 || !strings.Contains(seen, `"reset":"{\"userId\":\"u1\",\"activity\":\"write\",\"op\":\"reset\"}"`) {
		t.Errorf("want a reset for the user alone:\n%s", seen)
	}
	// The room refuses u2, whose own window has not changed.
	r.app("rooms-guard", `{"userId": "u2", "activity": "write", "count": 2, "subjects": {"room": "r42"}}`)
	s.wait("windows", `"user":"u2","activity":"write","guard":"rooms-guard","limit":"3/1m","group":"","slots":"","bars":[],`) // not known yet
	seen = s.wait("windows", `"slots":"","bars":[{"name":"","used":0,"limit":3,`).data
	if !strings.Contains(seen, `"again":"{\"userId\":\"u2\",\"activity\":\"write\",\"count\":2,\"subjects\":{\"room\":\"r42\"}}"`) {
		t.Errorf("the windows are %s", seen)
	}
	if !strings.Contains(seen, `"refused":"Refused by room=r42."`) {
		t.Errorf("the window of u2 does not name the room:\n%s", seen)
	}
	if page := html.UnescapeString(r.get("/")); !strings.Contains(page, `data-text="detail">room=r42: 3 of 4 used, 1 left`) {
		t.Errorf("the answer to u2 does not name the room:\n%s", page)
	}
	if got := r.send("GET", "/console/picture.svg?user=u2&activity=write", ""); got.StatusCode != 404 {
		t.Errorf("the picture of u2 has what the room refused: %d", got.StatusCode)
	}
	if picture := r.get("/console/picture.svg?user=+room+r42&activity=write"); !strings.Contains(picture, "room=r42") {
		t.Errorf("the picture of the room is %s", picture)
	}
	// A release gives back for all, and the answer's button knows the subjects.
	page := html.UnescapeString(r.get("/"))
	if !strings.Contains(page, `"op":"release","count":3,"subjects":{"room":"r42","tenant":"acme"},"requestId":`) || !strings.Contains(page, "u1, room=r42, tenant=acme") {
		t.Error("the button that gives back does not name the subjects")
	}
	// A reset clears the user alone.
	r.app("rooms-guard", `{"userId": "u1", "activity": "write", "op": "reset"}`)
	seen = s.wait("windows", `"user":"u1","activity":"write","guard":"rooms-guard","limit":"3/1m","group":"","slots":"","bars":[{"name":"","used":0`).data
	if !strings.Contains(seen, `"used":3,"limit":4,`) {
		t.Errorf("after a reset of a user, the room has forgotten its messages: %s", seen)
	}
}
