package console_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/wiring"
	"github.com/cric-talk/guards/internal/workbench/console"
)

// A stream is a page that is open.
type stream struct {
	t      *testing.T
	events chan event
	stop   func() // closes the page
}

// An event is a server-sent event.
type event struct{ id, name, data string }

// open asks for the stream of events.
func (r *rig) open(query string) *http.Response {
	r.t.Helper()
	request := testkit.Must(http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.url+"/console/events"+query, http.NoBody))(r.t)
	return testkit.Must(http.DefaultClient.Do(request))(r.t)
}

// watch opens the stream of events.
func (r *rig) watch(query string) *stream {
	r.t.Helper()
	response := r.open(query) //nolint:bodyclose // the cleanup closes it
	s := &stream{r.t, make(chan event, 1000), func() { _ = response.Body.Close() }}
	go func() {
		defer close(s.events)
		var e event
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				e.id = value
			case "event":
				e.name = value
			case "data":
				e.data = value
			case "":
				s.events <- e
				e = event{}
			}
		}
	}()
	r.t.Cleanup(s.stop)
	return s
}

// wait waits for an event with a name whose data contain a text.
func (s *stream) wait(name, text string) event {
	s.t.Helper()
	limit := time.After(30 * time.Second)
	for {
		select {
		case e, open := <-s.events:
			if !open {
				s.t.Fatalf("the stream ended before an event %s with %q", name, text)
			}
			if e.name == name && strings.Contains(e.data, text) {
				return e
			}
		case <-limit:
			s.t.Fatalf("there is no event %s with %q", name, text)
		}
	}
}

func TestTheStreamShowsWhatAppsCause(t *testing.T) {
	r := start(t, 30*time.Second, nil)
	s := r.watch("")
	s.wait("clock", `"ahead":""`)
	s.wait("windows", `[]`)
	r.app("posts-guard", `{"userId": "u1", "activity": "create_post", "count": 10}`)
	s.wait("windows", `"used":10,"limit":10,`)
	if e := s.wait("answer", `"from":"app"`); e.id != "1" || !strings.Contains(e.data, `"verdict":"allowed","detail":"10 of 10 used, 0 left, crossed 100 %"`) {
		t.Errorf("%+v", e)
	}
	r.send(http.MethodPost, "/posts-guard", `{"userId": "u1", "activity": "create_post"}`) // the form of a Function URL
	s.wait("windows", `"refused":"Refused."`)
	s.wait("answer", `"what":"check create_post","user":"u1","kind":"refused","mark":"✕","verdict":"refused","detail":"10 of 10 used, 0 left, wait `)
	r.send(http.MethodPost, "/posts-guard", `{"userId": "u1", "activity": "pst"}`)
	s.wait("answer", `"kind":"error"`)
	r.own("/console/ask", `{"function": "posts-guard", "event": {"userId": "u1", "activity": "like"}}`)
	s.wait("answer", `"from":"console","what":"check like"`)

	later := r.watch("?after=3") // the page already shows three
	if e := later.wait("answer", ""); e.id != "4" {
		t.Errorf("%+v, want the fourth answer", e)
	}
	r.watch("?after=99").wait("answer", `"n":1,`) // the server has started again: it begins at 1

	r.own("/console/clock", `{"move": 30000}`)
	s.wait("clock", `"ahead":"30 s"`)
	s.wait("windows", `"used":0,"limit":10,`) // the window rolled over, and nobody asked
}

func TestTheClockMovesAheadAndBack(t *testing.T) {
	r := start(t, 0, nil)
	for _, tt := range []struct {
		body   string
		status int
		ahead  string
	}{
		{`{"move": 60000}`, 200, "60 s"},
		{`{"move": 60000}`, 200, "120 s"},
		{`{"to": 1}`, 200, "120 s"}, // a time that has passed
		{`{"move": -1}`, 400, ""},
		{`{"move": 31622400000}`, 400, ""}, // 366 days and 2 minutes
		{`{"move": 9223372036854775807}`, 400, ""},
		{`{"reset": true}`, 200, ""},
	} {
		got := r.own("/console/clock", tt.body)
		var view struct{ Ahead string }
		if err := json.Unmarshal([]byte(got.Text), &view); got.StatusCode != tt.status || tt.status == 200 && (err != nil || view.Ahead != tt.ahead) {
			t.Errorf("%s: %d %s, want %d and %q", tt.body, got.StatusCode, got.Text, tt.status, tt.ahead)
		}
	}
	if got := r.own("/console/clock", `{"to": 1767618000000}`); !strings.Contains(got.Text, `"time":"13:00:0`) {
		t.Errorf("moved to 13:00: %s", got.Text)
	}
}

