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
	"strings"
	"sync"
	"testing"

	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// A door passes TCP connections on. While it is closed, its port refuses
// connections, as the port of a dead server does.
type door struct {
	address string // its own
	behind  string // where it leads to

	mu       sync.Mutex
	listener net.Listener
	through  map[net.Conn]bool
}

// newDoor returns an open door to endpoint. Its port is below the ones that
// connections get by themselves, so nothing else takes it while the door is
// closed.
func newDoor(t testing.TB, endpoint string) *door {
	t.Helper()
	d := &door{behind: strings.TrimPrefix(endpoint, "http://"), through: map[net.Conn]bool{}}
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

// open lets connections through.
func (d *door) open() error {
	l, err := net.Listen("tcp", d.address)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.listener = l
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // the door is closed
			}
			go d.pass(c)
		}
	}()
	return nil
}

// close ends all connections and refuses new ones.
func (d *door) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = d.listener.Close()
	for c := range d.through {
		_ = c.Close()
	}
	clear(d.through)
}

// pass copies bytes both ways until one side ends.
func (d *door) pass(c net.Conn) {
	server, err := net.Dial("tcp", d.behind)
	if err != nil {
		_ = c.Close()
		return
	}
	d.mu.Lock()
	d.through[c], d.through[server] = true, true
	d.mu.Unlock()
	end := func() {
		_, _ = c.Close(), server.Close()
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.through, c)
		delete(d.through, server)
	}
	go func() {
		defer end()
		_, _ = io.Copy(server, c)
	}()
	defer end()
	_, _ = io.Copy(c, server)
}

// fork returns an endpoint that sends the requests about one user to a proxy of
// their own.
func fork(t testing.TB, user string, ofUser, others *dynamotest.Proxy) string {
	t.Helper()
	to := func(p *dynamotest.Proxy) *url.URL {
		u, err := url.Parse(p.URL())
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	one, rest := to(ofUser), to(others)
	s := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		body, _ := io.ReadAll(r.In.Body) // an error means that the client gave up
		r.Out.Body = io.NopCloser(bytes.NewReader(body))
		r.SetURL(rest)
		if bytes.Contains(body, []byte(`"`+user+`"`)) {
			r.SetURL(one)
		}
	}, ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }})
	t.Cleanup(s.Close)
	return s.URL
}
