package scenarios_test

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

// A subject is added to an activity without an outage: first the guard is deployed with
// the optional subject, then the backends that send it, and then the guard that requires
// it. Backends with each client check, give back, settle and hold slots all the time. No
// call fails, and each action is counted.
func TestASubjectIsAddedWithoutAnOutage(t *testing.T) {
	cloud := &cloud{table: dynamotest.Table(t)}
	stage := openStage(t, cloud.table)
	stage.serve("none")
	var backends []*backend
	for _, c := range append([]client{asyncPython}, clients...) {
		backends = append(backends, newBackend(t, c, stage.url, backendVersion{list: listOf()}))
	}
	var wg sync.WaitGroup
	for _, b := range backends {
		wg.Go(b.run)
	}
	work(t, "before the deploys", backends)
	stage.serve("none", "optional")
	work(t, "while the guard with the optional room is deployed", backends)
	stage.serve("optional")
	work(t, "with the optional room", backends)
	for i, b := range backends {
		b.deploys <- backendVersion{list: listOf("room?", "tenant?"), room: true}
		work(t, fmt.Sprintf("with %d backends that send the room", i+1), backends)
	}
	stage.serve("optional", "required")
	work(t, "while the guard that requires the room is deployed", backends)
	stage.serve("required")
	work(t, "with the required room", backends)
	for _, b := range backends {
		b.deploys <- backendVersion{list: listOf("room", "tenant?"), room: true}
	}
	work(t, "with lists of the guard that requires the room", backends)
	for _, b := range backends {
		close(b.deploys)
	}
	wg.Wait()

	var inRoom int64
	for _, b := range backends {
		inRoom += b.inRoom
		if got := cloud.counted(t, b.user); got != b.counted {
			t.Errorf("%s: %d actions are counted, want %d", b.user, got, b.counted)
		}
	}
	if got := cloud.counted(t, limits.SubjectID("room", "r1")); got != inRoom || inRoom == 0 {
		t.Errorf("%d actions are counted in the room, want %d", got, inRoom)
	}
	for version, event := range map[string]string{ // so the order of the deploys matters
		"none":     `{"userId":"u1","activity":"note","subjects":{"room":"r1"}}`,
		"required": `{"userId":"u1","activity":"note"}`,
	} {
		if r := stage.instances[version].Invoke(t, event); r.ErrorType != "ValidationError" {
			t.Errorf("%s, asked %s: %v, want a ValidationError", version, event, r)
		}
	}
}

// A stage is Lambda with one function, forum-guard. While it is deployed, instances of
// two versions serve it.
type stage struct {
	url       string
	instances map[string]*lambdatest.Instance // by what they have in ROOM
	serving   atomic.Pointer[[]string]
}

func openStage(t *testing.T, table string) *stage {
	t.Helper()
	s := &stage{instances: map[string]*lambdatest.Instance{}}
	for _, room := range []string{"none", "optional", "required"} {
		s.instances[room] = lambdatest.Start(t, lambdatest.Build(t, forum),
			"AWS_ENDPOINT_URL_DYNAMODB="+dynamotest.Endpoint(t), "DECISION_TIMEOUT=5s", "TABLE_NAME="+table, "ROOM="+room)
		s.instances[room].Ready(t)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /2015-03-31/functions/forum-guard/invocations", s.invoke)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// serve sets which versions serve the next requests.
func (s *stage) serve(rooms ...string) { s.serving.Store(&rooms) }

func (s *stage) invoke(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client gave up
	}
	serving := *s.serving.Load()
	result, err := s.instances[serving[rand.N(len(serving))]].Do(r.Context(), lambdatest.Invocation{Payload: body})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if result.ErrorType != "" {
		w.Header().Set("X-Amz-Function-Error", "Unhandled")
	}
	_, _ = w.Write(result.Payload)
}

// A backend is a process of an app that asks forum-guard all the time. A deploy gives it
// another version, after the call that it makes.
type backend struct {
	driver  *driver
	user    string
	version backendVersion
	deploys chan backendVersion // closed: the end

	calls    atomic.Int64
	problems atomic.Pointer[string] // the first one
	counted  int64                  // actions that count at the end
	inRoom   int64                  // those of them that count in the room, too
}

// A backendVersion is a list of activities, and whether the backend sends a room.
type backendVersion struct {
	list map[string]any
	room bool
}

// newBackend starts a backend, which does not run yet.
func newBackend(t *testing.T, c client, url string, v backendVersion) *backend {
	t.Helper()
	b := &backend{driver: c.start(t, url, nil), user: "user-of-" + c.name, deploys: make(chan backendVersion)}
	b.deploy(v)
	return b
}

func (b *backend) deploy(v backendVersion) {
	b.version = v
	options := maps.Clone(patient)
	options["activities"] = v.list
	if r, err := b.driver.ask(map[string]any{"new": options}); err != nil || r.Error != nil {
		b.problem("a new client: %+v, %v", r, err)
	}
}

// run makes one call after another until the end.
func (b *backend) run() {
	for {
		select {
		case v, ok := <-b.deploys:
			if !ok {
				return
			}
			b.deploy(v)
		default:
			b.call()
		}
	}
}

// rounds are the calls of a backend, in their order.
var rounds = []struct {
	name, activity string
	further        map[string]any
	count, counts  int64 // actions of the call, and how many of them count afterwards
	class          string
}{
	{"check", "note", nil, 1, 1, ""},
	{"guarded", "note", map[string]any{"save": "fail"}, 2, 0, "SaveError"},
	{"settle", "note", map[string]any{"used": 1}, 3, 1, ""},
	{"slot", "call", map[string]any{"work": 30}, 1, 0, ""},
}

func (b *backend) call() {
	round := rounds[b.calls.Load()%int64(len(rounds))]
	user, room := b.user, "r1"
	if round.name == "slot" { // an item with slots has no count
		user, room = user+"-with-slots", "r2"
	}
	args := map[string]any{"userId": user, "count": round.count}
	if b.version.room {
		args["subjects"] = map[string]string{"room": room}
	}
	command := map[string]any{"call": round.name, "activity": round.activity, "args": args}
	maps.Copy(command, round.further)
	r, err := b.driver.ask(command)
	switch {
	case err != nil, round.class == "" && r.Error != nil, r.Error != nil && r.Error.Class != round.class:
		b.problem("%s: %+v, %v", round.name, r.Error, err)
		time.Sleep(10 * time.Millisecond)
	case r.Error == nil && (r.Answer["allowed"] != true || r.Answer["reason"] != "ok"):
		b.problem("%s: %v", round.name, r.Answer)
	}
	b.counted += round.counts
	if b.version.room {
		b.inRoom += round.counts
	}
	b.calls.Add(1)
}

func (b *backend) problem(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	b.problems.CompareAndSwap(nil, &text)
}

// work waits until each backend has begun and ended each of its calls, and reports their
// problems.
func work(t *testing.T, when string, backends []*backend) {
	t.Helper()
	late := time.Now().Add(time.Minute)
	for _, b := range backends {
		for end := b.calls.Load() + int64(len(rounds)) + 1; b.calls.Load() < end && time.Now().Before(late); {
			time.Sleep(5 * time.Millisecond)
		}
		if problem := b.problems.Swap(nil); problem != nil {
			t.Errorf("%s, %s: %s", when, b.user, *problem)
		}
	}
	if time.Now().After(late) {
		t.Fatalf("%s: too slow", when)
	}
}
