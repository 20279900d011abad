package console_test

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
	var shown int
	b.js("document.getElementById('answer-list').children.length", &shown)
	if shown != 100 {
		b.t.Errorf("the page shows %d answers of 101, want 100", shown)
	}
}

// A screen reader reads what has the role status. It hears of the app's answers
// at most once in ten seconds, and only of the app's.
func testNews(b *browser, r *rig) {
	for _, id := range []string{"result", "news"} {
		var role string
		b.js("document.getElementById('"+id+"').role", &role)
		if role != "status" {
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
	var waits []float64
	b.js("heard.map((at) => at - first)", &waits)
	if len(waits) != 1 || waits[0] < 9900 {
		b.t.Errorf("the news came after %v ms, want one sentence after 10 s", waits)
	}
}
