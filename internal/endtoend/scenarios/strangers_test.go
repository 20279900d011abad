package scenarios_test

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

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
	"SSH":            {speaks: testkit.SpeaksFirst("SSH-2.0-OpenSSH_9.6\r\n"), never: configuration, afterwards: outageError},
	"Redis":          {speaks: testkit.Replies("-ERR unknown command 'POST'\r\n"), never: configuration, afterwards: outageError},
	"TLS":            {speaks: testkit.Replies("\x15\x03\x01\x00\x02\x02\x46"), never: configuration, afterwards: outageError},
	"SSH, by https":  {speaks: testkit.SpeaksFirst("SSH-2.0-OpenSSH_9.6\r\n"), never: configuration, https: true},
	"HTTP, by https": {speaks: testkit.Replies("HTTP/1.1 400 Bad Request\r\n\r\n"), never: configuration, https: true},
	"closes":         {speaks: testkit.Replies(""), never: outageError, afterwards: outageError},
	"resets":         {speaks: testkit.Resets, never: outageError, afterwards: outageError},
	"silent":         {speaks: testkit.Silent, never: outageError, afterwards: outageError},
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

// httpReply returns what an HTTP server says, which closes each connection. headers are
// further lines.
func httpReply(status int, headers, body string) func(net.Conn) {
	return testkit.Replies(fmt.Sprintf("HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s",
		status, http.StatusText(status), headers, len(body), body))
}

// endless sends an answer that begins as one of a guard, and ends far behind maxSent, so
// that a client that reads on ends, too.
func endless(status int) func(net.Conn) {
	head := fmt.Sprintf("HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Type: application/json\r\n\r\n"+`{"allowed":true,"message":"`, status, http.StatusText(status))
	return func(c net.Conn) {
		testkit.Replies(head)(c)
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
		s, other := testkit.OpenPort(t), testkit.OpenPort(t)
		var redirected atomic.Bool
		other.Speak(func(c net.Conn) {
			redirected.Store(true)
			allows(c)
		})
		d := c.start(t, "http://"+s.Addr(), nil)
		try := func(name string, who stranger, want string) {
			t.Helper()
			for by, options := range optionsFor(s, who, name) {
				s.Speak(who.speaks)
				s.Sent.Store(0)
				d.do(t, map[string]any{"new": options})
				got, message := classOf(d.do(t, checkBy("user")))
				if n := s.Sent.Load(); got != want || n > maxSent || redirected.Swap(false) {
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
				who.speaks = httpReply(who.redirects, "Location: http://"+other.Addr()+"/\r\n", "")
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
		s := testkit.OpenPort(t)
		s.Speak(httpReply(403, "", ""))
		d := c.start(t, "https://lambda.example", map[string]string{"HTTPS_PROXY": "http://" + s.Addr()})
		for by, urls := range map[string]any{"Invoke": nil, "URL": map[string]string{"posts-guard": "https://id.example/"}} {
			options := maps.Clone(patient)
			options["urls"] = urls
			d.do(t, map[string]any{"new": options})
			if got, message := classOf(d.do(t, checkBy("user"))); got != configuration || s.Sent.Load() == 0 {
				t.Errorf("by %s: %q (%s) after %d bytes", by, got, message, s.Sent.Load())
			}
		}
	})
}

// optionsFor returns the options of clients that ask posts-guard at the address, by how they
// ask it. The address of Lambda itself is one of the environment, so by Invoke it begins
// with http://.
func optionsFor(s *testkit.Port, who stranger, name string) map[string]map[string]any {
	scheme, by := "http", map[string]map[string]any{}
	if who.https {
		scheme = "https"
	} else {
		by["Invoke"] = map[string]any{}
	}
	by["URL"] = map[string]any{"urls": map[string]string{"posts-guard": scheme + "://" + s.Addr() + "/posts-guard"}}
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
