package outage_test

import (
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"testing"

	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// A door passes requests on. While it is closed, its port refuses connections, as the
// port of a dead server does.
type door struct {
	address string
	server  *http.Server
	handler http.Handler
}

// newDoor returns an open door to a proxy. Its port is below the ones that connections
// get by themselves, so nothing else takes it while the door is closed.
func newDoor(t testing.TB, to *dynamotest.Proxy) *door {
	t.Helper()
	target, err := url.Parse(to.URL())
	if err != nil {
		t.Fatal(err)
	}
	d := &door{handler: &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // no answer
	}}
	err = errors.New("no attempt yet")
	for range 20 {
		if err != nil {
			d.address = "127.0.0.1:" + strconv.Itoa(10_000+rand.IntN(20_000))
			err = d.open()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.close)
	return d
}

func (d *door) url() string { return "http://" + d.address }

// open lets requests through.
func (d *door) open() error {
	listener, err := net.Listen("tcp", d.address)
	if err != nil {
		return err
	}
	d.server = &http.Server{Handler: d.handler}
	go func(s *http.Server) { _ = s.Serve(listener) }(d.server)
	return nil
}

// close ends all connections and refuses new ones.
func (d *door) close() { _ = d.server.Close() }
