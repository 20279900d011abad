package command

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
	app "github.com/cric-talk/guards/limits"
)

func TestServeHasAConsole(t *testing.T) {
	endpoint, log := serve(t)
	post(t, invocations(endpoint, "posts-guard"), `{"userId": "u1", "activity": "create_post", "count": 4}`)
	get(t, endpoint+"/").Wants(t, 200, "4 of 10 used, 6 left", "Counts in memory.")
	const ask = `{"function": "posts-guard", "event": {"userId": "u1", "activity": "create_post", "count": 10}}`
	for _, step := range [][3]string{ // path, body, and what the answer has
		{"ask", ask, `{"allowed":false,`}, {"clock", `{"move": 60000}`, `"ahead":"60 s"`}, {"ask", ask, `{"allowed":true,`},
	} {
		post(t, endpoint+"/console/"+step[0], step[1], "Origin", endpoint, "Content-Type", "application/json").Wants(t, 200, step[2])
	}
	testkit.Contains(t, "the log", log.String(), "guards: the console for development is at "+endpoint+"/; only this machine can open it\n",
		"22:15:18  posts-guard         check create_post: allowed, ok, 10/10 used, crossed 100 %\n") // the moved time
}

// The console shows what the guards of serve hold: for a user, in a group and for a subject.
func TestTheConsoleOfServeShowsLeases(t *testing.T) {
	endpoint, _ := serveGuards(t, busy, atPinned)
	windows := regexp.MustCompile(`(?s)<li class="window".*?</li>`)
	lease := regexp.MustCompile(`>This instance holds a lease: \d+ more actions? until 22:15:00\.<`)
	for whose, event := range map[string]string{"u1": `"activity": "call"`, "u2": `"activity": "read"`, "room=r42": `"activity": "say", "tier": "pro", "subjects": {"room": "r42"}`} {
		user, _, _ := strings.Cut(whose, "=")
		found := false
		for i := 0; i < 195 && !found; i++ {
			post(t, invocations(endpoint, "api-guard"), `{"userId": "`+user+`", `+event+`}`)
			found = slices.ContainsFunc(windows.FindAllString(get(t, endpoint+"/").Text, -1), func(window string) bool {
				return strings.Contains(window, `>`+whose+`<`) && lease.MatchString(window)
			})
		}
		if !found {
			t.Errorf("after 195 events with %s, the console shows no lease of %s", event, whose)
		}
	}
}

// The documents name the address without the flag.
func TestServeListensWhereTheDocumentsSay(t *testing.T) {
	document := source(t, "docs/console.md")
	_, help, _ := command(t, app.All, "serve --help")
	address := regexp.MustCompile(`The address to listen on\s+\(([^)]+)\)`).FindStringSubmatch(help)
	if address == nil || !strings.Contains(document, "Then open <http://"+address[1]+"/>.") {
		t.Errorf("docs/console.md does not name %q, the default of --addr", address)
	}
}

// An open page must not keep serve from ending.
func TestServeEndsAlthoughAPageIsOpen(t *testing.T) {
	var page *http.Response
	var began time.Time
	if !t.Run("with a page", func(t *testing.T) {
		endpoint, _ := serve(t)
		page = testkit.Must(http.Get(endpoint + "/console/events"))(t) //nolint:bodyclose // it stays open until serve has ended
		began = time.Now()
	}) {
		return
	}
	took := time.Since(began)
	_ = page.Body.Close()
	if took >= guardTimeout { // serve waits that long for a request that doesn't end
		t.Errorf("serve ends after %v, want at once", took)
	}
}

func TestServeHasNoConsoleForOtherMachines(t *testing.T) {
	endpoint, log := serve(t, "--addr", "0.0.0.0:0")
	if !strings.Contains(log.String(), "guards: the console is off, because --addr ") {
		t.Errorf("the log is %s", log)
	}
	_, port, _ := strings.Cut(regexp.MustCompile(`:\d+$`).FindString(endpoint), ":")
	get(t, "http://127.0.0.1:"+port+"/").Wants(t, 404)
	post(t, "http://127.0.0.1:"+port+"/posts-guard", like).Wants(t, 200)
}

// Others count in a table in AWS too, and they have the real time.
func TestTheClockMovesOnlyOnThisMachine(t *testing.T) {
	dynamo := "dynamodb"
	if why := new(serveCommand).fixedClock(); why != "" {
		t.Errorf("in memory: %q", why)
	}
	for address, moves := range map[string]bool{"": false /* in AWS */, "http://127.0.0.1:8000": true, "http://localhost:8000": true, "http://dynamodb:8000": false} {
		c := serveCommand{storeFlags: storeFlags{Store: &dynamo, tableFlags: tableFlags{address: address}}}
		if why := c.fixedClock(); (why == "") != moves {
			t.Errorf("with %q: %q", address, why)
		}
	}
}
