// Package invokeapi implements Lambda's Invoke API for functions in this
// process. An application under development can call the guards by setting its
// SDK's endpoint, and needs no other change. Each guard also answers POST /NAME
// and POST /NAME/ as its Function URL would.
package invokeapi

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	smithyrand "github.com/aws/smithy-go/rand"

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/input"
)

// A Function is a Lambda function that callers can invoke.
type Function struct {
	Handler lambda.Handler
	Timeout time.Duration // as in template.yaml; at least 1 s
	URL     bool          // whether it also answers HTTP events
}

// A Server invokes its functions on request. It is an http.Handler.
type Server struct {
	Functions map[string]Function // by name
	Observe   func(Invocation)    // called after each invocation, from several goroutines at once; may be nil

	once    sync.Once
	mux     http.ServeMux
	foreign http.CrossOriginProtection
	events  sync.WaitGroup // running invocations of type Event
}

// An Invocation has ended, or it is a request that ran no function.
type Invocation struct {
	Function string // as the caller named it
	Payload  []byte // the answer, if Err is nil
	Err      error
	Status   int // the HTTP status, if no function ran; otherwise 0
}

// maxPayload is Lambda's limit for a request body, in bytes.
const maxPayload = 6 << 20

// arn is the prefix of the functions' ARNs. The account number is made up.
const arn = "arn:aws:lambda:us-east-1:123456789012:function:"

// Wait waits until all invocations of type Event have ended.
func (s *Server) Wait() { s.events.Wait() }

// ServeHTTP implements http.Handler. It refuses requests of other websites.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.isForeign(r) {
		s.fail(w, r.URL.Path, http.StatusForbidden, "AccessDeniedException", fmt.Sprintf(
			"A browser sent this request for the site %s. The functions answer backends, and pages of this server.", input.Show(r.Header.Get("Origin"))))
		return
	}
	s.once.Do(func() {
		s.mux.HandleFunc("POST /2015-03-31/functions/{name}/invocations", s.serveInvoke)
		s.mux.HandleFunc("/{name}", s.serveForm)
		s.mux.HandleFunc("/{name}/{$}", s.serveForm) // clients that a tool makes of openapi.json end each address with a slash
		s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
			s.fail(w, r.URL.Path, http.StatusNotFound, "ResourceNotFoundException",
				"no such path, want POST /2015-03-31/functions/NAME/invocations or POST /NAME; "+s.names(false))
		})
	})
	s.mux.ServeHTTP(w, r)
}

// name matches the forms that callers can use to name a function: a name, a
// name:alias, a partial ARN and a full ARN. Its first group is the name.
var name = regexp.MustCompile(`^(?:arn:[\w-]+:lambda:[\w-]+:\d{12}:function:|\d{12}:function:|function:)?([\w-]+)(?::[\w$-]+)?$`)

func (s *Server) serveInvoke(w http.ResponseWriter, r *http.Request) {
	id := newRequestID()
	w.Header().Set("X-Amzn-RequestId", id)
	w.Header().Set("Content-Type", "application/json")
	asked := r.PathValue("name")
	match := name.FindStringSubmatch(asked)
	if match == nil {
		s.fail(w, asked, http.StatusBadRequest, "InvalidParameterValueException", "not a function's name, name:alias or ARN")
		return
	}
	f, ok := s.Functions[match[1]]
	if !ok {
		s.fail(w, asked, http.StatusNotFound, "ResourceNotFoundException", "Function not found: "+arn+match[1]+"; "+s.names(false))
		return
	}
	payload, ok := s.readPayload(w, r, match[1])
	if !ok {
		return
	}
	ctx := functionContext(r, id, match[1])
	switch kind := r.Header.Get("X-Amz-Invocation-Type"); kind {
	case "DryRun":
		w.WriteHeader(http.StatusNoContent)
	case "Event":
		s.events.Go(func() { _, _, _ = s.invoke(ctx, match[1], f, payload) })
		w.WriteHeader(http.StatusAccepted)
	case "", "RequestResponse":
		out, tail, err := s.invoke(ctx, match[1], f, payload)
		respond(w, r, out, tail, err)
	default:
		s.fail(w, asked, http.StatusBadRequest, "InvalidParameterValueException", fmt.Sprintf("X-Amz-Invocation-Type is %.40q, want RequestResponse, Event or DryRun", kind))
	}
}

// functionContext returns the context that a function gets. It stays valid when
// the caller closes the connection.
func functionContext(r *http.Request, id, name string) context.Context {
	return lambdacontext.NewContext(context.WithoutCancel(r.Context()), &lambdacontext.LambdaContext{
		AwsRequestID: id, InvokedFunctionArn: arn + name,
	})
}

