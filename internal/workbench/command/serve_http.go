package command

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// arrival is how long the header of a request may take to arrive, and then its
// body.
const arrival = 10 * time.Second

// newServer returns a server that ends a request which does not arrive. Its
// Shutdown does not wait for such a request, and closes unused connections at
// once. [http.Server] alone waits 5 s for a connection on which no request has
// arrived, and forever for a body.
func newServer(h http.Handler) *http.Server {
	var unused sync.Map
	stopping, stop := context.WithCancel(context.Background())
	s := &http.Server{Handler: arriving(stopping, h), ReadHeaderTimeout: arrival, ConnState: func(c net.Conn, state http.ConnState) {
		if state == http.StateNew {
			unused.Store(c, nil)
		} else {
			unused.Delete(c)
		}
	}}
	s.RegisterOnShutdown(func() {
		stop()
		unused.Range(func(c, _ any) bool {
			_ = c.(net.Conn).Close()
			return true
		})
	})
	return s
}

// arriving returns h with a limit for the time in which a body arrives. If
// stopping ends, that time is over. Functions don't notice that later reads of
// the connection fail too, because their contexts don't end with it.
func arriving(stopping context.Context, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != http.NoBody {
			control := http.NewResponseController(w)
			_ = control.SetReadDeadline(time.Now().Add(arrival))
			defer context.AfterFunc(stopping, func() { _ = control.SetReadDeadline(time.Now()) })()
		}
		h.ServeHTTP(w, r)
		_, _ = io.CopyN(io.Discard, r.Body, 256<<10) // as the server does, but stopping ends it
	})
}
