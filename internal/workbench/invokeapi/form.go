package invokeapi

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/cric-talk/guards/internal/input"
)

// serveForm answers like a guard's Function URL. It turns the request into the
// event that a Function URL makes, and the function's reply into an HTTP
// response.
func (s *Server) serveForm(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	f, ok := s.Functions[name]
	if !ok || !f.URL {
		s.fail(w, name, http.StatusNotFound, "ResourceNotFoundException", "Function not found: "+input.Show(name)+"; "+s.names(true))
		return
	}
	body, ok := s.readBody(w, r, name)
	if !ok {
		return
	}
	id := newRequestID()
	event := encode(formEvent(r, id, body))
	out, _, err := s.invoke(functionContext(r, id, name), name, f, event)
	var reply events.LambdaFunctionURLResponse
	if err != nil || json.Unmarshal(out, &reply) != nil || reply.StatusCode == 0 {
		http.Error(w, "Internal Server Error", http.StatusBadGateway) // what a Function URL sends for a function error
		return
	}
	for name, value := range reply.Headers {
		w.Header().Set(name, value)
	}
	w.WriteHeader(reply.StatusCode)
	_, _ = io.WriteString(w, reply.Body)
}

// formEvent returns the event that a Function URL makes of a request.
func formEvent(r *http.Request, id string, body []byte) events.LambdaFunctionURLRequest {
	e := events.LambdaFunctionURLRequest{
		Version: "2.0", RawPath: "/", Headers: map[string]string{},
		Body: base64.StdEncoding.EncodeToString(body), IsBase64Encoded: true, // keeps every byte
	}
	for name := range r.Header {
		e.Headers[strings.ToLower(name)] = r.Header.Get(name)
	}
	e.RequestContext.RequestID = id
	e.RequestContext.HTTP.Method = r.Method
	e.RequestContext.HTTP.Path = "/"
	if from, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		e.RequestContext.HTTP.SourceIP = from.Addr().String()
	}
	return e
}

// isForeign reports whether a browser sent a request for another website. That
// site could not read the answer, but the function would have run. Another site
// can also point its own name to this machine (DNS rebinding), so an Origin must
// be of this machine. A backend and an SDK send no Origin.
func (s *Server) isForeign(r *http.Request) bool {
	if s.foreign.Check(r) != nil {
		return true
	}
	origin := r.Header.Get("Origin")
	from, err := url.Parse(origin)
	return origin != "" && (err != nil || !LoopbackHost(from.Hostname()))
}

// refuse answers a request of another website.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request) {
	s.fail(w, r.URL.Path, http.StatusForbidden, "AccessDeniedException", fmt.Sprintf(
		"A browser sent this request for the site %s. The functions answer backends, and pages of this server.", input.Show(r.Header.Get("Origin"))))
}

// LoopbackHost reports whether a host's name or address is of this machine only.
func LoopbackHost(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}
