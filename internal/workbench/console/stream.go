package console

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

const (
	tick  = 250 * time.Millisecond // how often a stream looks for windows that are due
	pause = 50 * time.Millisecond  // the shortest time between two parts of a stream

	mostStreams = 20 // each one makes a request to a guard slower, because it gets every answer
)

// serveEvents streams what changes, as server-sent events:
//
//	clock    a clockView, at the start and when the clock was moved
//	windows  all windowViews, at the start and when one changed
//	answer   an answerView; its id is its number
//
// The query after=N leaves out the answers up to N, which the page shows
// already. A browser that connects again sends the last id. If mostStreams are
// open, one more is refused.
func (c *Console) serveEvents(w http.ResponseWriter, r *http.Request) {
	if c.streams.Add(1) > mostStreams {
		c.streams.Add(-1)
		http.Error(w, fmt.Sprintf("%d consoles are open, which is the most. Close one, and load this page again.", mostStreams), http.StatusServiceUnavailable)
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
