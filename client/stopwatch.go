package client

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"sync"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

const (
	// tick is how often a stopwatch looks at the clock.
	tick = 50 * time.Millisecond
	// glance is enough for Go's runtime to look at every connection once.
	glance = 10 * time.Millisecond
)

var (
	errNoAnswer = errors.New("no answer in time")
	errPaused   = errors.New("the guard did not answer a moment ago")
)

// A stopwatch ends a context after the time that a guard has for an answer. It
// leaves out the time when the client could not have seen one:
//
//   - while the request waits for a connection of the app's own pool
//   - while the process did not run, for example because the machine is busy
//
// So it counts in ticks. A tick that comes late counts hardly more than its
// planned length, and it is never the last one: the answer may lie unread in the
// socket.
type stopwatch struct {
	call  *call
	later bool                    // whether the wait for a connection counts, unless another call is answered meanwhile
	room  func() time.Duration    // how much time the call has
	end   context.CancelCauseFunc // of the context

	mu      sync.Mutex
	timer   *time.Timer   // of the next tick
	since   time.Time     // when the tick began; zero while the stopwatch stands still
	planned time.Duration // of the tick
	left    time.Duration
	queued  bool          // whether the request waits for a connection
	kept    time.Duration // if queued: what was left when the wait began
	ended   bool
}

// watch returns a context that ends after the given time. Stop its stopwatch.
func (g *Guards) watch(ctx context.Context, c *call, most time.Duration) (context.Context, *stopwatch) {
	watched, end := context.WithCancelCause(ctx)
	w := &stopwatch{call: c, end: end, room: func() time.Duration { return g.room(ctx, c) }, left: most}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.start()
	return watched, w
}

// start begins a tick.
func (w *stopwatch) start() {
	w.since, w.planned = time.Now(), tick
	if w.left <= tick+glance {
		w.planned = max(w.left, 0)
	}
	if w.timer == nil {
		w.timer = time.AfterFunc(w.planned, w.look)
		return
	}
	w.timer.Reset(w.planned)
}

// count ends the tick, if there is one. It reports whether the tick came late.
func (w *stopwatch) count() (late bool) {
	if w.since.IsZero() {
		return false
	}
	took, most := time.Since(w.since), w.planned+glance
	w.spend(min(took, most))
	w.since = time.Time{}
	return took > most
}

// spend takes time from the attempt and from the call.
func (w *stopwatch) spend(took time.Duration) {
	w.left -= took
	w.call.left -= took
}

// look is called at the end of a tick. It lets every other goroutine have a turn
// first.
func (w *stopwatch) look() {
	runtime.Gosched()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || w.since.IsZero() {
		return
	}
	late := w.count()
	switch {
	case w.left > 0:
		w.start()
	case late:
		w.left = glance
		w.start()
	case !w.queued || w.call.breaker.silentSince(w.call.ticket):
		w.end(errNoAnswer)
	}
}

// stop ends the context.
func (w *stopwatch) stop() {
	w.end(nil)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count()
	w.ended = true
	w.timer.Stop()
	w.call.breaker.dequeue(w)
}

// queue begins the wait for a connection. The wait of a first attempt does not
// count. A later attempt of a large burst waits behind all the first ones. If the
// guard is gone, that could take minutes. So its wait, and a probe's, counts until
// the guard answers somebody.
func (w *stopwatch) queue() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || w.queued {
		return
	}
	w.count()
	w.queued, w.kept = true, w.left
	w.call.breaker.enqueue(w)
	if w.later {
		w.start()
	}
}

// connect ends the wait. The request has a connection, or begins to make one.
func (w *stopwatch) connect() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || !w.queued {
		return
	}
	w.queued = false
	w.count()
	answers := w.call.breaker.dequeue(w)
	if answers != w.call.ticket.answers {
		w.spend(w.left - w.kept)
	}
	if !w.later { // the call begins now
		w.call.ticket.answers = answers
	}
	w.left = min(w.left, w.room())
	w.start()
}

// trace returns a context that tells w when its request waits for a connection.
func (w *stopwatch) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:      func(string) { w.queue() },
		DNSStart:     func(httptrace.DNSStartInfo) { w.connect() },
		ConnectStart: func(string, string) { w.connect() },
		GotConn:      func(httptrace.GotConnInfo) { w.connect() },
	})
}

// hasQueue reports whether requests of an HTTP client can wait for a connection.
// The SDK's default client makes them wait only if all its 2,048 connections are
// busy.
func hasQueue(client lambda.HTTPClient) bool {
	if own, ok := client.(*awshttp.BuildableClient); ok {
		return own.GetTransport().MaxConnsPerHost > 0
	}
	own, ok := client.(*http.Client)
	if !ok {
		return true
	}
	transport, ok := cmp.Or(own.Transport, http.DefaultTransport).(*http.Transport)
	return !ok || transport.MaxConnsPerHost > 0
}
