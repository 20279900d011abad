package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/smithy-go"

	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/internal/testkit"
)

const urlRegion = "eu-west-1"

// byURL returns a client that asks posts-guard by a URL, which answers with
// these replies in turn. It returns the requests that arrived.
func byURL(t *testing.T, keys aws.CredentialsProvider, replies ...http.HandlerFunc) (*client.Guards, *[]*http.Request) {
	t.Helper()
	var requests []*http.Request
	server := testkit.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		requests = append(requests, r)
		replies[min(len(requests), len(replies))-1](w, r)
	})
	return open(t, client.Options{
		Activities: activities,
		Client:     lambda.New(lambda.Options{Region: urlRegion, Credentials: keys}),
		URLs:       map[string]string{"posts-guard": server.URL},
		Timeout:    20 * time.Second, DecisionTimeout: 5 * time.Second,
	}), &requests
}

func respond(status int, code, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if code != "" {
			w.Header().Set("X-Amzn-Errortype", code)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

var anyKeys = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret", SessionToken: "token"}, nil
})

func TestByURL(t *testing.T) {
	g, requests := byURL(t, anyKeys, respond(http.StatusOK, "", okBody), respond(http.StatusTooManyRequests, "", limitedBody))
	d, err := g.Check(t.Context(), "create_post", u1)
	if err != nil || !d.Allowed || d.Remaining != 9 || d.ResetAt != 1700000040000 {
		t.Errorf("%+v, %v", d, err)
	}
	d, err = g.Check(t.Context(), "create_post", u1)
	if err != nil || d.Allowed || d.Reason != client.Limited || d.WaitTime != 2000 || d.Outage != nil {
		t.Errorf("%+v, %v", d, err)
	}
	r := (*requests)[0]
	body, _ := io.ReadAll(r.Body)
	signed := r.Header.Get("Authorization")
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("X-Amz-Security-Token") != "token" ||
		!strings.Contains(signed, "/"+urlRegion+"/lambda/aws4_request") || !strings.Contains(string(body), `"op":"check"`) {
		t.Errorf("%s %v %s", r.Method, r.Header, body)
	}
}

func TestErrorsByURL(t *testing.T) {
	for name, tt := range map[string]struct {
		reply   http.HandlerFunc
		kind    error
		message string
		asked   int
	}{
		"forbidden":   {respond(403, "", `{"Message":"Forbidden"}`), client.ErrConfiguration, "The app may not call the URL of posts-guard.", 1},
		"expired":     {respond(403, "ExpiredTokenException:http://internal", `{}`), client.ErrConfiguration, "AWS refused the credentials (ExpiredTokenException).", 1},
		"no function": {respond(404, "", `{"Message":null}`), client.ErrConfiguration, "There is no function posts-guard in eu-west-1.", 1},
		"another 4xx": {respond(413, "", `{"Message":"about u1"}`), client.ErrConfiguration, "posts-guard could not be invoked: HTTP 413: about ***", 1},
		"not a POST":  {respond(405, "", `{"title":"Method Not Allowed","status":405}`), client.ErrConfiguration, "posts-guard could not be invoked: HTTP 405", 1},
		"another 400": {respond(400, "", `{"message":"Bad Request"}`), client.ErrConfiguration, "posts-guard could not be invoked: HTTP 400: Bad Request", 1},
		"validation":  {respond(400, "", `{"status":400,"detail":"count is 0","errorType":"ValidationError"}`), client.ErrValidation, "count is 0", 1},
		"not JSON":    {respond(200, "", "<html>"), client.ErrAnswer, "posts-guard answered something that no guard answers: <html>.", 1},
		"nothing":     {respond(204, "", ""), client.ErrAnswer, "posts-guard answered something that no guard answers: .", 1},
		"unavailable": {respond(503, "", `{"status":503,"detail":"the table","errorType":"Unavailable"}`), client.ErrOutage, "posts-guard did not answer: the table", 1},
		"throttled":   {respond(429, "TooManyRequestsException", `{"message":"Rate Exceeded."}`), client.ErrOutage, "posts-guard did not answer: TooManyRequestsException: Rate Exceeded.", 3},
		"a crash":     {respond(502, "", "Internal Server Error"), client.ErrAnswer, "posts-guard failed: HTTP 502. It crashed, can't start or timed out. Its log says why.", 1},
		"no key":      {respond(502, "KMSDisabledException", `{"Message":"m"}`), client.ErrConfiguration, "Lambda can't run posts-guard: KMSDisabledException: m. Correct", 1},
		"another 5xx": {respond(504, "", ""), client.ErrOutage, "posts-guard did not answer: HTTP 504", 3},
	} {
		t.Run(name, func(t *testing.T) {
			g, requests := byURL(t, anyKeys, tt.reply)
			_, err := g.Status(t.Context(), "create_post", u1)
			if !errors.Is(err, tt.kind) || !strings.HasPrefix(err.Error(), tt.message) || len(*requests) != tt.asked {
				t.Errorf("%v: %v after %d requests, want %v: %s after %d", kindOf(err), err, len(*requests), tt.kind, tt.message, tt.asked)
			}
		})
	}
}

