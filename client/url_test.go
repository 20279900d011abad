package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/cric-talk/guards/client"
)

const urlRegion = "eu-west-1"

// byURL returns a client that asks posts-guard by a URL, which answers with
// these replies in turn. It returns the requests that arrived.
func byURL(t *testing.T, keys aws.CredentialsProvider, replies ...http.HandlerFunc) (*client.Guards, *[]*http.Request) {
	t.Helper()
	var requests []*http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		requests = append(requests, r)
		replies[min(len(requests), len(replies))-1](w, r)
	}))
	t.Cleanup(server.Close)
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
	d, err := g.Check(t.Context(), "create_post", client.Request{UserID: "u1"})
	if err != nil || !d.Allowed || d.Remaining != 9 || d.ResetAt != 1700000040000 {
		t.Errorf("%+v, %v", d, err)
	}
	d, err = g.Check(t.Context(), "create_post", client.Request{UserID: "u1"})
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
			_, err := g.Status(t.Context(), "create_post", client.Request{UserID: "u1"})
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
	var log strings.Builder
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	g, err := client.New(t.Context(), client.Options{Activities: activities, Client: &function{replies: []reply{functionError("Unavailable", "the table")}}})
	if err != nil {
		t.Fatal(err)
	}
	if d, err := g.Check(t.Context(), "create_post", client.Request{UserID: "u1"}); err != nil || !d.Allowed {
		t.Error(fmt.Sprint(d, err))
	}
	if !strings.Contains(log.String(), `level=WARN msg=guards error="posts-guard did not answer: the table"`) {
		t.Error(log.String())
	}
}
