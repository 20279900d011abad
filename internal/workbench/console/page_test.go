package console_test

import (
	"html"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
	"github.com/cric-talk/guards/internal/wiring"
	"github.com/cric-talk/guards/internal/workbench/console"
)

// The page makes sense without JavaScript: it has all guards and limits, and
// what has happened so far.
func TestThePageAsServedHasGuardsLimitsAndAnswers(t *testing.T) {
	r := start(t, 0, nil)
	empty := html.UnescapeString(r.get("/"))
	for _, g := range cricket.All {
		for _, a := range g.Activities {
			row := "<td>" + a.Name + `</td><td class="code">unlimited</td>`
			if !a.Unlimited {
				row = "<td>" + a.Name + `</td><td class="code">` + a.Limit.String() + "</td>"
			}
			if !strings.Contains(empty, row) || !strings.Contains(empty, `<option value="`+a.Name+`" data-guard="`+g.Name+`">`) {
				t.Errorf("the page does not list %s of %s", a.Name, g.Name)
			}
		}
	}
	testkit.Contains(t, "the page", empty, "<noscript>", "JavaScript is off.", "Listens only on <strong>"+strings.TrimPrefix(r.url, "http://"))
	r.app("posts-guard", `{"userId": "<script>x</script>", "activity": "create_post", "count": 4}`)
	r.app("posts-guard", `{"activity": "create_post"}`)
	full := r.get("/")
	testkit.Contains(t, "the page", full,
		`&lt;script&gt;x&lt;/script&gt;`, `4 of 10 used, 6 left`, `<meter min="0" max="10" value="4" aria-label="used">`,
		`check create_post × 4`, `ValidationError: userId is missing`, `resets at 12:01:00`, `data-last="2"`,
	)
	if strings.Contains(full, "<script>x") {
		t.Error("a user id becomes HTML")
	}
}

func TestTheClockCanBeFixed(t *testing.T) {
	const why = "The clock can't be moved, because others count in this table."
	r := start(t, 0, func(c *console.Console, _ *wiring.Settings) { c.Fixed = why })
	if page := html.UnescapeString(r.get("/")); !strings.Contains(page, why) || strings.Contains(page, `id="moves"`) {
		t.Error("the page offers to move the clock")
	}
	r.own("/console/clock", `{"move": 1000}`).Wants(t, 409, why)
}

// A clock that was moved by hours leaves the requests before and after it side by side.
func TestThePictureLeavesOutEmptyWindows(t *testing.T) {
	r := start(t, 0, nil)
	const picture, ask = "/console/picture.svg?user=u1&activity=create_post", `{"userId": "u1", "activity": "create_post"}`
	r.app("posts-guard", ask)
	r.own("/console/clock", `{"move": 43200000}`)
	r.app("posts-guard", ask)
	svg := r.get(picture)
	testkit.Contains(t, "the picture", svg, ">2 requests of the user u1 ", ", without the windows in which there was none: 2 allowed", " UTC, without empty windows<")
	var at []float64
	for _, use := range regexp.MustCompile(`<use href="#allowed" x="([0-9.]+)"`).FindAllStringSubmatch(svg, -1)[1:] { // the first is in the legend
		x, _ := strconv.ParseFloat(use[1], 64)
		at = append(at, x)
	}
	if len(at) != 2 || at[1]-at[0] < 250 || at[1]-at[0] > 450 { // one minute of two
		t.Errorf("the requests are drawn at %v", at)
	}
}

