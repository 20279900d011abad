package scenarios_test

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
)

// A stranger is a server that is no Lambda, at the address that the app asks. The field
// never is the class of a check's error if this process has never had an HTTP answer
// from there. The field afterwards is the class if it has had one. An OutageError lets
// the user pass.
type stranger struct {
	speaks            func(c net.Conn)
	never, afterwards string
	https             bool // the address begins with https://; then only never is tried
	redirects         int  // the status of a redirect to another address, instead of speaks
}

const (
	outageError   = "OutageError"
	configuration = "ConfigurationError"
	answerError   = "AnswerError"
)

// All clients agree on these, by Invoke and by Function URL.
var strangers = map[string]stranger{
	"SSH":            {speaks: speaksFirst("SSH-2.0-OpenSSH_9.6\r\n"), never: configuration, afterwards: outageError},
	"Redis":          {speaks: replies("-ERR unknown command 'POST'\r\n"), never: configuration, afterwards: outageError},
	"TLS":            {speaks: replies("\x15\x03\x01\x00\x02\x02\x46"), never: configuration, afterwards: outageError},
	"SSH, by https":  {speaks: speaksFirst("SSH-2.0-OpenSSH_9.6\r\n"), never: configuration, https: true},
	"HTTP, by https": {speaks: replies("HTTP/1.1 400 Bad Request\r\n\r\n"), never: configuration, https: true},
	"closes":         {speaks: replies(""), never: outageError, afterwards: outageError},
	"resets":         {speaks: resets, never: outageError, afterwards: outageError},
	"silent":         {speaks: func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, never: outageError, afterwards: outageError},
}

// httpStrangers speak HTTP.
var httpStrangers = map[string]stranger{
	"a website":       {speaks: httpReply(200, "", "<html></html>"), afterwards: answerError},
	"301":             {redirects: 301, afterwards: configuration},
	"302":             {redirects: 302, afterwards: configuration},
	"303":             {redirects: 303, afterwards: configuration},
	"307":             {redirects: 307, afterwards: configuration},
	"308":             {redirects: 308, afterwards: configuration},
	"200 without end": {speaks: endless(200), afterwards: answerError},
	"403 without end": {speaks: endless(403), afterwards: configuration},
	"503 without end": {speaks: endless(503), afterwards: outageError},
}

// A street is one address, whose server can change.
type street struct {
	net.Listener
	speaks atomic.Value // func(net.Conn)
	sent   atomic.Int64 // bytes of answers
}

func openStreet(t *testing.T) *street {
	t.Helper()
	l := testkit.Must((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	s := &street{Listener: l}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				_ = c.SetDeadline(time.Now().Add(20 * time.Second))
				s.speaks.Load().(func(net.Conn))(&counted{c, &s.sent})
			}()
		}
	}()
	return s
}

// counted counts what is written to a connection.
type counted struct {
	net.Conn
	sent *atomic.Int64
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.sent.Add(int64(n))
	return n, err
}

// speaksFirst writes a text before it reads, and then nothing.
func speaksFirst(text string) func(net.Conn) {
	return func(c net.Conn) {
		_, _ = io.WriteString(c, text)
		_, _ = io.Copy(io.Discard, c)
	}
}

// replies reads a request, or the beginning of a handshake, and writes a text.
func replies(text string) func(net.Conn) {
	return func(c net.Conn) {
		r := bufio.NewReader(c)
		if first, err := r.Peek(1); err == nil && 'A' <= first[0] && first[0] <= 'Z' { // otherwise it is a handshake
			if request, err := http.ReadRequest(r); err == nil {
				_, _ = io.Copy(io.Discard, request.Body)
			}
		}
		_, _ = io.WriteString(c, text)
	}
}

func resets(c net.Conn) {
	replies("")(c)
	if tcp, ok := c.(*counted).Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}

// httpReply returns what an HTTP server says, which closes each connection. headers are
// further lines.
func httpReply(status int, headers, body string) func(net.Conn) {
	return replies(fmt.Sprintf("HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s",
		status, http.StatusText(status), headers, len(body), body))
}

