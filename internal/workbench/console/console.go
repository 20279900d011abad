// Package console serves a page for developers, in front of the guards of
// guards serve. The page lists the limits, asks a guard, and shows each answer
// and each user's windows as they change. It can also move the guards' clock.
//
// A Console is an HTTP handler. It passes requests that are not for the page on
// to Lambda's Invoke API. Each guard's handler is wrapped with Console.Watch, so
// the page also shows what an app under development causes.
//
// For example, an app calls a guard while the page is open:
//
//	app      POST /2015-03-31/functions/posts-guard/invocations
//	guard    decides, and Watch records the event and the answer
//	page     gets an event "answer" from GET /console/events
//
// The page has no login. So it must listen on a loopback address, and it refuses
// a foreign Host or Origin: see Console.ServeHTTP.
package console

import (
	"encoding/json"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/workbench/invokeapi"
)

// A Console is the page and what it shows. Set the exported fields before its
// first use. It is safe for concurrent use.
type Console struct {
	API      http.Handler               // Lambda's Invoke API for the guards; it refuses other websites itself
	Guards   limits.Guards              // the guards that the page lists
	Address  string                     // host:port that the server listens on; the host must be loopback
	CountsIn string                     // where the guards count, such as "memory"
	Clock    *Clock                     // the guards' clock
	Fixed    string                     // why nobody may move the clock; empty: it can be moved
	ForTests bool                       // GET and POST /clock show and move the clock for a program on this machine
	Wait     func(time.Duration) string // returns a time to wait in words

	once   sync.Once
	mux    http.ServeMux
	closed chan struct{} // Close closes it
	end    func()        // closes closed once

	guards  map[string]lambda.Handler // by name, unwatched; Watch adds to it before the first request
	held    map[string]Held           // by the name of the guard, as guards
	reading sync.Mutex                // held while windows are read
	streams atomic.Int64              // open streams of events

	mu      sync.Mutex // guards what follows
	history history
	windows windows
	changed chan struct{} // closed at the next change; nil if nobody waits
}

// Loopback reports whether only programs on this machine can reach an address,
// such as 127.0.0.1:3001.
func Loopback(address string) bool {
	a, err := netip.ParseAddrPort(address)
	return err == nil && invokeapi.LoopbackHost(a.Addr().String())
}

// init prepares the console for its first use.
func (c *Console) init() {
	c.once.Do(func() {
		c.closed = make(chan struct{})
		c.end = sync.OnceFunc(func() { close(c.closed) })
		c.mux.HandleFunc("GET /{$}", c.own(c.servePage))
		c.mux.HandleFunc("GET /console/{asset}", c.own(serveAsset))
		c.mux.HandleFunc("GET /console/events", c.own(c.serveEvents))
		c.mux.HandleFunc("GET /console/picture.svg", c.own(c.servePicture))
		c.mux.HandleFunc("POST /console/ask", c.own(c.serveAsk))
		c.mux.HandleFunc("POST /console/clock", c.own(c.serveClock))
		if c.ForTests {
			c.mux.HandleFunc("GET /clock", c.test(c.showClock))
			c.mux.HandleFunc("POST /clock", c.test(c.serveClock))
		}
		c.mux.Handle("/", c.API)
	})
}

// ServeHTTP implements http.Handler. It refuses these requests:
//
//   - For the page, a Host that is not a loopback name or address with the
//     server's port. Another site could point its own name to this machine.
//   - For the page, an Origin other than the page itself. A POST must have an
//     Origin and must be JSON.
//
// The Invoke API refuses requests of other sites itself.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.init()
	c.mux.ServeHTTP(w, r)
}

// Close ends the streams of events, so that the server can stop.
func (c *Console) Close() {
	c.init()
	c.end()
}

// notify wakes the streams. The caller holds c.mu.
func (c *Console) notify() {
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// policyOfPage lets the page load only what this server serves. Nobody may frame
// the page, and no script may turn a text into HTML.
const policyOfPage = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// own serves a path of the page. It refuses what another site may have sent.
func (c *Console) own(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policyOfPage)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if why := c.refusal(r); why != "" {
			http.Error(w, why, http.StatusForbidden)
			return
		}
		if isJSON(w, r) {
			serve(w, r)
		}
	}
}

