package console_test

import (
	"os"
	"strings"

	"github.com/cric-talk/guards/internal/testkit"
)

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
	var width int
	b.js("new Promise((done) => {const i = document.querySelector('#picture img'); const end = () => done(i.naturalWidth); i.complete ? end() : (i.onload = end, i.onerror = end)})", &width)
	if width != 800 {
		b.t.Errorf("the picture is %d pixels wide, want 800", width)
	}
	b.press("Escape", 0)
	var closed, back bool
	b.js("!document.getElementById('picture').open", &closed)
	b.js("document.activeElement.matches('[data-act=picture]')", &back)
	if !closed || !back {
		b.t.Errorf("after Escape: the picture is closed: %v, the focus is back on its link: %v", closed, back)
	}
	b.tabTo("#answer-list summary")
	b.press("Enter", 0)
	b.wait("#answer-list li:first-child pre", `"userId": "maria"`)
	b.tabTo("#answer-list [data-act=release]")
	b.press("Enter", 0)
	b.wait("#answer-list li:first-child", "done release create_post maria 0 of 10 used")
	var visible bool
	b.tabTo("#answer-list summary")
	b.js("getComputedStyle(document.activeElement).outlineStyle !== 'none'", &visible)
	if !visible {
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
