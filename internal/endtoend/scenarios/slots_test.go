package scenarios_test

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/testkit"
)

// A place is a situation when an app uses a slot, or settles. All places of a
// client happen at the same time, each with a guard of its own.
type place struct {
	post   post
	outage bool   // whether a call gets no answer at all; not through an agent, where it would be an outage of all places
	before int    // slots of the user that others hold
	call   string // as of a step; without a guard
	least  int64  // wanted: how long the work takes, in milliseconds; a second more is right, too
	answer string // wanted: some fields of the answer as JSON
	class  string // wanted: the class of the error
	ops    string // wanted: the requests that arrive, as a pattern
	left   int64  // wanted: what counts after the last release
}

// A slot of these guards lasts 6 s.
const (
	shortWork  = `{"call":"slot","activity":"export","work":100}`
	middleWork = `{"call":"slot","activity":"export","work":5000}`
	longWork   = `{"call":"slot","activity":"export","work":8500}`
	noRelease  = -1
)

var places = map[string]place{
	"refused at the limit":        {before: 3, call: shortWork, answer: `{"allowed":false,"reason":"limited","lost":false}`, ops: "check", left: noRelease},
	"renewed past one window":     {call: longWork, answer: `{"allowed":true,"reason":"ok","lost":false}`, least: 8500, ops: "check( renew){3,4} release"},
	"renewed in a room":           {call: `{"call":"slot","activity":"record","args":{"subjects":{"room":"r1"}},"work":8500}`, answer: `{"allowed":true,"lost":false}`, least: 8500, ops: "check( renew){3,4} release"},
	"lost when the guard is gone": {outage: true, post: post{fault: gone}, call: longWork, answer: `{"allowed":true,"lost":true}`, least: 3500, ops: "check( renew){2,}( release)*", left: noRelease},
	"lost when it has expired":    {post: post{fault: first("renew", 1, slots)}, call: longWork, answer: `{"allowed":true,"lost":true}`, least: 1800, ops: "check renew", left: noRelease},
	"released after an exception": {call: `{"call":"slot","activity":"export","work":100,"save":"fail"}`, class: "SaveError", ops: "check release"},

	"a lost answer to a renewal": {post: post{fault: first("renew", 1, reply)}, call: longWork, answer: `{"lost":false}`, least: 8500, ops: "check( renew){4,5} release"},
	"a lost release":             {outage: true, post: post{fault: first("release", 3, all)}, call: shortWork, answer: `{"lost":false}`, ops: "check( release){4}"},
	"a lost answer to a release": {outage: true, post: post{fault: first("release", 3, reply)}, call: shortWork, answer: `{"lost":false}`, ops: "check( release){4}"},

	"no receipt, duplicate": {post: post{fault: first("check", 1, reply)}, call: middleWork, answer: `{"allowed":true,"reason":"duplicate","lost":false}`, least: 5000, ops: "check( check)", left: noRelease},
	"no receipt, outage":    {outage: true, post: post{fault: first("check", 3, all)}, call: middleWork, answer: `{"allowed":true,"reason":"unavailable","lost":false}`, least: 5000, ops: "check( check){2}", left: noRelease},
	"no receipt, bypassed":  {call: `{"call":"slot","activity":"export","args":{"roles":["admin"]}}`, answer: `{"allowed":true,"reason":"bypassed","lost":false}`, ops: "check", left: noRelease},
	"no receipt, shadow":    {post: post{mode: live.Shadow}, before: 3, call: shortWork, answer: `{"allowed":true,"reason":"shadow","lost":false}`, ops: "check", left: noRelease},
	"no receipt, unlimited": {call: `{"call":"slot","activity":"view"}`, answer: `{"allowed":true,"reason":"unlimited","lost":false}`, ops: "check", left: noRelease},

	"no log":                     {call: `{"call":"slot","activity":"complete"}`, class: "ValidationError", ops: "check release"},
	"settled once":               {call: `{"call":"settle","activity":"complete","args":{"count":4000},"used":1400}`, answer: `{"granted":4000}`, ops: "check release( release)?", left: 1400},
	"settled in a room":          {call: `{"call":"settle","activity":"record","args":{"count":3,"subjects":{"room":"r1"}},"used":1}`, answer: `{"granted":3}`, ops: "check release( release)?", left: 1},
	"nothing left to settle":     {call: `{"call":"settle","activity":"complete","args":{"count":4000},"used":5000}`, answer: `{"granted":4000}`, ops: "check", left: noRelease},
	"no receipt, not settled":    {call: `{"call":"settle","activity":"complete","args":{"count":40,"roles":["admin"]},"used":1}`, answer: `{"reason":"bypassed"}`, ops: "check", left: noRelease},
	"renewed by a call, unknown": {call: `{"call":"renew","activity":"export","args":{"at":1,"requestId":"r1"}}`, answer: `{"allowed":false,"reason":"expired","granted":0}`, ops: "renew", left: noRelease},
}

// gone loses everything after the check.
func gone(op string, _ int) loss {
	if op == "check" {
		return nothing
	}
	return all
}

// first loses the first n requests with an op.
func first(op string, n int, lost loss) func(string, int) loss {
	return func(asked string, count int) loss {
		if asked == op && count <= n {
			return lost
		}
		return nothing
	}
}

