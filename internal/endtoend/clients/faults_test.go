package clients_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

// A fault answers the nth request, from 1, instead of the guards. serve is the
// guards.
type fault func(w http.ResponseWriter, r *http.Request, n int64, serve http.Handler)

// A proxy stands between a program and guards serve.
type proxy struct {
	url      string
	fault    atomic.Pointer[fault]
	requests atomic.Int64 // since the fault was set
}

func newProxy(t testing.TB, endpoint string) *proxy {
	t.Helper()
	to := testkit.Must(url.Parse(endpoint))(t)
	p, guards := new(proxy), httputil.NewSingleHostReverseProxy(to)
	server := testkit.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		n := p.requests.Add(1)
		if f := p.fault.Load(); f != nil {
			(*f)(w, r, n, guards)
			return
		}
		guards.ServeHTTP(w, r)
	})
	p.url = server.URL
	return p
}

func (p *proxy) set(f fault) {
	p.requests.Store(0)
	p.fault.Store(&f)
}

// endpoint returns the variable that makes an app ask the proxy.
func (p *proxy) endpoint() string { return "AWS_ENDPOINT_URL_LAMBDA=" + p.url }

// between returns the URL of a proxy with the fault in front of the guards.
func (f fault) between(t testing.TB, endpoint string) string {
	t.Helper()
	p := newProxy(t, endpoint)
	p.set(f)
	return p.url
}

// nowhere is an address without a server.
const nowhere = "http://127.0.0.1:1"

// unknownHost is the name of no host.
const unknownHost = "lambda.eu-wst-1.invalid"

// losesAnAnswer drops the first answer, so the client must time out and send its
// request again.
func losesAnAnswer(w http.ResponseWriter, r *http.Request, n int64, serve http.Handler) {
	if n > 1 {
		serve.ServeHTTP(w, r)
		return
	}
	serve.ServeHTTP(httptest.NewRecorder(), r)
	<-r.Context().Done()
}

// breaks closes each connection without an answer.
func breaks(http.ResponseWriter, *http.Request, int64, http.Handler) { panic(http.ErrAbortHandler) }

// knowsAnotherName turns the request into one for a function that does not
// exist.
func knowsAnotherName(w http.ResponseWriter, r *http.Request, _ int64, serve http.Handler) {
	r.URL.Path = "/2015-03-31/functions/pots-guard/invocations"
	serve.ServeHTTP(w, r)
}

// answering returns a fault that makes the function answer this.
func answering(body string) fault {
	return func(w http.ResponseWriter, _ *http.Request, _ int64, _ http.Handler) { _, _ = io.WriteString(w, body) }
}

// failing returns a fault that makes the function fail with an error.
func failing(kind, message string) fault {
	return func(w http.ResponseWriter, _ *http.Request, _ int64, _ http.Handler) {
		w.Header().Set("X-Amz-Function-Error", "Unhandled")
		_, _ = io.WriteString(w, `{"errorType":"`+kind+`","errorMessage":"`+message+`"}`)
	}
}

// refusing returns a fault that makes Lambda refuse without invoking the
// function.
func refusing(status int, code, message string) fault {
	return func(w http.ResponseWriter, _ *http.Request, _ int64, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Amzn-Errortype", code)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"Message":"`+message+`"}`)
	}
}

// denied is Lambda if the app may not invoke the function.
var denied = refusing(http.StatusForbidden, "AccessDeniedException", "User is not authorized to perform: lambda:InvokeFunction")