func TestNoRegion(t *testing.T) {
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	for _, o := range []client.Options{{}, {Client: lambda.New(lambda.Options{})}} {
		if _, err := client.New(t.Context(), o); !errors.Is(err, client.ErrConfiguration) || !strings.HasPrefix(err.Error(), "No AWS region is set.") {
			t.Error(err)
		}
	}
	t.Setenv("AWS_REGION", urlRegion)
	if _, err := client.New(t.Context(), client.Options{}); err != nil {
		t.Error(err)
	}
}

func TestTheDefaultWarningIsLogged(t *testing.T) {
	log := testkit.DefaultLog(t)
	away := &function{replies: []reply{functionError("Unavailable", "the table")}}
	g := testkit.Must(client.New(t.Context(), client.Options{Activities: activities, Client: away}))(t)
	if d, err := g.Check(t.Context(), "create_post", u1); err != nil || !d.Allowed {
		t.Error(fmt.Sprint(d, err))
	}
	if !strings.Contains(log.String(), `level=WARN msg=guards error="posts-guard did not answer: the table"`) {
		t.Error(log.String())
	}
}

// A source is a source of credentials. Each call of it uses the next function;
// the last one is for all further calls.
type source struct {
	answers []aws.CredentialsProviderFunc
	asked   atomic.Int64
}

func (s *source) Retrieve(ctx context.Context) (aws.Credentials, error) {
	n := int(s.asked.Add(1))
	return s.answers[min(n, len(s.answers))-1](ctx)
}

// signedBy returns a client with this source of credentials. It asks a Lambda
// that answers at once.
func signedBy(t *testing.T, s *source) *client.Guards {
	t.Helper()
	return open(t, client.Options{Activities: activities, Client: lambda.New(lambda.Options{Region: urlRegion, Credentials: s, HTTPClient: inProcess{}})})
}

// inProcess sends a request to a guard in this process.
type inProcess struct{}

func (inProcess) Do(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	if !strings.Contains(r.Header.Get("Authorization"), "AKID/") {
		w.WriteHeader(http.StatusForbidden)
		return w.Result(), nil
	}
	_, _ = w.WriteString(okBody)
	return w.Result(), nil
}

// fails returns a source whose error is err.
func fails(err error) aws.CredentialsProviderFunc {
	return func(context.Context) (aws.Credentials, error) { return aws.Credentials{}, err }
}

var (
	failing  = fails(&smithy.GenericAPIError{Code: "InternalFailure", Message: "secret"})
	keyless  = fails(&smithy.OperationError{ServiceID: "ec2imds", OperationName: "GetMetadata", Err: errors.New("secret")})
	crashing = fails(&exec.Error{Name: "secret", Err: errors.New("secret")})
	nameless = fails(fmt.Errorf("secret: %w", errors.New("secret")))
	expired  = fails(fmt.Errorf("secret: %w", context.DeadlineExceeded)) // after a time of its own
	hanging  = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		<-ctx.Done()
		return aws.Credentials{}, &aws.RequestCanceledError{Err: ctx.Err()}
	})
)

func afterwards(pause time.Duration) aws.CredentialsProviderFunc {
	return func(ctx context.Context) (aws.Credentials, error) {
		select {
		case <-time.After(pause):
			return anyKeys(ctx)
		case <-ctx.Done():
			return aws.Credentials{}, &aws.RequestCanceledError{Err: ctx.Err()}
		}
	}
}

