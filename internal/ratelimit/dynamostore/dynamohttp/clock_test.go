package dynamohttp_test

import (
	"maps"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/cric-talk/guards/internal/ratelimit/dynamostore/dynamohttp"
)

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