// A release in the next minute gives nothing back in a minute's limit, so the request stays. If
// another limit gives back, it goes.
func TestThePictureAfterALateRelease(t *testing.T) {
	for limit, want := range map[guards.Limit]int{"10/1m": http.StatusOK, "minute: 10/1m, day: 5/1d": http.StatusNotFound} {
		r := start(t, 50*time.Second, func(c *console.Console, _ *wiring.Settings) {
			c.Guards = cricket.Link(guards.Guard{Name: "late-guard", Message: "m", Activities: []guards.Activity{{Name: "late", Limit: limit}}})
		})
		receipt := regexp.MustCompile(`"at":\d+,"requestId":"[^"]+"`).FindString(r.app("late-guard", `{"userId": "u1", "activity": "late"}`))
		r.own("/console/clock", `{"move": 15000}`)
		r.app("late-guard", `{"userId": "u1", "activity": "late", "op": "release", `+receipt+`}`)
		r.send("GET", "/console/picture.svg?user=u1&activity=late", "").Wants(t, want)
	}
}

func TestThePictureShowsTheLastRequests(t *testing.T) {
	r := start(t, 0, nil)
	const picture = "/console/picture.svg?user=u1&activity=create_post"
	r.send("GET", picture, "").Wants(t, 404, "Nothing to draw yet")
	var receipt string
	for range 12 {
		answer := r.app("posts-guard", `{"userId": "u1", "activity": "create_post"}`)
		if receipt == "" {
			receipt = regexp.MustCompile(`"at":\d+,"requestId":"[^"]+"`).FindString(answer)
		}
	}
	r.app("posts-guard", `{"userId": "u2", "activity": "create_post"}`)                 // another user
	r.app("posts-guard", `{"userId": "u1", "activity": "create_post", "op": "status"}`) // counts nothing
	for _, step := range []struct{ event, want string }{
		{"", "12 requests: 10 allowed, 2 refused"},
		{`{"userId": "u1", "activity": "create_post", "op": "release", ` + receipt + `}`, "11 requests: 10 allowed, 1 refused"},
		{`{"userId": "u1", "activity": "create_post", "op": "release", ` + receipt + `}`, "11 requests: 10 allowed, 1 refused"}, // gives nothing back
		{`{"userId": "u1", "activity": "create_post", "op": "reset"}`, ""},
		{`{"userId": "u1", "activity": "create_post", "count": 3}`, "3 requests: 3 allowed, 0 refused"},
		{`{"userId": "u1", "activity": "create_post", "requestId": "r1"}`, "4 requests: 4 allowed, 0 refused"},
		{`{"userId": "u1", "activity": "create_post", "requestId": "r1"}`, "4 requests: 4 allowed, 0 refused"}, // a duplicate
	} {
		if step.event != "" {
			r.app("posts-guard", step.event)
		}
		svg := r.send("GET", picture, "")
		if step.want == "" {
			svg.Wants(t, 404)
			continue
		}
		description := regexp.MustCompile(`<desc id="d">.*`).FindString(svg.Text)
		got := regexp.MustCompile(`<desc id="d">(\d+ requests) of the user u1 .* UTC(: .*), 0 delayed`).ReplaceAllString(description, "$1$2|")
		if svg.Header.Get("Content-Type") != "image/svg+xml" || !strings.HasPrefix(got, step.want+"|") {
			t.Errorf("after %s: %d %s, want %q", step.event, svg.StatusCode, description, step.want)
		}
		if policy := svg.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; style-src 'unsafe-inline'") {
			t.Errorf("the picture has the policy %q", policy)
		}
	}
}

// A picture, and the list of answers, keep only the last ones.
func TestTheConsoleKeepsTheLastAnswers(t *testing.T) {
	r := start(t, 0, nil)
	for range 5 {
		r.app("pins-guard", `{"userId": "u1", "activity": "pin"}`)
	}
	testkit.Contains(t, "the page", r.get("/"), ", and 2 more.") // slots
	for range 201 {
		r.app("ingest-guard", `{"userId": "u1", "activity": "ingest", "count": 50}`)
	}
	testkit.Contains(t, "the picture of 10,050 requests", r.get("/console/picture.svg?user=u1&activity=ingest"), ">10000 requests of the user u1 ")
	if n := strings.Count(r.get("/"), `<li class="answer refused">`); n != 100 {
		t.Errorf("the page as served has %d of 201 answers, want the last 100", n)
	}
}
