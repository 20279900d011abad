package clients_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
)

// A fault returns the endpoint at which an example asks in place of the guards'
// own. Nil is no fault.
type fault func(t testing.TB, endpoint string) (instead string)

func (f fault) between(t testing.TB, endpoint string) string {
	t.Helper()
	if f == nil {
		return endpoint
	}
	return f(t, endpoint)
}

// isAbsent is a server that does not exist.
func isAbsent(testing.TB, string) string { return "http://127.0.0.1:1" }

// isUnknown is a host whose name does not exist.
func isUnknown(t testing.TB, _ string) string {
	t.Helper()
	const host = "lambda.eu-wst-1.invalid"
	_, err := net.DefaultResolver.LookupHost(t.Context(), host)
	if absent, ok := errors.AsType[*net.DNSError](err); !ok || !absent.IsNotFound {
		t.Skipf("the resolver does not know that %s does not exist: %v", host, err)
	}
	return "http://" + host
}

// losesAnAnswer forwards requests. It drops the first answer, so the client must
// time out and send its request again.
func losesAnAnswer(t testing.TB, endpoint string) string {
	t.Helper()
	through := forward(t, endpoint)
	var requests atomic.Int64
	t.Cleanup(func() {
		if got := requests.Load(); got < 2 {
			t.Errorf("the client sent %d requests, want at least 2", got)
		}
	})
	return answering(t, func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) > 1 {
			through.ServeHTTP(w, r)
			return
		}
		through.ServeHTTP(httptest.NewRecorder(), r)
		<-r.Context().Done()
	})
}

// breaks closes each connection without an answer.
func breaks(t testing.TB, _ string) string {
	t.Helper()
	return answering(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
}

func throttles(t testing.TB, _ string) string {
	t.Helper()
	return refusing(t, http.StatusTooManyRequests, "TooManyRequestsException", "Rate exceeded")
}

func fails(t testing.TB, _ string) string {
	t.Helper()
	return refusing(t, http.StatusInternalServerError, "ServiceException", "An internal error occurred")
}

func denies(t testing.TB, _ string) string {
	t.Helper()
	return refusing(t, http.StatusForbidden, "AccessDeniedException", "User is not authorized to perform: lambda:InvokeFunction")
}

// hasNoKey is Lambda if it can't run the guard. Its status is that of an outage.
func hasNoKey(t testing.TB, _ string) string {
	t.Helper()
	return refusing(t, http.StatusBadGateway, "KMSDisabledException", "Lambda can't decrypt the variables: the key is disabled")
}

// failing returns a fault in which the function fails with an error.
func failing(kind, message string) fault {
	return func(t testing.TB, _ string) string {
		t.Helper()
		return answering(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Amz-Function-Error", "Unhandled")
			_, _ = io.WriteString(w, `{"errorType":"`+kind+`","errorMessage":"`+message+`"}`)
		})
	}
}

// knowsAnotherName forwards requests as if the app asked a function that does
// not exist.
func knowsAnotherName(t testing.TB, endpoint string) string {
	t.Helper()
	through := forward(t, endpoint)
	return answering(t, func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = "/2015-03-31/functions/pots-guard/invocations"
		through.ServeHTTP(w, r)
	})
}

// isNoGuard answers as a function that is no guard.
func isNoGuard(t testing.TB, _ string) string {
	t.Helper()
	return answering(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"hello":"world"}`) })
}

// refusing answers each request as Lambda does that invokes nothing.
func refusing(t testing.TB, status int, code, message string) string {
	t.Helper()
	return answering(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Amzn-Errortype", code)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"Message":"`+message+`"}`)
	})
}

func answering(t testing.TB, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func forward(t testing.TB, endpoint string) http.Handler {
	t.Helper()
	to, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	return httputil.NewSingleHostReverseProxy(to)
}