// invoke runs a function as Lambda does, with a deadline. tail is the end of
// what the function logged.
func (s *Server) invoke(ctx context.Context, name string, f Function, payload []byte) (out, tail []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, f.Timeout)
	defer cancel()
	log := new(invocationLog)
	ctx = context.WithValue(ctx, logKey{}, log)
	began := time.Now()
	out, err = f.Handler.Invoke(ctx, payload)
	took := time.Since(began)
	if s.Observe != nil {
		s.Observe(Invocation{Function: name, Payload: out, Err: err})
	}
	return out, log.tail(ctx, took), err
}

// respond sends a function's answer or error to the caller.
func respond(w http.ResponseWriter, r *http.Request, out, tail []byte, err error) {
	w.Header().Set("X-Amz-Executed-Version", "$LATEST")
	if r.Header.Get("X-Amz-Log-Type") == "Tail" {
		w.Header().Set("X-Amz-Log-Result", base64.StdEncoding.EncodeToString(tail))
	}
	if err != nil {
		w.Header().Set("X-Amz-Function-Error", "Unhandled")
		out = encode(map[string]string{"errorMessage": err.Error(), "errorType": ErrorType(err)})
	}
	_, _ = w.Write(out)
}

// ErrorType returns the name of an error's type, as Lambda's Go runtime does.
func ErrorType(err error) string {
	t := reflect.TypeOf(err)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}

// readPayload reads the body, which must be JSON as on Lambda. An empty body
// means {}. If the body is wrong, readPayload answers the caller and returns
// false.
func (s *Server) readPayload(w http.ResponseWriter, r *http.Request, name string) ([]byte, bool) {
	payload, ok := s.readBody(w, r, name)
	if ok && len(payload) == 0 {
		payload = []byte("{}")
	}
	if ok && !json.Valid(payload) {
		s.fail(w, name, http.StatusBadRequest, "InvalidRequestContentException", "Could not parse request body into json")
		ok = false
	}
	return payload, ok
}

// readBody reads the body. If the body is too large, or does not arrive, readBody
// answers the caller and returns false.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, name string) ([]byte, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPayload))
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case tooLarge:
		s.fail(w, name, http.StatusRequestEntityTooLarge, "RequestTooLargeException",
			fmt.Sprintf("payload is too large for the RequestResponse invocation type (limit %d bytes)", maxPayload))
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.fail(w, name, http.StatusRequestTimeout, "RequestTimeoutException", "the request body did not arrive in time")
	case err != nil:
		s.fail(w, name, http.StatusBadRequest, "InvalidRequestContentException", "the request body ends too early")
	}
	return body, err == nil
}

// fail sends an error of the API itself. No function has run.
func (s *Server) fail(w http.ResponseWriter, asked string, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-ErrorType", kind)
	w.WriteHeader(status)
	_, _ = w.Write(encode(struct{ Type, Message string }{"User", message}))
	if s.Observe != nil {
		s.Observe(Invocation{Function: asked, Err: errors.New(message), Status: status})
	}
}

// names lists the functions, or only those that answer HTTP events.
func (s *Server) names(url bool) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s.Functions)) {
		if s.Functions[name].URL || !url {
			all = append(all, name)
		}
	}
	return "the functions are " + strings.Join(all, ", ")
}

// encode returns v as JSON. It is only for values that JSON can always
// represent, such as structs and maps of strings.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func newRequestID() string {
	id, _ := smithyrand.NewUUID(rand.Reader).GetUUID() // rand.Reader never fails
	return id
}

// errNoReply is the error of a function that answers a URL with something else than a response.
var errNoReply = errors.New("the function returned no response")

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
	reply, err := s.form(r, name, f, newRequestID(), body)
	if err != nil {
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

// LoopbackHost reports whether a host's name or address is of this machine only.
func LoopbackHost(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// Beside is a guard of a [Server] as an agent has it. It answers as the guard's Function URL does, and
// Observe sees it.
type Beside struct {
	Server *Server
	Name   string
}

// Respond answers the body of a POST.
func (b Beside) Respond(ctx context.Context, body []byte) guard.Response {
	r := (&http.Request{Method: http.MethodPost, Header: http.Header{"Content-Type": {"application/json"}}}).WithContext(ctx)
	reply, err := b.Server.form(r, b.Name, b.Server.Functions[b.Name], newRequestID(), body)
	if err != nil {
		return guard.Problem(http.StatusInternalServerError, "the function failed: "+ErrorType(err))
	}
	return guard.Response{Status: reply.StatusCode, Header: reply.Headers, Body: []byte(reply.Body)}
}

// form calls a function as its URL does.
func (s *Server) form(r *http.Request, name string, f Function, id string, body []byte) (reply events.LambdaFunctionURLResponse, err error) {
	out, _, err := s.invoke(functionContext(r, id, name), name, f, encode(formEvent(r, id, body)))
	if err != nil {
		return reply, err
	}
	if json.Unmarshal(out, &reply) != nil || reply.StatusCode == 0 {
		return reply, errNoReply
	}
	return reply, nil
}
