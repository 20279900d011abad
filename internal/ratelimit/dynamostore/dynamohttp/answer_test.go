package dynamohttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
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
	for name, tt := range map[string]struct {
		status       int
		body, header string // the header names the type of the error
		cut          bool   // the answer has fewer bytes than its length says
	}{
		"an error":            {status: 400, body: `{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"no table"}`},
		"a capital M":         {status: 400, body: `{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"no"}`},
		"an unknown error":    {status: 400, body: `{"__type":"NewException","message":"new"}`},
		"an address behind":   {status: 400, body: `{"__type":"ThrottlingException:http://amazon.com"}`},
		"no type":             {status: 500, body: `{}`},
		"no body":             {status: 503},
		"HTML":                {status: 502, body: `<html>`},
		"a header":            {status: 400, body: `{"message":"slow down"}`, header: "ThrottlingException:"},
		"an answer cut short": {status: 200, body: `{"Item":`, cut: true},
	} {
		t.Run(name, func(t *testing.T) {
			answer := func() *http.Response {
				a := answerOf(tt.status, tt.body)
				if tt.header != "" {
					a.Header.Set("X-Amzn-Errortype", tt.header)
				}
				if tt.cut {
					a.ContentLength = 100
				}
				return a
			}
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

// The clock of this machine is wrong. The first answer shows it, and the next request is
// signed with DynamoDB's time, as the SDK's client does. The best guess is that DynamoDB
// writes the date in the middle of the round trip. If that took more than 15 minutes,
// there is no guess.
func TestAWrongClockIsCorrected(t *testing.T) {
	for name, tt := range map[string]struct {
		took, ahead time.Duration
		header      http.Header
		disabled    bool
		want        time.Duration
	}{
		"ahead":                      {ahead: time.Hour, want: time.Hour},
		"behind":                     {ahead: -time.Hour, want: -time.Hour},
		"a cached answer":            {ahead: time.Hour, header: http.Header{"Age": {"3600"}}},
		"a date that is not":         {header: http.Header{"Date": {"yesterday"}}},
		"disabled":                   {ahead: time.Hour, disabled: true},
		"the right clock, slow":      {took: 10 * time.Minute},
		"a wrong clock, slow":        {took: 10 * time.Minute, ahead: time.Hour, want: time.Hour},
		"a wrong clock after 15 min": {took: 15 * time.Minute, ahead: time.Hour, want: time.Hour},
		"later than that":            {took: 15*time.Minute + time.Second, ahead: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sent []time.Time
				r := new(recorder)
				r.answer = func() *http.Response {
					sent = append(sent, time.Now())
					time.Sleep(tt.took / 2)
					answer := answerOf(http.StatusOK, "{}")
					answer.Header.Set("Date", time.Now().Add(tt.ahead).UTC().Format(http.TimeFormat))
					maps.Copy(answer.Header, tt.header)
					time.Sleep(tt.took - tt.took/2)
					return answer
				}
				cfg := aws.Config{Region: "eu-west-1", Credentials: aws.CredentialsProviderFunc(keys), DisableClockSkewCorrection: tt.disabled}
				client, lean := clients(cfg, r)
				for range 2 {
					if stock, own := get(t.Context(), client, lean); stock != nil || own != nil {
						t.Fatal(stock, own)
					}
				}
				for i, want := range []time.Duration{0, 0, tt.want, tt.want} {
					at, err := time.Parse(dateFormat, r.requests[i].Header.Get("X-Amz-Date"))
					if off := at.Sub(sent[i]) - want; err != nil || off.Abs() > 2*time.Second {
						t.Errorf("request %d is signed for %v, %v off: %v", i, at, off, err)
					}
				}
			})
		})
	}
}

// A server answers as DynamoDB does, whose clock is ahead of this machine's. It
// refuses a signature that is more than 5 minutes off, or every one if refuses is
// set.
type server struct {
	recorder

	ahead   time.Duration
	code    string // of the refusal
	refuses bool
}

