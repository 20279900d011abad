package outage_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
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
	d := &door{handler: passOn(func([]byte) *dynamotest.Proxy { return to })}
	err := errors.New("no attempt yet")
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

// fork returns an endpoint that sends the requests about one user to a proxy of
// their own.
func fork(t testing.TB, user string, ofUser, others *dynamotest.Proxy) string {
	t.Helper()
	s := httptest.NewServer(passOn(func(body []byte) *dynamotest.Proxy {
		if bytes.Contains(body, []byte(`"`+user+`"`)) {
			return ofUser
		}
		return others
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// passOn sends each request to a proxy that its body selects. If there is no answer, the
// connection ends.
func passOn(to func(body []byte) *dynamotest.Proxy) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			body, _ := io.ReadAll(r.In.Body) // an error means that the client gave up
			r.Out.Body = io.NopCloser(bytes.NewReader(body))
			target, err := url.Parse(to(body).URL())
			if err != nil {
				panic(err)
			}
			r.SetURL(target)
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
}
