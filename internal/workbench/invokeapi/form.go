package invokeapi

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
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
