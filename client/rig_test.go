package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit"
)

// fake is an Invoker without a network.
type fake func(context.Context, *lambda.InvokeInput) (*lambda.InvokeOutput, error)

func (f fake) Invoke(ctx context.Context, in *lambda.InvokeInput, _ ...func(*lambda.Options)) (*lambda.InvokeOutput, error) {
	return f(ctx, in)
}

// A function answers one attempt after another, each with the next reply. The
// last reply is for all further attempts.
type function struct {
	replies []reply

	mu     sync.Mutex
	events []event
	others []map[string]string // the subjects of each event
	began  []time.Time
	lasted []time.Duration
}

type reply func(context.Context) (*lambda.InvokeOutput, error)

// An event is what the client sent.
type event struct {
	UserID, Activity, Op, RequestID string
	Count, At                       int64
}

func (f *function) Invoke(ctx context.Context, in *lambda.InvokeInput, _ ...func(*lambda.Options)) (*lambda.InvokeOutput, error) {
	var e event
	var others struct{ Subjects map[string]string }
	if err := errors.Join(json.Unmarshal(in.Payload, &e), json.Unmarshal(in.Payload, &others)); err != nil {
		return nil, err
	}
	began := time.Now()
	f.mu.Lock()
	next := f.replies[0]
	if len(f.replies) > 1 {
		f.replies = f.replies[1:]
	}
	f.events, f.others, f.began = append(f.events, e), append(f.others, others.Subjects), append(f.began, began)
	f.mu.Unlock()
	out, err := next(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lasted = append(f.lasted, time.Since(began))
	return out, err
}

// with returns a client with a list that asks a function with these replies.
func with(t *testing.T, o client.Options, replies ...reply) (*client.Guards, *function) {
	t.Helper()
	f := &function{replies: replies}
	o.Client, o.Activities = f, activities
	return open(t, o), f
}

// open returns a client with these options. Without Warn, it keeps warnings to itself.
func open(t *testing.T, o client.Options) *client.Guards {
	t.Helper()
	if o.Warn == nil {
		o.Warn = func(error) {}
	}
	return testkit.Must(client.New(t.Context(), o))(t)
}

// A local is a client of a guard in this process. Each request first calls before,
// which can wait, and can return an error instead of the answer. The guard decides even
// so if the error is errLate.
type local struct {
	*client.Guards

	mu       sync.Mutex
	mode     string
	before   func(op string) error
	requests []string // their ops
	raw      []byte   // the last answer
	warnings int
}

var (
	errNetwork = errors.New("unexpected EOF: connection broken")
	errLate    = errors.New("unexpected EOF: connection broken after the request")
)

func newLocal(t *testing.T, g limits.Guard) *local {
	t.Helper()
	limiter := &ratelimit.Limiter{Store: new(memstore.Store)}
	l := &local{before: fine}
	l.Guards = open(t, client.Options{
		Activities: activities,
		Warn: func(error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.warnings++
		},
		Client: fake(func(ctx context.Context, in *lambda.InvokeInput) (*lambda.InvokeOutput, error) {
			var e event
			if err := json.Unmarshal(in.Payload, &e); err != nil {
				return nil, err
			}
			l.mu.Lock()
			before := l.before
			h := &guard.Handler{Guard: g, BypassRoles: []string{"admin"}, Mode: l.mode, Limiter: limiter}
			l.requests = append(l.requests, e.Op)
			l.mu.Unlock()
			failure := before(e.Op)
			if failure != nil && failure != errLate { //nolint:errorlint // it is this very value
				return nil, failure
			}
			out, err := h.Invoke(ctx, in.Payload)
			if err != nil {
				return functionError("ValidationError", err.Error())(ctx)
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.raw = out
			return &lambda.InvokeOutput{Payload: out}, failure
		}),
	})
	return l
}

// does sets before.
func (l *local) does(before func(op string) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before = before
}

// switchTo sets the guard's mode.
func (l *local) switchTo(m string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mode = m
}

func cutOff(string) error { return errNetwork }
func fine(string) error   { return nil }

// ops returns the ops of the requests, and warned the number of warnings.
func (l *local) ops() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.requests)
}

func (l *local) warned() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.warnings
}

const (
	okBody      = `{"allowed":true,"reason":"ok","userId":"u1","activity":"create_post","op":"check","limit":10,"activityCount":1,"remaining":9,"waitTime":0,"resetAt":1700000040000,"windowKey":28333333,"granted":2,"at":1700000000000,"requestId":"r1"}`
	limitedBody = `{"allowed":false,"reason":"limited","userId":"u1","activity":"create_post","op":"check","limit":10,"activityCount":10,"remaining":0,"waitTime":2000,"resetAt":1700000040000,"windowKey":28333333,"granted":0,"message":"Rate limit exceeded"}`
)

func body(text string) reply {
	return func(context.Context) (*lambda.InvokeOutput, error) {
		return &lambda.InvokeOutput{Payload: []byte(text)}, nil
	}
}

func functionError(kind, message string) reply {
	return func(context.Context) (*lambda.InvokeOutput, error) {
		payload := fmt.Sprintf(`{"errorType":%q,"errorMessage":%q}`, kind, message)
		return &lambda.InvokeOutput{FunctionError: aws.String("Unhandled"), Payload: []byte(payload)}, nil
	}
}

func broken(err error) reply {
	return func(context.Context) (*lambda.InvokeOutput, error) { return nil, err }
}

// silent never answers.
func silent(ctx context.Context) (*lambda.InvokeOutput, error) {
	<-ctx.Done()
	return nil, &aws.RequestCanceledError{Err: ctx.Err()}
}

// slow answers after a time.
func slow(takes time.Duration) reply {
	return func(ctx context.Context) (*lambda.InvokeOutput, error) {
		select {
		case <-time.After(takes):
			return &lambda.InvokeOutput{Payload: []byte(okBody)}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// byLambda is an error of Lambda's own.
func byLambda(status int, code, message string) reply {
	return broken(&smithy.OperationError{ServiceID: "Lambda", OperationName: "Invoke", Err: &awshttp.ResponseError{
		ResponseError: &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}},
			Err:      &smithy.GenericAPIError{Code: code, Message: message},
		},
	}})
}

// u1 is the request of most tests.
var u1 = client.Request{UserID: "u1"}

// verbs returns the verbs of a client that take a request, except Reset.
func verbs(g *client.Guards) map[guards.Op]func(context.Context, string, client.Request) (client.Decision, error) {
	return map[guards.Op]func(context.Context, string, client.Request) (client.Decision, error){
		guards.Check: g.Check, guards.Status: g.Status, guards.Release: g.Release, guards.Renew: g.Renew,
	}
}

// kindOf returns the sentinel of an error, for messages.
func kindOf(err error) error {
	for _, kind := range []error{client.ErrConfiguration, client.ErrValidation, client.ErrAnswer, client.ErrOutage, client.ErrLimited} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	return nil
}
