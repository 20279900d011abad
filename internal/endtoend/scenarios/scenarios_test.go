// Package scenarios_test runs one table of scenarios against every client: Go,
// TypeScript and Python, the last two as packed and installed by make packages.
//
// A client is driven by a program, its driver. A driver reads one command per
// line from stdin and prints one result per line. Times are in milliseconds, and
// each option and each argument may be left out:
//
//	{"new": {"onOutage": "deny", "timeout": 3000, "maxTries": 3, "decisionTimeout": 1000, "prefix": "", "urls": {}}}
//	    {"ok": true}
//	{"new": {"agent": "http://127.0.0.1:2774", "token": "secret", "noList": true}}
//	    {"ok": true}
//	{"new": {"activities": {"write": {"guard": "forum-guard", "subjects": ["room", "tenant?"]}}}}
//	    {"ok": true}
//	{"call": "check", "activity": "create_post", "args": {"userId": "u1", "count": 2}}
//	    {"answer": {"allowed": true, "reason": "ok", ...}, "ms": 12}
//	{"call": "guarded", "activity": {"guard": "x", "activity": "y"}, "args": {"userId": "u1"}, "save": "fail"}
//	    {"error": {"class": "SaveError", "message": "..."}, "ms": 12}
//	{"call": "slot", "activity": "export", "args": {"userId": "u1"}, "work": 500, "save": "fail"}
//	    {"answer": {"allowed": true, ..., "lost": false, "began": 1700000000000, "ended": 1700000000500}, "ms": 510}
//	{"call": "settle", "activity": "complete", "args": {"userId": "u1", "count": 40}, "used": 14}
//	    {"answer": {"allowed": true, ...}, "ms": 12}
//	{"together": [{"call": ...}, {"call": ...}]}
//	    {"results": [{"answer": ...}, {"error": ...}]}
//
// The client asks the binaries of the guards, behind a server that speaks
// Lambda's Invoke API and serves Function URLs, or an agent, behind a server that
// passes requests on. The server can lose an answer, hang, refuse and so on. Each
// scenario states the caller's result, the number of requests that arrive, and the
// count in the table afterwards.
package scenarios_test

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
)

// A scenario is a situation when an app calls a client.
type scenario struct {
	name     string
	invoke   bool              // whether it runs with Lambda's Invoke API
	url      bool              // whether it runs with Function URLs
	noAgent  string            // why it makes no sense through an agent; empty: it runs there
	mistake  bool              // whether the app can't reach the guard because of a mistake: nothing may be let through
	resolver bool              // whether the machine's resolver must know that a host does not exist
	guard    string            // that is asked; empty: posts-guard
	options  map[string]any    // of the client; "prefix" selects the function, see deploy
	env      map[string]string // changes to the driver's environment; empty removes a variable
	steps    []step
	counted  int64 // what is counted for the user at the end
}

// A step is one call of the client.
type step struct {
	before      string // fields of an event that is sent to posts-guard first, such as "count":10
	pause       time.Duration
	faults      []fault // of the next requests
	sourceFails bool    // whether the source of credentials fails
	call        string  // a command; the harness adds the user's id, and replaces ID, ROOM, $at and $requestId
	answer      string  // wanted: some fields of the answer as JSON, texts as in message, also for lists; null: the answer lacks the field
	class       string  // wanted: the class of the error; "any": some error
	message     string  // wanted: the error's message; {F} is the function's name, {R} the region, * any text
	requests    int     // wanted: requests that arrive; -1: any number
	most        time.Duration
}

const region = "us-east-1"

// patient options keep a busy machine from looking like an outage.
var patient = map[string]any{"timeout": 20_000, "decisionTimeout": 5_000, "maxTries": 3}

func TestScenarios(t *testing.T) {
	testkit.Clients.Need(t)
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.runScenarios(t, deploy(t), byInvoke, byURL)
		})
		t.Run(c.name+" beside an agent", func(t *testing.T) {
			t.Parallel()
			c.runScenarios(t, besideApp(t), byAgent, bySocket)
		})
	}
}

