package client_test

import (
	"context"
	"errors"
	"fmt"
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
)

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
		check := func(t *testing.T, g *client.Guards) (d client.Decision, err error) {
			t.Helper()
			began := time.Now()
			d, err = g.Check(t.Context(), "create_post", client.Request{UserID: "u1"})
			if took := time.Since(began); took != tt.takes {
				t.Errorf("it took %v, want %v", took, tt.takes)
			}
			return d, err
		}
		t.Run(name+" at first", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, err := check(t, signedBy(t, &source{answers: []aws.CredentialsProviderFunc{tt.answers}}))
				if tt.never == "" && (err != nil || !d.Allowed || d.Outage != nil) {
					t.Errorf("%+v, %v", d, err)
				}
				if tt.never != "" && (d.Allowed || !errors.Is(err, client.ErrConfiguration) || err.Error() != tt.never) {
					t.Errorf("%+v, %v, want the mistake %s", d, err, tt.never)
				}
			})
		})
		t.Run(name+" later", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := signedBy(t, &source{answers: []aws.CredentialsProviderFunc{anyKeys, tt.answers}})
				if d, err := g.Check(t.Context(), "create_post", client.Request{UserID: "u1"}); err != nil || d.Outage != nil {
					t.Fatalf("%+v, %v", d, err)
				}
				d, err := check(t, g)
				if err != nil || !d.Allowed || (d.Outage != nil) != (tt.renewed != "") || d.Outage != nil && d.Outage.Error() != tt.renewed {
					t.Errorf("%+v, %v, want the outage %q", d, err, tt.renewed)
				}
			})
		})
	}
}

func TestCredentialsAreFetchedOnceForACall(t *testing.T) {
	for _, replies := range [][]http.HandlerFunc{{respond(http.StatusOK, "", okBody)}, {respond(http.StatusBadGateway, "", "")}} {
		s := &source{answers: []aws.CredentialsProviderFunc{anyKeys}}
		g, _ := byURL(t, s, replies...)
		_, _ = g.Check(t.Context(), "create_post", client.Request{UserID: "u1"})
		if n := s.asked.Load(); n != 1 {
			t.Errorf("by URL: %d times, want once", n)
		}
	}
	s := &source{answers: []aws.CredentialsProviderFunc{anyKeys}}
	if _, err := signedBy(t, s).Check(t.Context(), "create_post", client.Request{UserID: "u1"}); err != nil || s.asked.Load() != 1 {
		t.Errorf("by Invoke: %v, %d times, want once", err, s.asked.Load())
	}
}

func TestACallerThatGivesUpIsNoMistakeOfItsCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := signedBy(t, &source{answers: []aws.CredentialsProviderFunc{hanging}})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if d, err := g.Check(ctx, "create_post", client.Request{UserID: "u1"}); !errors.Is(err, context.Canceled) || kindOf(err) != nil {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

// OnOutage decides shortly before the deadline of the caller.
func TestAWaitForCredentialsEndsBeforeTheCallersDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := signedBy(t, &source{answers: []aws.CredentialsProviderFunc{anyKeys, hanging}})
		if _, err := g.Check(t.Context(), "create_post", client.Request{UserID: "u1"}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		d, err := g.Check(ctx, "create_post", client.Request{UserID: "u1"})
		if took := time.Since(began); err != nil || !d.Allowed || d.Outage == nil || took != 950*time.Millisecond {
			t.Errorf("%+v, %v after %v, want an outage after 950 ms", d, err, took)
		}
	})
}

func TestAnAppThatSignsNothing(t *testing.T) {
	for _, keys := range []aws.CredentialsProvider{nil, aws.AnonymousCredentials{}} {
		g, requests := byURL(t, keys, respond(http.StatusOK, "", okBody))
		d, err := g.Check(t.Context(), "create_post", client.Request{UserID: "u1"})
		if err != nil || !d.Allowed || d.Outage != nil || (*requests)[0].Header.Get("Authorization") != "" {
			t.Errorf("%+v, %v", d, err)
		}
	}
}
