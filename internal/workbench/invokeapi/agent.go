package invokeapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/aws/aws-lambda-go/events"

	"github.com/cric-talk/guards/internal/guard"
)

// Beside returns a guard as an agent has it. It answers as the guard's Function URL does, and
// Observe sees it.
func (s *Server) Beside(name string) Beside { return Beside{s, name} }

// Beside is a guard of a [Server].
type Beside struct {
	server *Server
	name   string
}

// Respond answers the body of a POST.
func (b Beside) Respond(ctx context.Context, body []byte) guard.Response {
	r := (&http.Request{Method: http.MethodPost, Header: http.Header{"Content-Type": {"application/json"}}}).WithContext(ctx)
	reply, err := b.server.form(r, b.name, b.server.Functions[b.name], newRequestID(), body)
	if err != nil {
		return guard.Problem(http.StatusInternalServerError, "the function failed: "+ErrorType(err))
	}
	answer := guard.Response{Status: reply.StatusCode, Body: []byte(reply.Body)}
	for name, value := range reply.Headers {
		answer.Header = append(answer.Header, name, value)
	}
	return answer
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
