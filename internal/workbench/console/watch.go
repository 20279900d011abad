package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/workbench/invokeapi"
)

// Held returns how many actions a guard can hand out of its leases, to a user or to the key
// of a subject. Until is when they end, in Unix milliseconds. 0, 0: it holds none.
type Held func(whose, activity string) (left, until int64)

// Watch returns h with a record of each event and its answer. Held is what h holds.
// Call it for each guard before the first request.
func (c *Console) Watch(function string, h lambda.Handler, held Held) lambda.Handler {
	if c.guards == nil {
		c.guards, c.held = make(map[string]lambda.Handler), make(map[string]Held)
	}
	c.guards[function], c.held[function] = h, held
	return watched{c, function, h}
}

// A watched handler is a guard's handler whose calls the console records.
type watched struct {
	console  *Console
	function string
	guard    lambda.Handler
}

// consoleKey is the context key that marks an event of the page's form.
type consoleKey struct{}

// Invoke implements lambda.Handler.
func (w watched) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	at := w.console.Clock.Now().UnixMilli()
	var before guards.Decision
	if asked := newCall(payload, nil, nil).request; asked.Op == guards.Release { // its own answer does not tell whether it gave anything back
		before = w.status(ctx, asked)
	}
	reply, err := w.guard.Invoke(ctx, payload)
	made := newCall(payload, reply, err)
	made.function, made.at, made.from = w.function, at, fromApp
	made.before = usedIn(partOf(before, made.request, ""))
	if ctx.Value(consoleKey{}) != nil {
		made.from = fromConsole
	}
	if _, refused := errors.AsType[*guard.RateLimitExceeded](err); refused { // ON_LIMIT=error: the refusal has no figures
		made.answer = w.status(ctx, made.request)
	}
	w.console.record(made)
	return reply, err
}

// status asks the guard for the figures of what r asks for. The console does not
// record that. It returns the zero Decision if the guard returns an error.
func (w watched) status(ctx context.Context, r guards.Request) guards.Decision {
	event := eventOf(statusOf(r))
	reply, err := w.guard.Invoke(ctx, event)
	return newCall(event, reply, err).answer
}

// record adds a call to what the page shows.
func (c *Console) record(made call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.history.n++
	c.history.calls = last(append(c.history.calls, made), maxShown)
	group, now := c.group(made.request.Activity), c.Clock.Now().UnixMilli()
	for _, p := range slices.Backward(partsOf(made.request)) { // the user's window comes first on the page
		if p.subject == "" || made.request.Op != guards.Reset { // a reset clears the user alone
			c.history.add(made, p, group)
			c.windows.add(made, p, group, now)
		}
	}
	for _, w := range c.windows.all {
		w.lease = c.lease(w)
	}
	c.notify()
}

// maxBytes is the size of the largest event that the form can send.
const maxBytes = 128 << 10

// serveAsk sends an event to a guard, in the same way as an app does. The body
// is {"function": NAME, "event": EVENT}. The response is the same as in
// Lambda's Invoke API.
func (c *Console) serveAsk(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Function string          `json:"function"`
		Event    json.RawMessage `json:"event"`
	}
	if !decode(w, r, &ask) {
		return
	}
	if _, ok := c.guards[ask.Function]; !ok {
		http.Error(w, "There is no guard with this name.", http.StatusNotFound)
		return
	}
	ctx := context.WithValue(r.Context(), consoleKey{}, true)
	invocation, err := http.NewRequestWithContext(ctx, http.MethodPost,
		"/2015-03-31/functions/"+ask.Function+"/invocations", bytes.NewReader(ask.Event))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.API.ServeHTTP(w, invocation)
}

// decode reads the body, which must be one JSON value. If it is not, decode
// answers the caller and returns false.
func decode(w http.ResponseWriter, r *http.Request, v any) bool {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBytes))
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		http.Error(w, "The body is not the JSON that the console sends: "+err.Error(), http.StatusBadRequest)
	}
	return err == nil
}

// A call is one invocation of a guard. Fields that the event or the answer does not
// have are zero. Times are Unix milliseconds.
type call struct {
	function string
	from     string // fromConsole or fromApp
	at       int64  // when it came, by the guards' clock
	event    json.RawMessage
	reply    json.RawMessage // nil if the guard returned an error
	request  guards.Request  // what the event asks; Op and Count are set, Job is not
	answer   guards.Decision // what the reply says, or a status if the refusal was an error
	err      string          // the error's type and message; empty for an answer
	before   int64           // what counted for the user before a release
}

// Who sent an event.
const (
	fromConsole = "console"
	fromApp     = "app"
)

// statusOf returns the request for the figures of what r asks for. A release or a
// renewal may have a count above the limit, but a status may not.
func statusOf(r guards.Request) guards.Request {
	if r.Op == guards.Release || r.Op == guards.Renew {
		r.Count = 1
	}
	return guards.Request{UserID: r.UserID, Activity: r.Activity, Op: guards.Status, Count: r.Count, Partial: r.Partial, Tier: r.Tier, Limit: r.Limit, Subjects: r.Subjects}
}