// Without credentials a check is a mistake. If they can't be renewed, it is an
// outage. No message has the source's own text, which could contain a secret.
func TestCredentials(t *testing.T) {
	const mistake = "No AWS credentials were found"
	const advice = ". Give the app a role, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
	const outage = "posts-guard did not answer: the AWS credentials could not be renewed"
	for name, tt := range map[string]struct {
		answers aws.CredentialsProviderFunc
		never   string // the error of the first call
		renewed string // the outage of a later call
		takes   time.Duration
	}{
		"at once":  {anyKeys, "", "", 0},
		"slow":     {afterwards(1500 * time.Millisecond), "", "", 1500 * time.Millisecond},
		"too slow": {afterwards(3500 * time.Millisecond), mistake + ": their source did not answer in time" + advice, outage + ": their source did not answer in time", 3 * time.Second},
		"silent":   {hanging, mistake + ": their source did not answer in time" + advice, outage + ": their source did not answer in time", 3 * time.Second},
		"failing":  {failing, mistake + ": their source failed (InternalFailure)" + advice, outage + ": their source failed (InternalFailure)", 0},
		"crashing": {crashing, mistake + ": their source failed (exec.Error)" + advice, outage + ": their source failed (exec.Error)", 0},
		"nameless": {nameless, mistake + ": their source failed (error)" + advice, outage + ": their source failed (error)", 0},
		"expired":  {expired, mistake + ": their source did not answer in time" + advice, outage + ": their source did not answer in time", 0},
		"none":     {keyless, mistake + advice, outage, 0},
	} {
		for when, s := range map[string]*source{
			"at first": {answers: []aws.CredentialsProviderFunc{tt.answers}},
			"later":    {answers: []aws.CredentialsProviderFunc{anyKeys, tt.answers}},
		} {
			t.Run(name+" "+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := signedBy(t, s)
					if when == "later" {
						if d, err := g.Check(t.Context(), "create_post", u1); err != nil || d.Outage != nil {
							t.Fatalf("%+v, %v", d, err)
						}
					}
					began := time.Now()
					d, err := g.Check(t.Context(), "create_post", u1)
					if took := time.Since(began); took != tt.takes {
						t.Errorf("it took %v, want %v", took, tt.takes)
					}
					if when == "at first" && tt.never != "" {
						if d.Allowed || !errors.Is(err, client.ErrConfiguration) || err.Error() != tt.never {
							t.Errorf("%+v, %v, want the mistake %s", d, err, tt.never)
						}
					} else if err != nil || !d.Allowed || (d.Outage != nil) != (tt.renewed != "") || d.Outage != nil && d.Outage.Error() != tt.renewed {
						t.Errorf("%+v, %v, want the outage %q", d, err, tt.renewed)
					}
				})
			})
		}
	}
}

func TestCredentialsAreFetchedOnceForACall(t *testing.T) {
	for _, replies := range [][]http.HandlerFunc{{respond(http.StatusOK, "", okBody)}, {respond(http.StatusBadGateway, "", "")}} {
		s := &source{answers: []aws.CredentialsProviderFunc{anyKeys}}
		g, _ := byURL(t, s, replies...)
		_, _ = g.Check(t.Context(), "create_post", u1)
		if n := s.asked.Load(); n != 1 {
			t.Errorf("by URL: %d times, want once", n)
		}
	}
	s := &source{answers: []aws.CredentialsProviderFunc{anyKeys}}
	if _, err := signedBy(t, s).Check(t.Context(), "create_post", u1); err != nil || s.asked.Load() != 1 {
		t.Errorf("by Invoke: %v, %d times, want once", err, s.asked.Load())
	}
}

func TestACallerThatGivesUpIsNoMistakeOfItsCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := signedBy(t, &source{answers: []aws.CredentialsProviderFunc{hanging}})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if d, err := g.Check(ctx, "create_post", u1); !errors.Is(err, context.Canceled) || kindOf(err) != nil {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

// OnOutage decides shortly before the deadline of the caller.
func TestAWaitForCredentialsEndsBeforeTheCallersDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := signedBy(t, &source{answers: []aws.CredentialsProviderFunc{anyKeys, hanging}})
		testkit.Must(g.Check(t.Context(), "create_post", u1))(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		d, err := g.Check(ctx, "create_post", u1)
		if took := time.Since(began); err != nil || !d.Allowed || d.Outage == nil || took != 950*time.Millisecond {
			t.Errorf("%+v, %v after %v, want an outage after 950 ms", d, err, took)
		}
	})
}

func TestAnAppThatSignsNothing(t *testing.T) {
	for _, keys := range []aws.CredentialsProvider{nil, aws.AnonymousCredentials{}} {
		g, requests := byURL(t, keys, respond(http.StatusOK, "", okBody))
		d, err := g.Check(t.Context(), "create_post", u1)
		if err != nil || !d.Allowed || d.Outage != nil || (*requests)[0].Header.Get("Authorization") != "" {
			t.Errorf("%+v, %v", d, err)
		}
	}
}