// isJSON reports whether r has no body or is JSON, and otherwise answers it. A page of
// another site can't send JSON without asking first.
func isJSON(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodPost {
		return true
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		http.Error(w, "The console accepts only JSON: send Content-Type: application/json.", http.StatusUnsupportedMediaType)
		return false
	}
	return true
}

// test serves a path for an app's tests, which are no page of a browser.
func (c *Console) test(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !c.isLocal(r.Host) || len(r.Header["Origin"]) > 0 || len(r.Header["Sec-Fetch-Site"]) > 0 {
			http.Error(w, "Only a program on this machine can use the clock, by http://"+c.Address+"/clock.", http.StatusForbidden)
			return
		}
		if isJSON(w, r) {
			serve(w, r)
		}
	}
}

// refusal returns why a request is not for the page, or an empty text.
func (c *Console) refusal(r *http.Request) string {
	if !c.isLocal(r.Host) {
		return fmt.Sprintf("The console answers only on http://%s. The Host of this request is %s.", c.Address, input.Show(r.Host))
	}
	origins := r.Header.Values("Origin")
	if len(origins) == 0 && r.Method != http.MethodPost {
		return "" // a browser sends no Origin if a person opens the page
	}
	if len(origins) != 1 || origins[0] != "http://"+r.Host {
		return fmt.Sprintf("The console answers only its own page. The Origin of this request is %s, want http://%s.", input.Show(r.Header.Get("Origin")), r.Host)
	}
	return ""
}

// isLocal reports whether a Host names this machine and the server's port.
func (c *Console) isLocal(host string) bool {
	name, port, err := net.SplitHostPort(host)
	if err != nil { // there is no port
		name, port = host, "80"
	}
	_, own, _ := net.SplitHostPort(c.Address)
	return port == own && invokeapi.LoopbackHost(name)
}

// A Clock is a clock that can be moved ahead. Create one with NewClock. It is
// safe for concurrent use.
type Clock struct {
	real  func() time.Time
	ahead atomic.Int64 // nanoseconds, not negative
}

// NewClock returns a clock that shows what now returns.
func NewClock(now func() time.Time) *Clock { return &Clock{real: now} }

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time { return c.real().Add(c.Ahead()) }

// Ahead returns how far the clock is ahead.
func (c *Clock) Ahead() time.Duration { return time.Duration(c.ahead.Load()) }

// farthest is how far ahead a clock can be. No window is longer.
const farthest = 366 * 24 * time.Hour

// Move moves the clock ahead by d. It returns false, and moves nothing, if d is
// negative or the clock would be too far ahead.
func (c *Clock) Move(d time.Duration) bool {
	for {
		before := c.ahead.Load()
		if d < 0 || d > farthest-time.Duration(before) {
			return false
		}
		if c.ahead.CompareAndSwap(before, before+int64(d)) {
			return true
		}
	}
}

// Reset returns the clock to the real time.
func (c *Clock) Reset() { c.ahead.Store(0) }

// serveClock moves the guards' clock. The body is {"move": MS} for further
// ahead, {"to": MS} for a time, or {"reset": true}. The response is a
// clockView.
func (c *Console) serveClock(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Move, To int64
		Reset    bool
	}
	if !decode(w, r, &body) {
		return
	}
	if c.Fixed != "" {
		http.Error(w, c.Fixed, http.StatusConflict)
		return
	}
	if body.To != 0 {
		body.Move = max(0, body.To-c.Clock.Now().UnixMilli())
	}
	switch {
	case body.Reset:
		c.Clock.Reset()
	case body.Move > farthest.Milliseconds() || !c.Clock.Move(time.Duration(body.Move)*time.Millisecond):
		http.Error(w, "The clock can only go ahead, and by at most 366 days. Reset it to return to the real time.", http.StatusBadRequest)
		return
	}
	c.read(r.Context(), true)
	c.mu.Lock()
	c.notify()
	c.mu.Unlock()
	c.showClock(w, r)
}

// showClock answers with the guards' clock, a clockView.
func (c *Console) showClock(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(c.clock()); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
