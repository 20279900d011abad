package console_test

import (
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/testkit"
)

// ofRooms starts a rig whose messages count for a room and, if it is named, a tenant.
func ofRooms(t *testing.T) *rig {
	t.Helper()
	return startFor(t, guards.Guard{Name: "rooms-guard", Message: "Too many.", Activities: []guards.Activity{
		{Name: "plain", Limit: "9/1m"},
		{Name: "write", Limit: "3/1m", Subjects: []guards.Subject{
			{Name: "room", Limit: "4/1m", Tiers: guards.Tiers{"pro": "9/1m"}},
			{Name: "tenant", Limit: "minute: 20/1m, day: 100/1d", Optional: true},
		}},
	}})
}

// The page has a field for subjects, and lists their limits. A page without such an
// activity has none.
func TestTheFormTakesSubjects(t *testing.T) {
	page := html.UnescapeString(ofRooms(t).get("/"))
	testkit.Contains(t, "the page", page,
		`<input id="subjects" name="subjects"`, `data-guard="rooms-guard" data-subjects="room=room1 tenant=tenant1">write`, `data-guard="rooms-guard">plain`,
		`<span class="quiet">room 4/1m, optional tenant minute: 20/1m, day: 100/1d</span>`, `room, pro: 9/1m`, `<option value="pro">`,
	)
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
	testkit.Contains(t, "the event", seen,
		`"user":"u1","activity":"write","guard":"rooms-guard","limit":"3/1m"`, `"bars":[{"name":"","used":3,"limit":3,`,
		`"user":"room=r42","activity":"write","guard":"rooms-guard","limit":"4/1m"`, `"bars":[{"name":"","used":3,"limit":4,`,
		`"bars":[{"name":"minute","used":3,"limit":20,`, `{"name":"day","used":3,"limit":100,`,
	)
	if strings.Count(seen, `"reset":""`) != 2 || !strings.Contains(seen, `"reset":"{\"userId\":\"u1\",\"activity\":\"write\",\"op\":\"reset\"}"`) {
		t.Errorf("want a reset for the user alone:\n%s", seen)
	}
	// The room refuses u2, whose own window has not changed.
	r.app("rooms-guard", `{"userId": "u2", "activity": "write", "count": 2, "subjects": {"room": "r42"}}`)
	s.wait("windows", `"user":"u2","activity":"write","guard":"rooms-guard","limit":"3/1m","group":"","slots":"","bars":[],`) // not known yet
	seen = s.wait("windows", `"slots":"","bars":[{"name":"","used":0,"limit":3,`).data
	testkit.Contains(t, "the windows", seen, `"again":"{\"userId\":\"u2\",\"activity\":\"write\",\"count\":2,\"subjects\":{\"room\":\"r42\"}}"`, `"refused":"Refused by room=r42."`)
	r.send("GET", "/console/picture.svg?user=u2&activity=write", "").Wants(t, 404) // what the room refused is not there
	testkit.Contains(t, "the picture of the room", r.get("/console/picture.svg?user=+room+r42&activity=write"), "room=r42")
	// A release gives back for all, and the answer's button knows the subjects.
	testkit.Contains(t, "the page", html.UnescapeString(r.get("/")), `data-text="detail">room=r42: 3 of 4 used, 1 left`,
		`"op":"release","count":3,"subjects":{"room":"r42","tenant":"acme"},"requestId":`, "u1, room=r42, tenant=acme")
	// A reset clears the user alone.
	r.app("rooms-guard", `{"userId": "u1", "activity": "write", "op": "reset"}`)
	seen = s.wait("windows", `"user":"u1","activity":"write","guard":"rooms-guard","limit":"3/1m","group":"","slots":"","bars":[{"name":"","used":0`).data
	testkit.Contains(t, "after a reset of a user, the room", seen, `"used":3,"limit":4,`)
}

// ofContent starts a rig of guards with a group, and one with slots.
func ofContent(t *testing.T) *rig {
	t.Helper()
	return startFor(t,
		guards.Guard{Name: "posts-guard", Message: "m", Activities: []guards.Activity{{Name: "create_post", Limit: "posts: 10/1m, writes: 40/1h cost 2", Group: "content"}}},
		guards.Guard{Name: "comments-guard", Message: "m", Activities: []guards.Activity{{Name: "add_comment", Limit: "writes: 40/1h", Group: "content"}}},
		guards.Guard{Name: "exports-guard", Message: "m", Activities: []guards.Activity{{Name: "export", Limit: "log 3/10m", Hold: true}}},
		guards.Guard{Name: "films-guard", Message: "m", Activities: []guards.Activity{
			{Name: "render", Limit: "films: log 3/10m", Hold: true, Group: "films"}, {Name: "preview", Limit: "films: log 3/10m", Hold: true, Group: "films"},
		}},
	)
}

