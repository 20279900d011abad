package console_test

import (
	"html"
	"strings"
	"testing"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/testkit/cricket"
	"github.com/cric-talk/guards/internal/wiring"
	"github.com/cric-talk/guards/internal/workbench/console"
)

// A window's figures are by the number of its last request, and so is what its buttons send.
func TestWindowsByNumbers(t *testing.T) {
	r := start(t, 0, func(c *console.Console, _ *wiring.Settings) {
		c.Guards = cricket.Link(guards.Guard{Name: "api-guard", Message: "m", Activities: []guards.Activity{
			{Name: "call_api", Limit: "3/1m max 100"},
			{Name: "write", Limit: "3/1m", Subjects: []guards.Subject{{Name: "tenant", Limit: "9/1m max 20", Optional: true}}},
			{Name: "plain", Limit: "3/1m"},
		}})
	})
	page := html.UnescapeString(r.get("/"))
	for _, want := range []string{`<input id="limit" name="limit"`, ` data-number>call_api (3/1m max 100)`, ` data-number>write (`, `data-guard="api-guard">plain (`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	s := r.watch("")
	r.app("api-guard", `{"userId": "u1", "activity": "call_api", "count": 5, "limit": 5}`)
	s.wait("windows", `"limit":"3/1m max 100","group":"","slots":"","bars":[{"name":"","used":5,"limit":5,`)
	r.app("api-guard", `{"userId": "u1", "activity": "call_api", "limit": 4}`)
	const figures = `"bars":[{"name":"","used":5,"limit":4,`
	seen := s.wait("windows", `"again":"{\"userId\":\"u1\",\"activity\":\"call_api\",\"count\":1,\"limit\":4}"`).data
	if !strings.Contains(seen, figures) { // a status reads them, perhaps later
		seen = s.wait("windows", figures).data
	}
	page = html.UnescapeString(r.get("/"))
	if !strings.Contains(page, `"op":"release","count":5,"limit":5,"requestId":`) {
		t.Error("the button that gives back does not send the number")
	}
	if strings.Contains(seen, "These figures may be old") {
		t.Error(seen)
	}
	r.app("api-guard", `{"userId": "u1", "activity": "call_api", "limit": 0}`)
	s.wait("answer", `"kind":"refused","mark":"✕","verdict":"refused","detail":"limited",`) // nobody looked at what is counted
}