// runScenarios runs the scenarios with each of these ways that they are meant for.
func (c client) runScenarios(t *testing.T, cloud *cloud, ways ...way) {
	t.Helper()
	shared := c.start(t, cloud.url, cloud.env) // starting a driver takes longer than most scenarios
	for _, by := range ways {
		cloud.wake(t, shared, by)
		for _, s := range scenarios {
			if s.runs(by) {
				t.Run(s.name+" by "+string(by), func(t *testing.T) { s.run(t, c, shared, cloud, by) })
			}
		}
	}
}

// A trial is one run of a scenario.
type trial struct {
	*testing.T
	scenario
	client client
	driver *driver
	cloud  *cloud
	by     way
	user   string
	last   map[string]any // the last answer
}

// run runs the scenario within one minute of the clock, because posts-guard
// counts in minutes. On a busy machine, it tries again if the result depends on
// the time that an answer takes.
func (s scenario) run(t *testing.T, c client, d *driver, cloud *cloud, by way) {
	if s.resolver && !testkit.KnowsAbsent(t.Context(), absentHost) {
		t.Skipf("the resolver does not know that %s does not exist", absentHost)
	}
	if s.env != nil {
		d = c.start(t, cloud.url, s.env)
	}
	for tries := 1; ; tries++ {
		began := time.Now().Truncate(time.Minute)
		tr := &trial{T: t, scenario: s, client: c, driver: d, cloud: cloud, by: by, user: "user-" + rand.Text()}
		problems := tr.play()
		if counted := cloud.counted(t, tr.user); counted != s.counted {
			problems = append(problems, fmt.Sprintf("%d counted, want %d", counted, s.counted))
		}
		if len(problems) > 0 && (s.timed() && tries < testkit.Tries || !time.Now().Truncate(time.Minute).Equal(began)) {
			t.Logf("try %d: %q", tries, problems)
			continue
		}
		for _, problem := range problems {
			t.Error(problem)
		}
		return
	}
}

// play makes the calls and returns what is wrong.
func (tr *trial) play() (problems []string) {
	tr.cloud.expect(step{}) // some clients fetch their credentials when they are made
	opened := tr.driver.do(tr.T, map[string]any{"new": tr.newOptions()})
	steps := tr.steps
	if tr.mistake { // the app's own write must not happen either
		again := steps[len(steps)-1]
		again.call = strings.Replace(again.call, `"check"`, `"guarded","save":"ok"`, 1)
		steps = append(slices.Clip(steps), again)
	}
	for i, s := range steps {
		for _, problem := range tr.step(opened, s) {
			problems = append(problems, fmt.Sprintf("step %d, %s: %s", i+1, s.call, problem))
		}
	}
	if log := tr.driver.logged(); strings.Contains(log, tr.user) {
		problems = append(problems, "the client logs the id of the user or of the room: "+log)
	}
	return problems
}

func (tr *trial) newOptions() map[string]any {
	options := maps.Clone(patient)
	maps.Copy(options, tr.options)
	switch {
	case tr.by.isAgent():
		prefix, _ := options["prefix"].(string)
		options["agent"] = tr.cloud.agents[tr.by][prefix]
		if _, ok := options["token"]; !ok && tr.by == byAgent {
			options["token"] = token
		}
		delete(options, "prefix")
	case tr.by == byURL:
		options["urls"] = map[string]string{cmp.Or(tr.guard, "posts-guard"): tr.cloud.url + "/" + tr.function()}
	}
	return options
}

// function returns the name of the function that the scenario asks. Messages about an
// agent have its address, or the name of the guard.
func (tr *trial) function() string {
	if tr.by.isAgent() {
		return "*"
	}
	prefix, _ := tr.options["prefix"].(string)
	return prefix + cmp.Or(tr.guard, "posts-guard")
}