// The windows of a group show the shared count, also the window of the activity that did
// not act. It comes at once, and not only when a second has passed.
func TestWindowsOfAGroupShareTheirCount(t *testing.T) {
	r := ofContent(t)
	page := html.UnescapeString(r.get("/"))
	testkit.Contains(t, "the page", page, `<td>create_post <span class="quiet">group content</span></td>`, `<td>export <span class="quiet">Hold</span></td>`)
	r.app("posts-guard", `{"userId": "u1", "activity": "create_post", "op": "status"}`)
	r.app("posts-guard", `{"userId": "u2", "activity": "create_post", "op": "status"}`)
	s := r.watch("")
	s.wait("windows", `"group":"In the group content, with add_comment."`)
	r.app("comments-guard", `{"userId": "u1", "activity": "add_comment", "count": 9}`)
	seen := s.wait("windows", `{"name":"writes","used":5,"limit":20,`).data
	if strings.Count(seen, `"used":5`) != 1 || !strings.Contains(seen, `"used":9,"limit":40`) {
		t.Errorf("the windows are %s", seen)
	}
	const picture = "/console/picture.svg?user=u1&activity=add_comment"
	r.get(picture)
	r.app("posts-guard", `{"userId": "u1", "activity": "create_post", "op": "reset"}`)
	s.wait("windows", `"used":0,"limit":40`)
	r.send("GET", picture, "").Wants(t, 404) // of the other activity
}

