package scenarios_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

// deploys lists the steps that add a subject to the activities of forum-guard.
var deploys = []struct {
	when  string
	serve []string // the versions of the guard that serve in turn, by what they have in ROOM
	list  []string // the subjects in the backends' list of activities; with some, they send the room
}{
	{"before the deploys", []string{"none"}, nil},
	{"while the guard with the optional room is deployed", []string{"none", "optional"}, nil},
	{"with the optional room", []string{"optional"}, nil},
	{"with backends that send the room", []string{"optional"}, []string{"room?", "tenant?"}},
	{"while the guard that requires the room is deployed", []string{"optional", "required"}, []string{"room?", "tenant?"}},
	{"with the required room", []string{"required"}, []string{"room?", "tenant?"}},
	{"with lists of the guard that requires the room", []string{"required"}, []string{"room", "tenant?"}},
}

// A subject is added to an activity without an outage. First the guard is deployed with
// the optional subject, then the backends that send it, and then the guard that requires
// it. Backends with each client check, give back, settle and hold slots meanwhile. No
// call fails, and each action is counted.
func TestASubjectIsAddedWithoutAnOutage(t *testing.T) {
	testkit.Clients.Need(t)
	t.Parallel()
	c := &cloud{table: dynamotest.Table(t), functions: map[string]*lambdatest.Instance{}}
	for _, room := range []string{"none", "optional", "required"} {
		c.functions[room] = lambdatest.Start(t, lambdatest.Build(t, forum),
			"AWS_ENDPOINT_URL_DYNAMODB="+dynamotest.Endpoint(t), "DECISION_TIMEOUT=5s", "TABLE_NAME="+c.table, "ROOM="+room)
	}
	var serve []string
	var requests atomic.Int64
	server := testkit.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client gave up
		}
		r.SetPathValue("name", serve[requests.Add(1)%int64(len(serve))])
		c.invoke(w, r, body)
	})
	backends := map[string]*driver{} // by user
	for _, client := range append([]client{asyncPython}, clients...) {
		backends["user-of-"+client.name] = client.start(t, server.URL, nil)
	}
	var counted, inRoom int64
	for _, d := range deploys {
		serve = d.serve
		var wg sync.WaitGroup
		for user, backend := range backends {
			wg.Go(func() {
				for range 2 {
					if err := work(backend, user, d.list); err != nil {
						t.Errorf("%s, %s: %v", d.when, user, err)
					}
				}
			})
		}
		wg.Wait()
		counted += 2 * 2
		if d.list != nil {
			inRoom += 2 * 2 * int64(len(backends))
		}
	}
	for user := range backends {
		if got := c.counted(t, user); got != counted {
			t.Errorf("%s: %d actions are counted, want %d", user, got, counted)
		}
	}
	if got := c.counted(t, limits.SubjectID("room", "r1")); got != inRoom {
		t.Errorf("%d actions are counted in the room, want %d", got, inRoom)
	}
	for version, event := range map[string]string{ // so the order of the deploys matters
		"none":     `{"userId":"u1","activity":"note","subjects":{"room":"r1"}}`,
		"required": `{"userId":"u1","activity":"note"}`,
	} {
		if r := c.functions[version].Invoke(t, event); r.ErrorType != "ValidationError" {
			t.Errorf("%s, asked %s: %v, want a ValidationError", version, event, r)
		}
	}
}

// work makes a backend of an app with this list of subjects, and lets it call in each way.
// Two actions count afterwards.
func work(backend *driver, user string, list []string) error {
	options := maps.Clone(patient)
	options["activities"] = listOf(list...)
	if r, err := backend.ask(map[string]any{"new": options}); err != nil || r.Error != nil {
		return fmt.Errorf("a new client: %+v, %w", r, err)
	}
	for _, c := range []struct {
		command map[string]any
		count   int
		class   string // of the error
	}{
		{map[string]any{"call": "check", "activity": "note"}, 1, ""},
		{map[string]any{"call": "guarded", "activity": "note", "save": "fail"}, 2, "SaveError"},
		{map[string]any{"call": "settle", "activity": "note", "used": 1}, 3, ""},
		{map[string]any{"call": "slot", "activity": "call", "work": 30}, 1, ""}, // an item with slots has no count
	} {
		args := map[string]any{"userId": user, "count": c.count}
		room := "r1"
		if c.command["call"] == "slot" {
			args["userId"], room = user+"-with-slots", "r2"
		}
		if list != nil {
			args["subjects"] = map[string]string{"room": room}
		}
		c.command["args"] = args
		r, err := backend.ask(c.command)
		class := ""
		if r.Error != nil {
			class = r.Error.Class
		}
		if err != nil || class != c.class || class == "" && (r.Answer["allowed"] != true || r.Answer["reason"] != "ok") {
			return fmt.Errorf("%v: %+v, %w", c.command, r, err)
		}
	}
	return nil
}
