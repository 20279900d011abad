package dynamohttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/cric-talk/guards/internal/ratelimit/dynamostore/dynamohttp"
)

// A body reports how much of it was read, and whether it was closed.
type body struct {
	io.Reader

	bytes  int
	closed bool
}

func (b *body) Read(p []byte) (n int, err error) {
	n, err = b.Reader.Read(p)
	b.bytes += n
	return n, err
}

func (b *body) Close() error {
	b.closed = true
	return nil
}

// An answer may have a length or none, and at most 1 MB of it is read.
func TestAnAnswerIsReadWholeUpToItsLongest(t *testing.T) {
	const most = 1 << 20
	for name, tt := range map[string]struct {
		content, length int
		read            int
		want            string // the kind of the error
	}{
		"with a length":           {content: 1000, length: 1000, read: 1000},
		"without a length":        {content: 1000, length: -1, read: 1000},
		"the longest":             {content: most, length: most, read: most},
		"too long":                {content: most + 1, length: most + 1, want: "status 200 unreadable"},
		"too long, and no length": {content: most + 1000, length: -1, read: most},
		"too short":               {content: 999, length: 1000, read: 999, want: "status 200 unreadable"},
	} {
		t.Run(name, func(t *testing.T) {
			b := &body{Reader: strings.NewReader(strings.Repeat(" ", tt.content))}
			answer := func() *http.Response {
				a := answerOf(200, "")
				a.Body, a.ContentLength = b, int64(tt.length)
				return a
			}
			_, lean := clients(aws.Config{Region: "eu-west-1", Credentials: aws.CredentialsProviderFunc(keys)}, &recorder{answer: answer})
			got, err := lean.Do(t.Context(), "GetItem", "rateLimit", []byte(readRequest))
			if kind(err) != tt.want || b.bytes != tt.read || !b.closed || err == nil && len(got) != tt.read {
				t.Errorf("%d bytes, %v, after reading %d (closed: %t), want %d and the error %q", len(got), err, b.bytes, b.closed, tt.read, tt.want)
			}
		})
	}
}

// A broken transport gives no answer.
type broken struct{ err error }

func (b broken) Do(*http.Request) (*http.Response, error) { return nil, b.err }

// The error of a request without an answer shows whether it was sent, and whether
// its caller left.
func TestNoAnswer(t *testing.T) {
	reset := errors.New("connection reset")
	left, leave := context.WithCancel(t.Context())
	leave()
	for name, tt := range map[string]struct {
		ctx                   context.Context
		keys                  aws.CredentialsProvider
		sent, canceled, never bool
	}{
		"the connection is lost": {ctx: t.Context(), keys: aws.CredentialsProviderFunc(keys), sent: true},
		"the caller leaves":      {ctx: left, keys: aws.CredentialsProviderFunc(keys), sent: true, canceled: true},
		"the caller leaves while credentials are fetched": {ctx: left, sent: true, canceled: true, keys: aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
			<-ctx.Done()
			return aws.Credentials{}, ctx.Err()
		})},
		"no credentials": {ctx: t.Context(), never: true},
		"refused credentials": {ctx: t.Context(), never: true, keys: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{}, reset
		})},
	} {
		cfg := aws.Config{Region: "eu-west-1", Credentials: tt.keys, HTTPClient: broken{reset}}
		lean := dynamohttp.New(dynamodb.NewFromConfig(cfg))
		t.Run(name, func(t *testing.T) {
			_, err := lean.Do(tt.ctx, "GetItem", "rateLimit", []byte(readRequest))
			_, sent := errors.AsType[*smithyhttp.RequestSendError](err)
			_, canceled := errors.AsType[*aws.RequestCanceledError](err)
			_, never := errors.AsType[*dynamohttp.NotSentError](err)
			if sent != tt.sent || canceled != tt.canceled || never != tt.never || errors.Is(err, reset) != (tt.sent && !tt.canceled) {
				t.Errorf("%T: %[1]v, want sent %t, canceled %t, never sent %t", err, tt.sent, tt.canceled, tt.never)
			}
		})
	}
}

func keys(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret"}, nil
}

// Credentials that have expired are replaced. The new ones may belong to another
// account, whose endpoint then applies.
func TestNewCredentialsAreUsed(t *testing.T) {
	n := 0
	provider := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		n++
		return aws.Credentials{
			AccessKeyID: fmt.Sprint("AKID", n), SecretAccessKey: "secret", SessionToken: fmt.Sprint("token", n),
			AccountID: fmt.Sprintf("%012d", n), CanExpire: true, Expires: time.Now().Add(-time.Second),
		}, nil
	})
	r := new(recorder)
	cfg := aws.Config{Region: "eu-west-1", Credentials: aws.NewCredentialsCache(provider), AccountIDEndpointMode: aws.AccountIDEndpointModePreferred}
	_, lean := clients(cfg, r)
	for i := range 3 {
		if _, err := lean.Do(t.Context(), "GetItem", "rateLimit", []byte(readRequest)); err != nil {
			t.Fatal(err)
		}
		got := r.requests[i]
		key, token, host := fmt.Sprintf("Credential=AKID%d/", i+1), fmt.Sprint("token", i+1), fmt.Sprintf("%012d.ddb.eu-west-1.amazonaws.com", i+1)
		if !strings.Contains(got.Header.Get("Authorization"), key) || got.Header.Get("X-Amz-Security-Token") != token || got.URL.Host != host {
			t.Errorf("request %d goes to %s with %v, want %s with %s and %s", i, got.URL.Host, got.Header, host, key, token)
		}
	}
}

// Each error has the type and the code of the SDK's error.
func TestErrorsAreTheSDKs(t *testing.T) {
	for name, answer := range map[string]func() *http.Response{
		"an error": func() *http.Response {
			return answerOf(400, `{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"no table"}`)
		},
		"a capital M": func() *http.Response {
			return answerOf(400, `{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"no"}`)
		},
		"an unknown error":  func() *http.Response { return answerOf(400, `{"__type":"NewException","message":"new"}`) },
		"an address behind": func() *http.Response { return answerOf(400, `{"__type":"ThrottlingException:http://amazon.com"}`) },
		"no type":           func() *http.Response { return answerOf(500, `{}`) },
		"no body":           func() *http.Response { return answerOf(503, ``) },
		"HTML":              func() *http.Response { return answerOf(502, `<html>`) },
		"a header": func() *http.Response {
			a := answerOf(400, `{"message":"slow down"}`)
			a.Header.Set("X-Amzn-Errortype", "ThrottlingException:")
			return a
		},
		"an answer cut short": func() *http.Response {
			a := answerOf(200, `{"Item":`)
			a.ContentLength = 100
			return a
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, lean := clients(aws.Config{Region: "eu-west-1", Credentials: aws.CredentialsProviderFunc(keys)}, &recorder{answer: answer})
			stock, own := get(t.Context(), client, lean)
			if theirs, ours := kind(stock), kind(own); theirs != ours {
				t.Errorf("the SDK's error is %s, and this package's %s: %v", theirs, ours, own)
			}
		})
	}
}

// kind shows what an error is to a caller that examines it.
func kind(err error) string {
	text := ""
	if e, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		text += fmt.Sprint("status ", e.HTTPStatusCode(), " ")
	}
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		text += e.ErrorCode() + " " + strings.TrimPrefix(e.ErrorMessage(), "UnknownError") // the SDK's text if there is none
	}
	if _, ok := errors.AsType[*smithy.DeserializationError](err); ok {
		text += "unreadable"
	}
	return text
}
