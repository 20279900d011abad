package console_test

import (
	"os"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

// One browser runs all these tests, because it takes seconds to start. Each test
// has guards of its own.
func TestThePageInABrowser(t *testing.T) {
	testkit.Clients.Need(t)
	b := open(t, 1280, 900)
	for name, test := range map[string]func(*browser, *rig){
		"a refusal is shown":                         testRefusal,
		"a countdown ends in an admission":           testCountdown,
		"the clock is moved and a window rolls over": testClock,
		"the app's answers appear":                   testApp,
		"a check is given back":                      testRelease,
		"a room refuses":                             testRoom,
		"a delayed request presents its place":       testPlace,
		"the keyboard is enough":                     testKeyboard,
		"one page too many is told why":              testTooMany,
		"axe finds nothing":                          testAxe,
		"the form shows the event that it sends":     testForm,
		"the page keeps the last answers":            testManyAnswers,
		"a screen reader hears of the app":           testNews,
	} {
		t.Run(name, func(t *testing.T) {
			outer := b.t
			b.t = t
			defer func() { b.t = outer }()
			defer b.load("about:blank") // the page must not ask a server that has ended
			r := start(t, 0, nil)       // a minute for the tests that count in one
			b.load(r.url)
			test(b, r)
			b.js("0", nil) // reads what Chromium has sent before
			for _, complaint := range b.errors {
				t.Errorf("the page has an error: %s", complaint)
			}
			b.errors = nil
		})
	}
}

func testRefusal(b *browser, _ *rig) {
	b.choose("times", "12")
	b.click("#ask button.main")
	b.wait("#result", "10 of 12 allowed. Refused. It can pass in ")
	b.wait("#window-list li", "u1 create_post 10/1m 10 of 10 used, 0 left")
	b.wait("#window-list li", "Refused. The same request can pass in ")
	b.wait("#answer-list li:nth-child(2)", "refused") // of two refusals
	b.wait("#answer-list li:first-child", "refused check create_post u1 10 of 10 used, 0 left, wait ")
	b.choose("user", "")
	b.choose("times", "1")
	b.click("#ask button.main")
	b.wait("#result", "ValidationError: userId is ")
	b.wait("#answer-list li:first-child", "error")
	b.dark(true) // the colors follow the system
	paper := value[string](b, "getComputedStyle(document.body).backgroundColor")
	if b.dark(false); paper != "rgb(13, 17, 23)" {
		b.t.Errorf("the dark page is %s", paper)
	}
}

func testCountdown(b *browser, _ *rig) {
	b.choose("activity", "send_message") // one in 5 s
	b.choose("times", "2")
	b.click("#ask button.main")
	b.wait("#result", "1 of 2 allowed. Refused.")
	b.wait("#window-list .passes", "can pass ") // in some seconds, or on a busy machine already now
	b.click("#window-list [data-act=again]")
	b.wait("#answer-list li:first-child .verdict", "allowed")
	if n := strings.Count(b.text("#answer-list"), "refused"); n != 1 {
		b.t.Errorf("%d refusals, want one: the page must not ask too early", n)
	}
	b.wait("#result", "Allowed. 1 of 1 used")
}

func testTooMany(b *browser, _ *rig) {
	r := start(b.t, 0, nil)
	for range 20 {
		r.watch("").wait("windows", "")
	}
	b.load(r.url)
	b.wait("#result", "20 consoles are open, which is the most. Close one, and load this page again.")
	b.errors = nil // the browser reports the refusal
}

func testClock(b *browser, _ *rig) {
	b.choose("times", "11")
	b.click("#ask button.main")
	b.wait("#window-list li", "10 of 10 used, 0 left")
	b.wait("#ahead", "real time")
	b.click("#moves [data-move='60000']")
	b.wait("#ahead", "60 s ahead")
	b.wait("#now", "12:01:")
	b.wait("#window-list li", "0 of 10 used, 10 left")
	b.choose("times", "1")
	b.click("#ask button.main")
	b.wait("#result", "Allowed. 1 of 10 used")
	b.wait("#window-list li", "1 of 10 used, 9 left") // the button skips to the reset of the window that is shown
	b.click("#window-list [data-act=skip]")
	b.wait("#window-list li", "0 of 10 used, 10 left")
	b.click("#real")
	b.wait("#ahead", "real time")
	b.wait("#now", "12:00:")
	b.wait("#window-list li", "10 of 10 used, 0 left") // the old window counts again
}

func testApp(b *browser, r *rig) {
	r.app("pins-guard", `{"userId": "maria", "activity": "pin", "count": 93}`)
	b.wait("#answer-list li", "allowed check pin × 93 maria 93 of 100 used, 7 left, held until 00:00:")
	b.wait("#window-list li", "maria pin log 100/12h 93 of 100 used, 7 left resets in ")
	r.app("posts-guard", `{"userId": "<b>maria</b>", "activity": "like"}`)
	b.wait("#answer-list li:first-child", "allowed check like <b>maria</b> unlimited app")
	b.load(r.url) // the HTML as served has the same
	b.wait("#answer-list li:first-child", "allowed check like <b>maria</b> unlimited app")
	b.wait("#window-list li", "93 of 100 used, 7 left")
}

// The form offers subjects for an activity that has some, and a release names them.
func testRoom(b *browser, _ *rig) {
	b.load(ofRooms(b.t).url)
	if !value[bool](b, "document.getElementById('subjects-field').hidden") {
		b.t.Error("an activity without subjects has a field for them")
	}
	b.choose("activity", "write")
	b.wait("#event", `"subjects": { "room": "room1", "tenant": "tenant1" }`)
	b.choose("subjects", "room=r42")
	b.choose("count", "3")
	b.click("#ask button.main")
	b.wait("#window-list li:first-child", "u1 write 3/1m 3 of 3 used, 0 left")
	b.wait("#window-list li:nth-child(2)", "room=r42 write 4/1m 3 of 4 used, 1 left")
	b.choose("user", "u2")
	b.choose("count", "2")
	b.click("#ask button.main")
	b.wait("#result", "Refused by room=r42.")
	b.wait("#window-list li:first-child", "0 of 3 used, 3 left")
	b.wait("#window-list li:first-child .held", "Refused by room=r42.")
	b.wait("#answer-list li:first-child", "refused check write × 2 u2, room=r42 room=r42: 3 of 4 used, 1 left, wait ")
	b.choose("subjects", "")
	b.click("#ask button.main")
	b.wait("#result", "ValidationError: subjects has no room")
}

func testRelease(b *browser, _ *rig) {
	b.choose("count", "3")
	b.click("#ask button.main")
	b.wait("#window-list li", "3 of 10 used, 7 left")
	b.choose("op", "release")
	b.choose("count", "1")
	b.click("#ask button.main")
	b.wait("#window-list li", "2 of 10 used, 8 left")
	b.wait("#answer-list li:first-child", "done release create_post u1 2 of 10 used, 8 left console")
	b.click("#window-list [data-act=clear]")
	b.wait("#window-list li", "0 of 10 used, 10 left")
}

func testPlace(b *browser, _ *rig) {
	b.choose("activity", "update_member_role")
	b.choose("times", "21") // more than two windows of 10 s take, in case that one ends meanwhile
	b.click("#ask button.main")
	b.wait("#result", "of 21 allowed. Delayed.")
	b.wait("#answer-list li:nth-child(21)", "allowed")
	b.wait("#window-list li", "Delayed. The same request can pass in ")
	if !value[bool](b, "document.querySelector('#window-list [data-act=clear]').hidden") {
		b.t.Error("the page offers to clear a reservoir, which has no reset")
	}
	b.click("#window-list [data-act=skip]")
	b.wait("#window-list .passes", "can pass now")
	b.click("#window-list [data-act=again]")
	b.wait("#answer-list li:first-child", "allowed check update_member_role u1 ok")
}

// The form sends each of its fields, and shows the event as an app sends it.
func testForm(b *browser, _ *rig) {
	b.choose("tier", "premium")
	b.choose("roles", "editor, author")
	b.choose("count", "25")
	b.js("document.getElementById('partial').click()", nil)
	const event = `{ "userId": "u1", "activity": "create_post", "count": 25, "partial": true, "tier": "premium", "roles": [ "editor", "author" ] }`
	b.wait("#event", "POST /2015-03-31/functions/posts-guard/invocations "+event)
	b.click("#ask button.main")
	b.wait("#answer-list li:first-child", "allowed check create_post × 25 u1 20 of 25 granted, 20 of 20 used, 0 left, crossed 100 %")
	b.js("document.querySelector('#answer-list details').open = true", nil)
	b.wait("#answer-list li:first-child pre", event)
}

// The page drops the oldest answer.
func testManyAnswers(b *browser, r *rig) {
	for _, user := range append([]string{"first", "second"}, make([]string, 99)...) {
		r.app("posts-guard", `{"userId": "u`+user+`", "activity": "like"}`)
	}
	b.wait("#answer-list li:last-child", "allowed check like usecond")
	if shown := value[int](b, "document.getElementById('answer-list').children.length"); shown != 100 {
		b.t.Errorf("the page shows %d answers of 101, want 100", shown)
	}
}

// A screen reader reads what has the role status. It hears of the app's answers
// at most once in ten seconds, and only of the app's.
func testNews(b *browser, r *rig) {
	for _, id := range []string{"result", "news"} {
		if role := value[string](b, "document.getElementById('"+id+"').role"); role != "status" {
			b.t.Errorf("the role of #%s is %q, want status", id, role)
		}
	}
	b.js(`window.first = 0; window.heard = [];
new MutationObserver(() => { first ||= performance.now() }).observe(document.getElementById("answer-list"), {childList: true});
new MutationObserver(() => heard.push(performance.now())).observe(document.getElementById("news"), {childList: true});0`, nil)
	r.app("posts-guard", `{"userId": "u1", "activity": "create_post", "count": 10}`)
	r.app("posts-guard", `{"userId": "u1", "activity": "create_post"}`)
	b.choose("activity", "like")
	b.click("#ask button.main")
	b.wait("#result", "Allowed.")
	b.wait("#news", "2 answers to your app, 1 refused.")
	waits := value[[]float64](b, "heard.map((at) => at - first)")
	if len(waits) != 1 || waits[0] < 9900 {
		b.t.Errorf("the news came after %v ms, want one sentence after 10 s", waits)
	}
}

// The whole way of a person without a mouse.
func testKeyboard(b *browser, _ *rig) {
	b.press("Tab", 0)
	b.wait("a.skip:focus", "Skip to the windows")
	b.tabTo("#user")
	b.write("maria")
	b.tabTo("#times")
	b.write("12")
	b.press("Enter", 0)
	b.wait("#result", "10 of 12 allowed. Refused.")
	b.tabTo("#window-list [data-act=again]")
	b.press(" ", 0)
	b.wait("#window-list [data-act=again][aria-pressed=true]", "Ask again then")
	b.tabTo("#window-list [data-act=skip]")
	b.press("Enter", 0)
	b.wait("#answer-list li:first-child", "allowed check create_post maria 1 of 10 used")
	b.press("Tab", 8) // back to the window: its heading or a button of it has the focus
	b.tabTo("#window-list [data-act=picture]")
	b.press("Enter", 0)
	b.wait("#picture[open]", "The last requests of maria for create_post")
	width := value[int](b, "new Promise((done) => {const i = document.querySelector('#picture img'); const end = () => done(i.naturalWidth); i.complete ? end() : (i.onload = end, i.onerror = end)})")
	if width != 800 {
		b.t.Errorf("the picture is %d pixels wide, want 800", width)
	}
	b.press("Escape", 0)
	closed, back := value[bool](b, "!document.getElementById('picture').open"), value[bool](b, "document.activeElement.matches('[data-act=picture]')")
	if !closed || !back {
		b.t.Errorf("after Escape: the picture is closed: %v, the focus is back on its link: %v", closed, back)
	}
	b.tabTo("#answer-list summary")
	b.press("Enter", 0)
	b.wait("#answer-list li:first-child pre", `"userId": "maria"`)
	b.tabTo("#answer-list [data-act=release]")
	b.press("Enter", 0)
	b.wait("#answer-list li:first-child", "done release create_post maria 0 of 10 used")
	b.tabTo("#answer-list summary")
	if value[string](b, "getComputedStyle(document.activeElement).outlineStyle") == "none" {
		b.t.Error("one does not see where the focus is")
	}
}

// axe-core checks names, roles, contrast and order, in both color schemes.
func testAxe(b *browser, r *rig) {
	axe, err := os.ReadFile("../../../.cache/console/node_modules/axe-core/axe.min.js")
	if err != nil {
		testkit.Skip(b.t, "axe-core is not installed: run make console")
	}
	b.js(string(axe)+";0", nil)
	check := func(what string) {
		b.t.Helper()
		for _, dark := range []bool{false, true} {
			b.dark(dark)
			var found []struct{ Impact, ID, Help, Where string }
			rules := "{}"
			if dark { // only the colors differ
				rules = "{runOnly: ['color-contrast']}"
			}
			b.js(`axe.run(`+rules+`).then((r) => r.violations.map((v) => ({impact: v.impact, id: v.id, help: v.help, where: v.nodes.map((n) => n.html).join(" ")})))`, &found)
			for _, f := range found {
				b.t.Errorf("%s, dark: %v: %s %s: %s: %.300s", what, dark, f.Impact, f.ID, f.Help, f.Where)
			}
		}
		b.dark(false)
	}
	check("the empty page")
	r.app("pins-guard", `{"userId": "`+strings.Repeat("long-", 20)+`", "activity": "pin", "count": 93}`)
	r.app("jobs-guard", `{"userId": "server-12", "activity": "update_member_role"}`)
	b.choose("op", "release")
	b.choose("op", "check")
	b.choose("times", "12")
	b.click("#ask button.main")
	b.wait("#result", "Refused.")
	b.wait("#window-list li", "Refused.")
	b.js("document.querySelectorAll('#answer-list details').forEach((d, i) => {d.open = i < 2})", nil)
	b.click("#moves [data-move='10000']")
	b.wait("#ahead", "10 s ahead")
	check("the page with answers")
	b.click("#window-list [data-act=picture]")
	b.wait("#picture[open]", "The last requests of ")
	check("the picture")
}