func (s *server) answerByDate() *http.Response {
	now := time.Now().Add(s.ahead)
	answer := answerOf(http.StatusOK, "{}")
	signed, err := time.Parse(dateFormat, s.requests[len(s.requests)-1].Header.Get("X-Amz-Date"))
	if err != nil || s.refuses || now.Sub(signed).Abs() > 5*time.Minute {
		answer = answerOf(http.StatusBadRequest, `{"__type":"com.amazon.coral.service#`+s.code+`"}`)
	}
	answer.Header.Set("Date", now.UTC().Format(http.TimeFormat))
	return answer
}

// A refused signature shows that this machine's clock is wrong. The request is
// sent again with the corrected time, at once and once. The SDK's client, with two
// attempts, does the same.
func TestARequestWithAWrongTimeIsSentAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		server
		disabled bool
		first    int  // requests of the first call
		fails    bool // the first call
		later    int  // requests of the second call
	}{
		"the right clock":       {later: 1, first: 1},
		"an hour ahead":         {server: server{ahead: time.Hour}, first: 2, later: 1},
		"an hour behind":        {server: server{ahead: -time.Hour}, first: 2, later: 1},
		"three minutes ahead":   {server: server{ahead: 3 * time.Minute}, first: 1, later: 1},
		"a wrong key":           {server: server{refuses: true}, first: 1, fails: true, later: 1},
		"a wrong key and clock": {server: server{refuses: true, ahead: time.Hour}, first: 2, fails: true, later: 1},
		"no correction":         {server: server{ahead: time.Hour}, disabled: true, first: 1, fails: true, later: 1},
		"another refusal": {
			server: server{ahead: time.Hour, refuses: true, code: "ConditionalCheckFailedException"}, first: 1, fails: true, later: 1,
		},
		"a request without access": {server: server{ahead: time.Hour, code: "AccessDeniedException"}, first: 2, later: 1},
		"a signature that differs": {server: server{ahead: time.Hour, code: "SignatureDoesNotMatch"}, first: 2, later: 1},
		"a failed authentication":  {server: server{ahead: time.Hour, code: "AuthFailure"}, first: 2, later: 1},
		"a time that is too far":   {server: server{ahead: time.Hour, code: "RequestTimeTooSkewed"}, first: 2, later: 1},
	} {
		t.Run(name, func(t *testing.T) {
			theirs, ours := tt.server, tt.server
			for client, s := range map[string]*server{"the SDK": &theirs, "this package": &ours} {
				s.answer = s.answerByDate
				if s.code == "" {
					s.code = "InvalidSignatureException"
				}
				call := s.caller(t, client == "the SDK", tt.disabled)
				if err := call(); (err != nil) != tt.fails || len(s.requests) != tt.first {
					t.Errorf("%s sent %d requests: %v, want %d and an error: %t", client, len(s.requests), err, tt.first, tt.fails)
				}
				before := len(s.requests)
				_ = call() // it fails like the first call, or not at all
				if n := len(s.requests) - before; n != tt.later {
					t.Errorf("%s sent %d further requests, want %d", client, n, tt.later)
				}
			}
		})
	}
}

// caller returns a function that sends a GetItem to s.
func (s *server) caller(t *testing.T, sdk, uncorrected bool) func() error {
	t.Helper()
	cfg := aws.Config{
		Region: "eu-west-1", Credentials: aws.CredentialsProviderFunc(keys), HTTPClient: s, DisableClockSkewCorrection: uncorrected,
	}
	client := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts = 2
			o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
		})
		o.DisableValidateResponseChecksum = true
	})
	lean := dynamohttp.New(client)
	return func() (err error) {
		if sdk {
			_, err = client.GetItem(t.Context(), readInput())
		} else {
			_, err = lean.Do(t.Context(), "GetItem", "rateLimit", []byte(readRequest))
		}
		return err
	}
}