// The page shows until when slots are held, also after a renewal.
func TestSlotsOnThePage(t *testing.T) {
	r := ofContent(t)
	ask := func(rest string) string {
		return r.app("exports-guard", `{"userId": "u1", "activity": "export"`+rest+`}`)
	}
	at := func(answer string) string { return regexp.MustCompile(`"at":\d+`).FindString(answer) }
	held := func(answer string) string {
		var ms int64
		_, _ = fmt.Sscan(regexp.MustCompile(`"heldUntil":(\d+)`).FindStringSubmatch(answer)[1], &ms)
		return time.UnixMilli(ms).UTC().Format(time.TimeOnly)
	}
	shows := func(want string) {
		t.Helper()
		if got := regexp.MustCompile(`data-text="slots"[^<]*`).FindString(r.get("/")); !strings.HasSuffix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	first := ask(`, "requestId": "r1"`)
	r.own("/console/clock", `{"move": 60000}`)
	second := ask(`, "requestId": "r2"`)
	shows(">Held until " + held(first) + ", " + held(second) + ".")
	r.own("/console/clock", `{"move": 60000}`)
	renewed := ask(`, "op": "renew", "requestId": "r1", ` + at(first))
	shows(">Held until " + held(second) + ", " + held(renewed) + ".")
	testkit.Contains(t, "the page", html.UnescapeString(r.get("/")), "2 of 3 used, 1 left, held until "+held(renewed))
	ask(`, "op": "release", "requestId": "r2", ` + at(second))
	shows(">Held until " + held(renewed) + ".")
	r.own("/console/clock", `{"move": 600000}`)
	testkit.Contains(t, "the answer", ask(`, "op": "renew", "requestId": "r1", `+at(renewed)), `"reason":"expired"`)
	testkit.Contains(t, "the page", r.get("/"), `data-text="verdict">expired<`)
	shows(" hidden>")
}

// A reset of one activity of a group frees the slots of the others.
func TestAResetFreesTheSlotsOfItsGroup(t *testing.T) {
	r := ofContent(t)
	r.app("films-guard", `{"userId": "u1", "activity": "render"}`)
	testkit.Contains(t, "the page", r.get("/"), "Held until")
	r.app("films-guard", `{"userId": "u1", "activity": "preview", "op": "reset"}`)
	if strings.Contains(r.get("/"), "Held until") {
		t.Error("after a reset of the group, the page shows a slot that is free")
	}
}

const call = `{"userId": "u1", "activity": "call"}`

// holds returns how many actions of a lease the page shows, and until when. 0: none.
func (r *rig) holds() (left int, until string) {
	r.t.Helper()
	found := regexp.MustCompile(`data-text="lease">This instance holds a lease: (\d+) more actions? until ([\d:]+)\.<`).FindStringSubmatch(r.get("/"))
	if found == nil {
		return 0, ""
	}
	left, _ = strconv.Atoi(found[1])
	return left, found[2]
}

// untilHeld calls until the page shows a lease of more than 5 actions. It looks after each
// ten calls, because a lease is as large as the calls of a second.
func (r *rig) untilHeld() (left int, until string) {
	r.t.Helper()
	for range 60 {
		for range 10 {
			r.app("api-guard", call)
		}
		if left, until = r.holds(); left > 5 {
			return left, until
		}
	}
	r.t.Fatal("after 600 calls, the page shows no lease")
	return 0, ""
}

// A window of a busy prepaid limit shows what the guard holds. Without the table, it hands out
// exactly that before it decides alone.
func TestLeasesOnThePage(t *testing.T) {
	for _, activity := range []guards.Activity{
		{Name: "call", Limit: "2000/1m prepaid"},
		{Name: "call", Limit: "calls: 2000/1m prepaid", Group: "api"},
	} {
		r := startFor(t, guards.Guard{Name: "api-guard", Message: "m", Activities: []guards.Activity{activity}})
		for range 50 {
			r.app("api-guard", call)
		}
		if left, _ := r.holds(); left != 0 {
			t.Errorf("after 50 calls, the page shows a lease of %d", left)
		}
		left, until := r.untilHeld()
		s := r.watch("")
		if until != "12:01:00" {
			t.Errorf("the lease lasts until %s, want the end of the window", until)
		}
		s.wait("windows", fmt.Sprintf(`"lease":"This instance holds a lease: %d more actions until 12:01:00."`, left))
		r.store.down.Store(true)
		for range left {
			if answer := r.app("api-guard", call); !strings.Contains(answer, `"reason":"ok"`) {
				t.Fatalf("%s, want one of the %d of the lease", answer, left)
			}
		}
		if left, _ := r.holds(); left != 0 {
			t.Errorf("%d are held after all are handed out", left)
		}
		if answer := r.app("api-guard", call); !strings.Contains(answer, `"reason":"unavailable"`) {
			t.Errorf("%s, want a decision without the table", answer)
		}
	}
}

// The lease of a bucket ends after a second, even on a page without any action.
func TestTheLeaseOfABucketEnds(t *testing.T) {
	r := startFor(t, guards.Guard{Name: "api-guard", Message: "m", Activities: []guards.Activity{{Name: "call", Limit: "bucket 1000/1s burst 4000 prepaid"}}})
	s := r.watch("")
	r.untilHeld()
	s.wait("windows", `"lease":"This instance holds a lease: `)
	s.wait("windows", `"lease":""`)
}

// A window's figures are by the number of its last request, and so is what its buttons send.
func TestWindowsByNumbers(t *testing.T) {
	r := startFor(t, guards.Guard{Name: "api-guard", Message: "m", Activities: []guards.Activity{
		{Name: "call_api", Limit: "3/1m max 100"},
		{Name: "write", Limit: "3/1m", Subjects: []guards.Subject{{Name: "tenant", Limit: "9/1m max 20", Optional: true}}},
		{Name: "plain", Limit: "3/1m"},
	}})
	page := html.UnescapeString(r.get("/"))
	testkit.Contains(t, "the page", page, `<input id="limit" name="limit"`, ` data-number>call_api (3/1m max 100)`, ` data-number>write (`, `data-guard="api-guard">plain (`)
	s := r.watch("")
	r.app("api-guard", `{"userId": "u1", "activity": "call_api", "count": 5, "limit": 5}`)
	s.wait("windows", `"limit":"3/1m max 100","group":"","slots":"","bars":[{"name":"","used":5,"limit":5,`)
	r.app("api-guard", `{"userId": "u1", "activity": "call_api", "limit": 4}`)
	const figures = `"bars":[{"name":"","used":5,"limit":4,`
	seen := s.wait("windows", `"again":"{\"userId\":\"u1\",\"activity\":\"call_api\",\"count\":1,\"limit\":4}"`).data
	if !strings.Contains(seen, figures) { // a status reads them, perhaps later
		seen = s.wait("windows", figures).data
	}
	testkit.Contains(t, "the page", html.UnescapeString(r.get("/")), `"op":"release","count":5,"limit":5,"requestId":`) // of the button that gives back
	if strings.Contains(seen, "These figures may be old") {
		t.Error(seen)
	}
	r.app("api-guard", `{"userId": "u1", "activity": "call_api", "limit": 0}`)
	s.wait("answer", `"kind":"refused","mark":"✕","verdict":"refused","detail":"limited",`) // nobody looked at what is counted
}
