package client_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/internal/testkit"
)

func TestErrors(t *testing.T) {
	lost := func(err error) reply {
		return broken(&smithyhttp.RequestSendError{Err: &url.Error{Op: "Post", URL: "https://lambda/secret", Err: err}})
	}
	const notAGuard = "Check the function's name."
	for name, tt := range map[string]struct {
		reply   reply
		kind    error
		message string // its beginning
		asked   int
	}{
		"access denied":      {byLambda(403, "AccessDeniedException", "User is not authorized"), client.ErrConfiguration, "The app may not invoke dev-posts-guard in the client's region. Allow its role the action lambda:InvokeFunction on this function.", 1},
		"no function":        {byLambda(404, "ResourceNotFoundException", "Function not found"), client.ErrConfiguration, "There is no function dev-posts-guard in the client's region. Deploy it, or check the region and the name.", 1},
		"expired":            {byLambda(403, "ExpiredTokenException", "m"), client.ErrConfiguration, "AWS refused the credentials (ExpiredTokenException). Renew them, and check this machine's clock.", 1},
		"another 4xx":        {byLambda(400, "InvalidRequestContentException", "about user-1"), client.ErrConfiguration, "dev-posts-guard could not be invoked: InvalidRequestContentException: about ***", 1},
		"no key":             {byLambda(502, "KMSDisabledException", "The key of user-1 is disabled."), client.ErrConfiguration, "Lambda can't run dev-posts-guard: KMSDisabledException: The key of *** is disabled. Correct the function: this does not pass by itself.", 1},
		"no address":         {byLambda(502, "ENILimitReachedException", "m"), client.ErrOutage, "dev-posts-guard did not answer: ENILimitReachedException: m", 3},
		"certificate":        {lost(x509.UnknownAuthorityError{}), client.ErrConfiguration, "dev-posts-guard could not be invoked: x509: certificate signed by unknown authority", 1},
		"not a URL":          {lost(errors.New("unsupported protocol scheme")), client.ErrConfiguration, "dev-posts-guard could not be invoked: unsupported", 1},
		"no such host":       {lost(&net.OpError{Op: "dial", Err: noSuchHost("lambda.eu-wst-1.amazonaws.com")}), client.ErrConfiguration, "There is no host lambda.eu-wst-1.amazonaws.com. Check the client's region.", 1},
		"no such proxy":      {lost(&net.OpError{Op: "proxyconnect", Err: &net.OpError{Op: "dial", Err: noSuchHost("proxy")}}), client.ErrConfiguration, "There is no host proxy. Check the proxy.", 1},
		"validation":         {functionError("ValidationError", "count is 0"), client.ErrValidation, "count is 0", 1},
		"crash":              {functionError("Runtime.ExitError", "RequestId: 1"), client.ErrAnswer, "dev-posts-guard failed: Runtime.ExitError. Its log says why.", 1},
		"a crash, no type":   {functionFails([]byte("text")), client.ErrAnswer, "dev-posts-guard failed: Unhandled. Its log says why.", 1},
		"not JSON":           {body("<html>"), client.ErrAnswer, "dev-posts-guard answered something that no guard answers: <html>. " + notAGuard, 1},
		"another answer":     {body(`{"Allowed":true,"for":"user-1"}`), client.ErrAnswer, `dev-posts-guard answered something that no guard answers: {\"Allowed\":true,\"for\":\"***\"}. ` + notAGuard, 1},
		"allowed is a text":  {body(`{"allowed":"true"}`), client.ErrAnswer, "dev-posts-guard answered", 1},
		"wait is a text":     {body(`{"allowed":true,"waitTime":"1"}`), client.ErrAnswer, "dev-posts-guard answered", 1},
		"a long answer":      {body(strings.Repeat("ä", 200)), client.ErrAnswer, "dev-posts-guard answered something that no guard answers: " + strings.Repeat("ä", 100) + ". " + notAGuard, 1},
		"unavailable":        {functionError("Unavailable", "the table did not answer in time"), client.ErrOutage, "dev-posts-guard did not answer: the table did not answer in time", 1},
		"function timeout":   {functionError("Sandbox.Timedout", "Task timed out"), client.ErrOutage, "dev-posts-guard did not answer: the function timed out", 1},
		"throttled":          {byLambda(429, "TooManyRequestsException", "Rate Exceeded."), client.ErrOutage, "dev-posts-guard did not answer: TooManyRequestsException: Rate Exceeded.", 3},
		"5xx":                {byLambda(503, "ServiceUnavailableException", ""), client.ErrOutage, "dev-posts-guard did not answer: ServiceUnavailableException", 3},
		"refused connection": {lost(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), client.ErrOutage, "dev-posts-guard did not answer: dial: connection refused", 3},
		"lost connection":    {lost(io.EOF), client.ErrOutage, "dev-posts-guard did not answer: EOF", 3},
		"a stream is reset":  {lost(errors.New("stream error: stream ID 1; INTERNAL_ERROR")), client.ErrOutage, "dev-posts-guard did not answer: stream error", 3},
		"a firewall":         {lost(&net.OpError{Op: "dial", Err: syscall.EACCES}), client.ErrConfiguration, "dev-posts-guard could not be invoked: dial: permission denied", 1},
		"a strange error":    {lost(&net.OpError{Op: "dial", Err: errors.New("strange")}), client.ErrConfiguration, "dev-posts-guard could not be invoked: dial: strange", 1},
		"no name server":     {lost(&net.OpError{Op: "dial", Err: &net.DNSError{Err: "server misbehaving", Name: "lambda", IsTemporary: true}}), client.ErrOutage, "dev-posts-guard did not answer: dial: lookup lambda: server misbehaving", 3},
		"hangs":              {silent, client.ErrOutage, "dev-posts-guard did not answer: no answer in time", 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, f := with(t, client.Options{Prefix: "dev-"}, tt.reply)
				_, err := g.Status(t.Context(), "create_post", client.Request{UserID: "user-1"})
				failure, ok := errors.AsType[*client.Error](err)
				if !ok || !errors.Is(err, tt.kind) || failure.Guard != "dev-posts-guard" || !strings.HasPrefix(err.Error(), tt.message) {
					t.Errorf("%v: %v, want %v: %s", kindOf(err), err, tt.kind, tt.message)
				}
				if len(f.events) != tt.asked {
					t.Errorf("asked %d times, want %d", len(f.events), tt.asked)
				}
				// Only an outage lets a check through. A mistake begins no pause, so it stays a mistake.
				d, err := g.Check(t.Context(), "create_post", client.Request{UserID: "user-1"})
				if outage := errors.Is(tt.kind, client.ErrOutage); d.Allowed != outage || (err == nil) != outage || errors.Is(d.Outage, client.ErrOutage) != outage {
					t.Errorf("a check is answered %+v, %v", d, err)
				}
			})
		})
	}
}

