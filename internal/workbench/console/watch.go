package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/cric-talk/guards/internal/guard"
)

// Watch returns h with a record of each event and its answer. Call it for each
// guard before the first request.
func (c *Console) Watch(function string, h lambda.Handler) lambda.Handler {
	if c.guards == nil {
		c.guards = make(map[string]lambda.Handler)
	}
	c.guards[function] = h
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
	var before answer
	if asked := newCall(payload, nil, nil); asked.Op == guard.Release { // its own answer does not tell whether it gave anything back
		before = w.status(ctx, asked)
	}
	reply, err := w.guard.Invoke(ctx, payload)
	made := newCall(payload, reply, err)
	made.function, made.at, made.from, made.before = w.function, at, fromApp, before.Used
	if ctx.Value(consoleKey{}) != nil {
		made.from = fromConsole
	}
	if _, refused := errors.AsType[*guard.RateLimitExceeded](err); refused { // ON_LIMIT=error: the refusal has no figures
		made.answer = w.status(ctx, made)
	}
	w.console.record(made)
	return reply, err
}

// status asks the guard for the figures of what a call asks for. The console
// does not record that. It returns the zero answer if the guard returns an
// error.
func (w watched) status(ctx context.Context, c call) answer {
	reply, err := w.guard.Invoke(ctx, c.status())
	return newCall(c.status(), reply, err).answer
}

// record adds a call to what the page shows.
func (c *Console) record(made call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.history.add(made)
	c.windows.add(made, c.Clock.Now().UnixMilli())
	c.notify()
}

// mostBytes is the size of the largest event that the form can send.
const mostBytes = 128 << 10

// serveAsk sends an event to a guard, in the same way as an app does. The body
// is {"function": NAME, "event": EVENT}. The response is that of Lambda's
// Invoke API.
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
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBytes))
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		http.Error(w, "The body is not the JSON that the console sends: "+err.Error(), http.StatusBadRequest)
	}
	return err == nil
}