// Each client does all this by Invoke and through an agent, at the same time.
func TestSlots(t *testing.T) {
	testkit.Clients.Need(t)
	everyClient(t, func(t *testing.T, c client) {
		y := openYard(t)
		drivers := map[way]*driver{byInvoke: c.start(t, y.url, nil), byAgent: c.start(t, y.url, withoutAWS(t))}
		tries := 0
		testkit.Retry(t, func(tb testing.TB) { // a busy machine loses slots, too
			tb.Helper()
			tries++
			var wg sync.WaitGroup
			for by, d := range drivers {
				wg.Go(func() {
					testkit.NoError(tb, useSlots(tb, y, d, by, tries))
				})
			}
			wg.Wait()
		})
	})
}

// useSlots plays all places at once by one way, and reports what is wrong.
func useSlots(t testing.TB, y *yard, d *driver, by way, try int) error {
	t.Helper()
	options := maps.Clone(patient)
	if by == byAgent {
		options["agent"] = y.url
	}
	if r, err := d.ask(map[string]any{"new": options}); err != nil || !r.OK {
		return fmt.Errorf("a new client: %+v, %w", r, err)
	}
	// Until an agent has answered a process, silence is no outage.
	y.post("first-guard", new(post))
	if _, err := d.ask(commandBy(t, "u1", `{"call":"status","activity":{"guard":"first-guard","activity":"view"}}`)); err != nil {
		return err
	}
	var names []string
	var calls []map[string]any
	for name, p := range places {
		if by == byAgent && p.outage {
			continue
		}
		post := p.post
		guard := fmt.Sprintf("%s-by-%s-%d", strings.NewReplacer(" ", "-", ",", "").Replace(name), by, try)
		own := y.post(guard, &post)
		for range p.before {
			if _, err := own.handler.Invoke(t.Context(), []byte(`{"userId":"u1","activity":"export"}`)); err != nil {
				return err
			}
		}
		call := commandBy(t, "u1", p.call)
		call["activity"] = map[string]any{"guard": guard, "activity": call["activity"]}
		names, calls = append(names, name), append(calls, call)
	}
	together, err := d.ask(map[string]any{"together": calls})
	for i, got := range together.Results {
		p, guard := places[names[i]], calls[i]["activity"].(map[string]any)["guard"].(string)
		for _, problem := range p.problems(t, y, guard, got) {
			t.Errorf("%s by %s: %s", names[i], by, problem)
		}
	}
	return err
}

// problems returns what is wrong with a result.
func (p place) problems(t testing.TB, y *yard, guard string, got result) (problems []string) {
	t.Helper()
	problems = differences(t, p.answer, got.Answer)
	switch {
	case p.class != "" && (got.Error == nil || got.Error.Class != p.class):
		problems = append(problems, fmt.Sprintf("%+v and the error %+v, want %s", got.Answer, got.Error, p.class))
	case p.class == "" && got.Error != nil:
		problems = append(problems, fmt.Sprintf("%+v", got.Error))
	}
	if p.least != 0 {
		began, _ := got.Answer["began"].(float64)
		ended, _ := got.Answer["ended"].(float64)
		if lasted := int64(ended - began); lasted < p.least-10 || lasted > p.least+1000 {
			problems = append(problems, fmt.Sprintf("the work takes %d ms, want %d and at most a second more", lasted, p.least))
		}
	}
	ops, left := y.asked(guard)
	if !regexp.MustCompile("^"+p.ops+"$").MatchString(ops) || left != p.left {
		problems = append(problems, fmt.Sprintf("the requests are %q and leave %d, want %q and %d", ops, left, p.ops, p.left))
	}
	return problems
}

// The examples of slots and of settling run as they stand: first for a user who may, then
// for one whose slots or tokens are used.
func TestSamplesOfSlots(t *testing.T) {
	testkit.Clients.Need(t)
	t.Parallel()
	for name, sample := range map[string]struct {
		prints string
		left   int64 // what counts in the end for the one who may
		used   string
	}{
		"slots/export":     {"page 1\npage 2\npage 3\n", 0, `{"userId":"u1","activity":"export","count":3}`},
		"reserve/complete": {"1400 tokens\n", 1400, `{"userId":"u1","activity":"complete","count":97000}`},
	} {
		for _, language := range []string{"mjs", "py", "go"} {
			t.Run(path.Base(name)+"."+language, func(t *testing.T) {
				command := append(app(t, language, fileOf(t, filepath.Join(root, "examples", filepath.FromSlash(name+"."+language)))), "u1")
				run := func(t testing.TB, before, prints, asks string) {
					t.Helper()
					y := openYard(t)
					own := y.post("exports-guard", new(post))
					testkit.Must(own.handler.Invoke(t.Context(), []byte(before)))(t)
					out := output(t, y.url, command...)
					ops, left := y.asked("exports-guard")
					if got := fmt.Sprint(ops, " ", left); out != prints || got != asks {
						t.Errorf("printed %q after the requests and the rest %q, want %q and %q", out, got, prints, asks)
					}
				}
				testkit.Retry(t, func(t testing.TB) { // the samples have the client's own timeouts
					run(t, `{"userId":"u2","activity":"view"}`, sample.prints, fmt.Sprint("check release ", sample.left))
					run(t, sample.used, "429 "+tooMany+"\n", fmt.Sprint("check ", noRelease))
				})
			})
		}
	}
}