func TestAnErrorHasTheCauseOfTheSDK(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, cause := range []error{io.EOF, x509.UnknownAuthorityError{}} { // an outage and a mistake
			g, _ := with(t, client.Options{}, broken(fmt.Errorf("by the SDK: %w", cause)))
			_, err := g.Status(t.Context(), "create_post", u1)
			if failure, ok := errors.AsType[*client.Error](err); !ok || !errors.Is(err, cause) || !errors.Is(failure.Cause, cause) {
				t.Errorf("%v has the cause %v, want %v", err, failure.Cause, cause)
			}
		}
		g, _ := with(t, client.Options{}, byLambda(403, "AccessDeniedException", "m"))
		_, err := g.Status(t.Context(), "create_post", u1)
		if cause, ok := errors.AsType[smithy.APIError](err); !ok || cause.ErrorCode() != "AccessDeniedException" {
			t.Errorf("%v has the cause %v", err, cause)
		}
	})
}

func noSuchHost(name string) error {
	return &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

func TestOptions(t *testing.T) {
	for want, o := range map[string]client.Options{
		"":                           {},
		"OnOutage is \"allways\"":    {OnOutage: "allways"},
		"MaxTries is -1":             {MaxTries: -1},
		"DecisionTimeout is -1s":     {DecisionTimeout: -1e9},
		"Timeout is 1s, want at lea": {Timeout: 1e9},
		"URLs has \"posts\"":         {URLs: map[string]string{"posts-guard": "posts"}},
		"URLs has \"post-guard\", which is the guard of no known activity; do you mean posts-guard?": {URLs: map[string]string{"post-guard": "https://x"}},
		"URLs has \"chat-gurd\", which is the guard of no known activity; do you mean chat-guard?":   {URLs: map[string]string{"chat-gurd": "https://x"}},
		"URLs has \"no-such-guard\", which is the guard of no known activity":                        {URLs: map[string]string{"no-such-guard": "https://x"}},
		"URLs need a Client of type": {URLs: map[string]string{"posts-guard": "https://x.lambda-url.eu-west-1.on.aws/"}},
	} {
		o.Client, o.Activities = fake(nil), activities
		if _, err := client.New(t.Context(), o); (err != nil) != (want != "") || err != nil && (!errors.Is(err, client.ErrConfiguration) || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		} else if err != nil && strings.Contains(err.Error(), "do you mean") != strings.Contains(want, "do you mean") {
			t.Errorf("%v, want a suggestion only for a name that is near", err)
		}
	}
}

func TestTheReadmeListsEachOption(t *testing.T) {
	readme := testkit.Must(os.ReadFile("README.md"))(t)
	for field := range reflect.TypeFor[client.Options]().Fields() {
		if !strings.Contains(string(readme), "\n| `"+field.Name+"` | ") {
			t.Errorf("the table of the options lacks %s", field.Name)
		}
	}
}

// An argument that the guard would refuse lets nobody pass while the guard is away.
func TestAWrongArgumentIsNotSent(t *testing.T) {
	for name, tt := range map[string]struct {
		op       guards.Op
		activity string
		r        client.Request
	}{
		"no user":                         {guards.Check, "create_post", client.Request{}},
		"a negative count":                {guards.Check, "create_post", client.Request{UserID: "user-1", Count: -1}},
		"no JSON":                         {guards.Check, "create_post", client.Request{UserID: "user-1", Job: func() {}}},
		"no decision in an outage":        {guards.Check, "create_post", client.Request{UserID: "user-1", OnOutage: "user-1"}},
		"an empty subject":                {guards.Check, "write", client.Request{UserID: "user-1", Subjects: ids{"room": ""}}},
		"an empty optional subject":       {guards.Check, "write", client.Request{UserID: "user-1", Subjects: ids{"room": "r1", "tenant": ""}}},
		"an empty subject without a list": {guards.Check, "forum-guard/other", client.Request{UserID: "user-1", Subjects: ids{"tenant": ""}}},
		"a release without an id":         {guards.Release, "create_post", client.Request{UserID: "user-1", At: 1}},
		"a renewal without a time":        {guards.Renew, "create_post", client.Request{UserID: "user-1", RequestID: "r1"}},
	} {
		g, f := with(t, client.Options{}, broken(errNetwork))
		_, err := verbs(g)[tt.op](t.Context(), tt.activity, tt.r)
		if !errors.Is(err, client.ErrValidation) || strings.Contains(err.Error(), "user-1") || len(f.events) != 0 {
			t.Errorf("%s: %v after %d requests", name, err, len(f.events))
		}
	}
}

// No message contains an id, although each text from outside has all of them, in each
// form that JSON can give them.
func TestNothingNamesTheUser(t *testing.T) {
	const user, id, room = `user<"1"\&2>`, `request"1"`, `canary-room-4711`
	echo := user + " as " + id + " in " + room
	var plain strings.Builder // without the escapes of HTML
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	testkit.OK(t, encoder.Encode(echo))
	html := testkit.Must(json.Marshal(echo))(t)
	long := strings.Repeat("x", 10_000) + echo
	crash := func(kind string) reply {
		payload := testkit.Must(json.Marshal(map[string]string{"errorType": kind, "errorMessage": echo}))(t)
		return functionFails(payload)
	}
	replies := map[string]reply{
		"silence":               silent,
		"an error of Lambda":    byLambda(503, echo, echo),
		"a mistake":             byLambda(400, "X", echo),
		"a mistake's code":      byLambda(400, echo, "X"),
		"a connection":          broken(errors.New(echo)),
		"a long text":           broken(errors.New(long)),
		"unavailable":           crash("Unavailable"),
		"a kind of crash":       crash(echo),
		"a long kind of crash":  crash(long),
		"no answer":             body(echo),
		"the end of an excerpt": body(strings.Repeat("x", 95) + " " + echo),
		"no answer, JSON":       body(`{"for":` + plain.String() + `}`),
		"no answer, HTML":       body(`{"for":` + string(html) + `}`),
		"unavailable, in JSON":  functionError("Unavailable", strings.TrimSpace(plain.String())),
		"unavailable, for HTML": functionError("Unavailable", string(html)),
	}
	for name, reply := range replies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, _ := with(t, client.Options{MaxTries: 1}, reply)
				_, err := g.Status(t.Context(), "write", client.Request{UserID: user, RequestID: id, Subjects: ids{"room": room}})
				checkNamesNobody(t, err, "user", "request", "4711")
			})
		})
	}
	for status, kind := range map[int]string{http.StatusServiceUnavailable: "Unavailable", http.StatusTeapot: "X"} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			problem := testkit.Must(json.Marshal(map[string]string{"errorType": kind, "detail": echo, "message": echo}))(t)
			g, _ := byURL(t, anyKeys, respond(status, "", string(problem)))
			_, err := g.Status(t.Context(), "create_post", client.Request{UserID: user, RequestID: id})
			checkNamesNobody(t, err, "user", "request")
		})
	}
}