// step makes one call and returns what is wrong. A client may report a mistake
// already when it is made.
func (tr *trial) step(opened result, s step) (problems []string) {
	if s.before != "" {
		tr.cloud.ask(tr.T, tr.user, s.before)
	}
	time.Sleep(s.pause)
	tr.cloud.expect(s)
	got := opened
	if opened.Error == nil {
		got = tr.driver.do(tr.T, tr.command(s.call))
	}
	seen := tr.cloud.seen(tr.T)
	if len(seen) != s.requests && s.requests >= 0 {
		problems = append(problems, fmt.Sprintf("%d requests, want %d", len(seen), s.requests))
	}
	for _, r := range seen {
		repeat := r.Op == "check" && r.RequestID == seen[0].RequestID
		if named := r.RequestID != ""; r.Op == "check" && (!repeat || named == (r.Partial && !strings.Contains(s.call, "requestId"))) {
			problems = append(problems, fmt.Sprintf("the requests are %+v, want one id for all, and none with partial", seen))
			break
		}
	}
	if took := time.Duration(got.Ms) * time.Millisecond; s.most != 0 && took > s.most {
		problems = append(problems, fmt.Sprintf("it took %v, want at most %v", took, s.most))
	}
	if strings.Contains(fmt.Sprint(got.Answer, got.Error), secret) {
		problems = append(problems, "the message has the text of the source of credentials, which could be a secret")
	}
	if got.Answer != nil {
		tr.last = got.Answer
	}
	return append(problems, tr.compare(got, s)...)
}

// command returns a command with the user's id and what the last answers held.
func (tr *trial) command(text string) map[string]any {
	id, _ := tr.last["requestId"].(string)
	at, _ := tr.last["at"].(float64)
	text = strings.NewReplacer("ID", "id-"+tr.user, "ROOM", "room-"+tr.user, "$requestId", id, `"$at"`, fmt.Sprintf("%.0f", at)).Replace(text)
	return commandBy(tr.T, tr.user, text)
}

// commandBy returns a command that a user gives.
func commandBy(t testing.TB, user, text string) map[string]any {
	t.Helper()
	c := map[string]any{"args": map[string]any{}}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	c["args"].(map[string]any)["userId"] = user
	return c
}

// compare returns how the result differs from what the step wants.
func (tr *trial) compare(got result, s step) (problems []string) {
	if s.class != "" {
		if got.Error == nil {
			return []string{fmt.Sprintf("the answer is %v, want the error %s", got.Answer, s.class)}
		}
		want := strings.NewReplacer("{F}", tr.function(), "{R}", region, "{AWS_REGION}", tr.client.regionVariable).Replace(s.message)
		if s.class != "any" && (got.Error.Class != s.class || !matches(want, got.Error.Message)) {
			problems = append(problems, fmt.Sprintf("%s: %q, want %s: %q", got.Error.Class, got.Error.Message, s.class, want))
		}
		return problems
	}
	if got.Error != nil {
		return []string{fmt.Sprintf("the error is %+v, want the answer %s", *got.Error, s.answer)}
	}
	return differences(tr.T, strings.ReplaceAll(s.answer, "{F}", tr.function()), got.Answer)
}

// differences returns the fields of an answer that are not as wanted.
func differences(t testing.TB, wanted string, answer map[string]any) (problems []string) {
	t.Helper()
	var want map[string]any
	if err := json.Unmarshal([]byte(wanted), &want); wanted != "" && err != nil {
		t.Fatalf("%s: %v", wanted, err)
	}
	for name, value := range want {
		field := answer[name]
		if list, ok := field.([]any); ok {
			field = string(testkit.Must(json.Marshal(list))(t))
		}
		pattern, _ := value.(string)
		text, isText := field.(string)
		if field != value && (!isText || !matches(pattern, text)) {
			problems = append(problems, fmt.Sprintf("%s is %v, want %v, in %v", name, field, value, answer))
		}
	}
	return problems
}

// matches reports whether a text has the form of a pattern. * stands for any
// text.
func matches(pattern, text string) bool {
	return regexp.MustCompile("(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$").MatchString(text)
}
