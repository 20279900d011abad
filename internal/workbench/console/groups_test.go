package console_test

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/wiring"
	"github.com/cric-talk/guards/internal/workbench/console"
)

// ofContent starts a rig of guards with a group, and one with slots.
func ofContent(t *testing.T) *rig {
	t.Helper()
	guards, err := limits.Link([]guards.Guard{
		{Name: "posts-guard", Message: "m", Activities: []guards.Activity{{Name: "create_post", Limit: "posts: 10/1m, writes: 40/1h cost 2", Group: "content"}}},
		{Name: "comments-guard", Message: "m", Activities: []guards.Activity{{Name: "add_comment", Limit: "writes: 40/1h", Group: "content"}}},
		{Name: "exports-guard", Message: "m", Activities: []guards.Activity{{Name: "export", Limit: "log 3/10m", Hold: true}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return start(t, 0, func(c *console.Console, _ *wiring.Settings) { c.Guards = guards })
}

// The windows of a group show the shared count, also the window of the activity that did
// not act. It comes at once, and not only when a second has passed.
func TestWindowsOfAGroupShareTheirCount(t *testing.T) {
	r := ofContent(t)
	page := html.UnescapeString(r.get("/"))
	for _, want := range []string{`<td>create_post <span class="quiet">group content</span></td>`, `<td>export <span class="quiet">Hold</span></td>`} {
		if !strings.Contains(page, want) {
			t.Errorf("the list of limits has no %s", want)
		}
	}
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
	if got := r.send("GET", picture, ""); got.StatusCode != 404 {
		t.Errorf("after a reset of the group, the picture of the other activity is there: %d", got.StatusCode)
	}
}

// The page shows until when slots are held, also after a renewal.
func TestSlotsOnThePage(t *testing.T) {
	r := ofContent(t)
	ask := func(rest string) string {
		return r.app("exports-guard", `{"userId": "u1", "activity": "export"`+rest+`}`)
	}
	at := func(answer string) string { return regexp.MustCompile(`"at":\d+`).FindString(answer) }
	slots := func() string {
		return regexp.MustCompile(`data-text="slots"[^<]*`).FindString(r.get("/"))
	}
	held := func(answer string) string {
		var ms int64
		_, _ = fmt.Sscan(regexp.MustCompile(`"heldUntil":(\d+)`).FindStringSubmatch(answer)[1], &ms)
		return time.UnixMilli(ms).UTC().Format(time.TimeOnly)
	}
	first := ask(`, "requestId": "r1"`)
	r.own("/console/clock", `{"move": 60000}`)
	second := ask(`, "requestId": "r2"`)
	if got, want := slots(), "Held until "+held(first)+", "+held(second)+"."; !strings.HasSuffix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	r.own("/console/clock", `{"move": 60000}`)
	renewed := ask(`, "op": "renew", "requestId": "r1", ` + at(first))
	if got, want := slots(), "Held until "+held(second)+", "+held(renewed)+"."; !strings.HasSuffix(got, want) {
		t.Errorf("after a renewal: %q, want %q", got, want)
	}
	if page := html.UnescapeString(r.get("/")); !strings.Contains(page, "2 of 3 used, 1 left, held until "+held(renewed)) {
		t.Error("the renewal's answer does not tell until when the slot is held")
	}
	ask(`, "op": "release", "requestId": "r2", ` + at(second))
	if got, want := slots(), "Held until "+held(renewed)+"."; !strings.HasSuffix(got, want) {
		t.Errorf("after a release: %q, want %q", got, want)
	}
	r.own("/console/clock", `{"move": 600000}`)
	if answer := ask(`, "op": "renew", "requestId": "r1", ` + at(renewed)); !strings.Contains(answer, `"reason":"expired"`) || !strings.Contains(r.get("/"), `data-text="verdict">expired<`) {
		t.Errorf("the page does not tell that the slot has expired: %s", answer)
	}
	if got := slots(); strings.Contains(got, "Held") || !strings.Contains(got, "hidden") {
		t.Errorf("an expired slot: %q", got)
	}
}