// eventOf returns a request as a guard reads it.
func eventOf(r guards.Request) []byte {
	event, err := json.Marshal(r)
	if err != nil {
		panic(err) // without a job there are only texts and numbers, which can always be written
	}
	return event
}

// maxKept is how much of an event is kept. Guards refuse longer ones, so the
// rest would only take memory.
const maxKept = 64 << 10

// newCall reads an event and its answer. Either of them can be the form of
// Lambda's Invoke API or the HTTP form of a Function URL.
func newCall(event, reply []byte, err error) call {
	var c call
	c.event, c.reply = event, reply
	var web events.LambdaFunctionURLRequest
	if json.Unmarshal(event, &web) == nil && web.RequestContext.HTTP.Method != "" {
		c.event = []byte(web.Body)
		if web.IsBase64Encoded {
			c.event, _ = base64.StdEncoding.DecodeString(web.Body)
		}
		var response events.LambdaFunctionURLResponse
		_ = json.Unmarshal(reply, &response)
		c.reply = []byte(response.Body)
	}
	if len(c.event) > maxKept {
		c.event = bytes.Clone(c.event[:maxKept])
	}
	_ = json.Unmarshal(c.event, &c.request) // a mistake in the event is the guard's to report
	c.request.Op, c.request.Count, c.request.Job = cmp.Or(c.request.Op, guards.Check), max(c.request.Count, 1), nil
	if err != nil {
		c.reply, c.err = nil, invokeapi.ErrorType(err)+": "+err.Error()
		return c
	}
	_ = json.Unmarshal(c.reply, &c.answer)
	var problem struct{ ErrorType, Detail string }
	if json.Unmarshal(c.reply, &problem) == nil && problem.ErrorType != "" {
		c.err = problem.ErrorType + ": " + problem.Detail
	}
	return c
}

// counts reports whether the answer came from a decision on a count. An activity
// without a limit and a bypassed caller have no count.
func (c *call) counts() bool { return c.answer.Limit > 0 }

const (
	tick  = 250 * time.Millisecond // how often a stream looks for windows that are due
	pause = 50 * time.Millisecond  // the shortest time between two parts of a stream

	maxStreams = 20 // each one makes a request to a guard slower, because it gets every answer
)

// serveEvents streams what changes, as server-sent events:
//
//	clock    a clockView, at the start and when the clock moves
//	windows  all windowViews, at the start and when one changes
//	answer   an answerView, whose id is its number
//
// The query after=N leaves out the answers up to N, which the page shows
// already. A browser that connects again sends the last id. If maxStreams are
// open, one more is refused.
func (c *Console) serveEvents(w http.ResponseWriter, r *http.Request) {
	if c.streams.Add(1) > maxStreams {
		c.streams.Add(-1)
		http.Error(w, fmt.Sprintf("%d consoles are open, which is the most. Close one, and load this page again.", maxStreams), http.StatusServiceUnavailable)
		return
	}
	defer c.streams.Add(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	s := stream{c: c, w: w, windows: -1, ahead: -1}
	s.answers, _ = strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	if id, err := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64); err == nil {
		s.answers = id
	}
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	flush := http.NewResponseController(w).Flush
	for {
		changed := s.send()
		if flush() != nil {
			return
		}
		time.Sleep(pause)
		select {
		case <-r.Context().Done():
			return
		case <-c.closed:
			return
		case <-changed:
		case <-ticker.C:
			c.read(r.Context(), false)
		}
	}
}

// A stream is one page's stream of events, and what it has sent.
type stream struct {
	c       *Console
	w       io.Writer
	answers int64         // the number of the last answer
	windows int64         // the version
	ahead   time.Duration // of the clock
}

// send sends what has changed since the last time. It returns a channel that is
// closed at the next change.
func (s *stream) send() (changed chan struct{}) {
	c := s.c
	c.mu.Lock()
	calls, first := c.history.after(s.answers)
	if s.answers > c.history.n { // the server has started again since
		calls, first = c.history.after(0)
	}
	s.answers = c.history.n
	var shown []windowView
	news := s.windows != c.windows.version
	if news {
		s.windows, shown = c.windows.version, c.views()
	}
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	changed = c.changed
	c.mu.Unlock()

	if ahead := c.Clock.Ahead(); ahead != s.ahead {
		s.ahead = ahead
		s.event("clock", 0, c.clock())
	}
	if news {
		s.event("windows", 0, shown)
	}
	for i, made := range calls { // after the windows, so that a page with the answer has its figures too
		n := first + int64(i)
		s.event("answer", n, c.answer(made, n))
	}
	return changed
}

// views returns the views of all windows. The caller holds c.mu.
func (c *Console) views() []windowView {
	all := make([]windowView, 0, len(c.windows.all))
	for _, w := range c.windows.all {
		all = append(all, c.window(w))
	}
	return all
}

// event writes one event. An id of 0 means that it has none.
func (s *stream) event(name string, id int64, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		return // views have only texts and numbers
	}
	if id > 0 {
		_, _ = fmt.Fprintf(s.w, "id: %d\n", id)
	}
	_, _ = fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", name, text)
}