// While the table is down, the page shows what the guard decides from memory.
func TestAnOutageIsShown(t *testing.T) {
	r := start(t, 0, nil)
	r.app("posts-guard", `{"userId": "u1", "activity": "create_post", "count": 4}`)
	s := r.watch("")
	s.wait("windows", `"used":4,"limit":10,`)
	r.store.down.Store(true)
	s.wait("windows", `"unknown":"The table does not answer. These figures are from the guard's memory."`)
	r.app("posts-guard", `{"userId": "u1", "activity": "create_post"}`)
	s.wait("windows", `"used":5,"limit":10,`)
	s.wait("answer", `"detail":"5 of 10 used, 5 left, unavailable"`)
}

// A check with partial, and a release, can have a count above the limit. With
// ON_LIMIT=error a refusal is an error without figures, and the console reads them itself.
func TestARefusalHasABar(t *testing.T) {
	const event = `{"userId": "u1", "activity": "create_post", "count": 25, "partial": true}`
	for _, isError := range []bool{false, true} {
		r := start(t, 30*time.Second, func(_ *console.Console, s *wiring.Settings) { s.RefusalIsError = isError })
		s := r.watch("")
		r.app("posts-guard", event)
		s.wait("windows", `"used":10,"limit":10,`)
		r.app("posts-guard", event)
		s.wait("windows", `"refused":"Refused."`)
		s.wait("answer", map[bool]string{
			true: `"verdict":"refused","detail":"RateLimitExceeded: Rate limit exceeded: Too many requests in a short period, wait `, false: `"kind":"refused"`,
		}[isError])
		r.app("posts-guard", `{"userId": "u1", "activity": "create_post", "op": "release", "count": 25, "at": 1, "requestId": "r1"}`)
		s.wait("answer", `"what":"release create_post × 25"`)
		r.own("/console/clock", `{"move": 30000}`)
		if e := s.wait("windows", `"used":0,"limit":10,`); !strings.Contains(e.data, `"unknown":""`) {
			t.Errorf("ON_LIMIT=error: %v: %s", isError, e.data)
		}
	}
}

// The countdown belongs to the event that the button sends once more.
func TestTheCountdownIsThatOfTheRefusedRequest(t *testing.T) {
	r := start(t, 0, nil)
	s := r.watch("")
	r.app("posts-guard", `{"userId": "u1", "activity": "create_post", "count": 8}`)
	r.app("posts-guard", `{"userId": "u1", "activity": "create_post", "count": 5}`)
	s.wait("windows", `"refused":"Refused."`)
	r.app("posts-guard", `{"userId": "u1", "activity": "create_post", "op": "status"}`) // one more action could pass at once
	time.Sleep(1500 * time.Millisecond)                                                 // the figures are read again after a second
	r.app("posts-guard", `{"userId": "u2", "activity": "create_post"}`)                 // so that the windows are sent
	e := s.wait("windows", `"user":"u2"`)
	passes := regexp.MustCompile(`"user":"u1".*"passesAt":(\d+),`).FindStringSubmatch(e.data)
	if passes == nil {
		t.Fatalf("the windows are %s", e.data)
	}
	ms, _ := strconv.ParseInt(passes[1], 10, 64)
	if at, end := time.UnixMilli(ms), noon.Add(time.Minute); at.Before(end.Add(-time.Second)) || at.After(end.Add(time.Second)) {
		t.Errorf("the request can pass at %v, want the end of the window", at.UTC())
	}
}

// An activity with several limits has a bar for each.
func TestEachLimitHasABar(t *testing.T) {
	r := startFor(t, guards.Guard{Name: "mail-guard", Message: "Slow down.", Activities: []guards.Activity{
		{Name: "send", Limit: "minute: 2/1m, day: 5/1d"},
	}})
	s := r.watch("")
	r.app("mail-guard", `{"userId": "u1", "activity": "send", "count": 2}`)
	s.wait("windows", `"bars":[{"name":"minute","used":2,"limit":2,"text":"2 of 2 used, 0 left",`)
	r.own("/console/clock", `{"move": 60000}`)
	e := s.wait("windows", `"bars":[{"name":"minute","used":0,"limit":2,`)
	if r.app("mail-guard", `{"userId": "u1", "activity": "send"}`); !strings.Contains(s.wait("windows", `"used":1,`).data, `"resetAt":1767614520000,"reset":`) {
		t.Error("the window does not skip to 12:02, the next reset of its limits")
	}
	if !strings.Contains(e.data, `{"name":"day","used":2,"limit":5,"text":"2 of 5 used, 3 left",`) {
		t.Error(e.data)
	}
}