// endless sends an answer that begins as one of a guard, and ends far behind maxSent, so
// that a client that reads on ends, too.
func endless(status int) func(net.Conn) {
	head := fmt.Sprintf("HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Type: application/json\r\n\r\n"+`{"allowed":true,"message":"`, status, http.StatusText(status))
	return func(c net.Conn) {
		replies(head)(c)
		more := []byte(strings.Repeat("x", 64<<10))
		for range 2 * maxSent / len(more) {
			if _, err := c.Write(more); err != nil {
				return
			}
		}
	}
}

// allows is what a guard answers.
var allows = httpReply(200, "", `{"allowed":true,"reason":"ok","userId":"u1","activity":"create_post","op":"check","granted":1}`)

// maxSent is what a client and the buffers of both sockets take of an endless answer.
const maxSent = 32 << 20

func TestStrangers(t *testing.T) {
	testkit.Clients.Need(t)
	t.Parallel()
	everyClient(t, func(t *testing.T, c client) {
		s, other := openStreet(t), openStreet(t)
		var redirected atomic.Bool
		other.speaks.Store(func(c net.Conn) {
			redirected.Store(true)
			allows(c)
		})
		d := c.start(t, "http://"+s.Addr().String(), nil)
		try := func(name string, who stranger, want string) {
			t.Helper()
			for by, options := range s.options(who, name) {
				s.speaks.Store(who.speaks)
				s.sent.Store(0)
				d.do(t, map[string]any{"new": options})
				got, message := classOf(d.do(t, checkBy("user")))
				if n := s.sent.Load(); got != want || n > maxSent || redirected.Swap(false) {
					t.Errorf("%s by %s: %q (%s) after %d bytes, want %q and no redirect", name, by, got, message, n, want)
				}
			}
		}
		for name, who := range strangers {
			try(name+", at first", who, who.never)
		}
		try("a guard", stranger{speaks: allows}, "")
		for name, who := range strangers {
			if !who.https {
				try(name+", afterwards", who, who.afterwards)
			}
		}
		for name, who := range httpStrangers {
			if who.redirects != 0 {
				who.speaks = httpReply(who.redirects, "Location: http://"+other.Addr().String()+"/\r\n", "")
			}
			try(name, who, who.afterwards)
		}
	})
}

// A proxy that refuses to connect is a mistake until something has answered through it.
// TypeScript's client has no proxy, unless the app makes one.
func TestAProxyThatRefuses(t *testing.T) {
	testkit.Clients.Need(t)
	everyClient(t, func(t *testing.T, c client) {
		if c.name == "TypeScript" {
			return
		}
		s := openStreet(t)
		s.speaks.Store(httpReply(403, "", ""))
		d := c.start(t, "https://lambda.example", map[string]string{"HTTPS_PROXY": "http://" + s.Addr().String()})
		for by, urls := range map[string]any{"Invoke": nil, "URL": map[string]string{"posts-guard": "https://id.example/"}} {
			options := maps.Clone(patient)
			options["urls"] = urls
			d.do(t, map[string]any{"new": options})
			if got, message := classOf(d.do(t, checkBy("user"))); got != configuration || s.sent.Load() == 0 {
				t.Errorf("by %s: %q (%s) after %d bytes", by, got, message, s.sent.Load())
			}
		}
	})
}

// options returns the options of clients that ask posts-guard at the address, by how they
// ask it. The address of Lambda itself is one of the environment, so by Invoke it begins
// with http://.
func (s *street) options(who stranger, name string) map[string]map[string]any {
	scheme, by := "http", map[string]map[string]any{}
	if who.https {
		scheme = "https"
	} else {
		by["Invoke"] = map[string]any{}
	}
	by["URL"] = map[string]any{"urls": map[string]string{"posts-guard": scheme + "://" + s.Addr().String() + "/posts-guard"}}
	for _, options := range by {
		maps.Copy(options, patient)
		if strings.HasPrefix(name, "silent") {
			maps.Copy(options, hasty)
		}
	}
	return by
}

// classOf returns the class of a check's error, or OutageError if the user passes without
// an answer.
func classOf(r result) (class, message string) {
	switch outage, _ := r.Answer["outage"].(string); {
	case r.Error != nil:
		return r.Error.Class, r.Error.Message
	case outage != "":
		return outageError, outage
	}
	return "", ""
}