// A short id is hidden only as a whole word, and one of 8 characters inside a word, too.
// An id may look like what hides it. The guard's own sentence about bad input is not
// changed at all: it never shows an id.
func TestAShortIDGarblesNoMessage(t *testing.T) {
	const sentence = `count is "x", want a whole number of at least 1`
	const echo, hidden = `a man, A-a: {"a":"a"} 1a a1 (a)`, `*** man, A-***: {"***":"***"} 1a a1 (***)`
	for _, tt := range []struct {
		id    string
		reply reply
		want  string // in the message
	}{
		{"a", functionError("ValidationError", sentence), sentence},
		{"a", functionError("Unavailable", echo), hidden},
		{"a", byLambda(400, "Bad", echo), hidden},
		{"abcdefg", functionError("Unavailable", "xabcdefg abcdefg"), ": xabcdefg ***"},
		{"abcdefgh", functionError("Unavailable", "xabcdefgh abcdefgh"), ": x*** ***"},
		{"*", functionError("Unavailable", "x* *"), ": x* ***"},
	} {
		g, _ := with(t, client.Options{MaxTries: 1}, tt.reply)
		if _, err := g.Status(t.Context(), "create_post", client.Request{UserID: tt.id}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.id, err, tt.want)
		}
	}
	g, _ := byURL(t, anyKeys, respond(http.StatusBadRequest, "", `{"errorType":"ValidationError","detail":"want a whole number"}`))
	if _, err := g.Status(t.Context(), "create_post", client.Request{UserID: "a"}); err == nil || !strings.HasSuffix(err.Error(), "want a whole number") {
		t.Errorf("by URL: %v", err)
	}
}

// checkNamesNobody checks that an error has a message of reasonable length
// without these words.
func checkNamesNobody(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, word := range words {
		if strings.Contains(strings.ReplaceAll(err.Error(), "lambda:", ""), word) || len(err.Error()) > 700 {
			t.Errorf("%d characters: %.700v", len(err.Error()), err)
		}
	}
}

func functionFails(payload []byte) reply {
	out := &lambda.InvokeOutput{FunctionError: aws.String("Unhandled"), Payload: payload}
	return func(context.Context) (*lambda.InvokeOutput, error) { return out, nil }
}
