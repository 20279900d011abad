package dynamostore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	. "github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

func TestTheSDKNeverRetries(t *testing.T) {
	p := dynamotest.NewProxy(t)
	t.Setenv("AWS_MAX_ATTEMPTS", "5")
	t.Setenv("AWS_RETRY_MODE", "adaptive")
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", p.URL())
	cfg, err := config.LoadDefaultConfig(t.Context())
	testkit.OK(t, err)
	for _, fault := range []dynamotest.Fault{dynamotest.Throttle, dynamotest.Status500, dynamotest.LoseResponse} {
		l := &ratelimit.Limiter{Store: New(cfg, "rateLimit")} // without a Timeout: one attempt
		p.ResetCounts()
		p.Fail(math.MaxInt, fault)
		if _, err := l.Check(t.Context(), request("r1")); err == nil || p.Counts()["UpdateItem"] != 1 {
			t.Errorf("%s: requests are %v and the error is %v, want one request", fault, p.Counts(), err)
		}
		l = &ratelimit.Limiter{Store: l.Store} // its circuit breaker is closed
		if _, err := l.Decide(t.Context(), ratelimit.Reset, request("r1")); err == nil || p.Counts()["DeleteItem"] != 1 {
			t.Errorf("%s: requests are %v and the error of a reset is %v, want one request", fault, p.Counts(), err)
		}
		p.Heal()
	}
}

func TestIncompleteSettingsAreRejectedAtTheFirstAttempt(t *testing.T) {
	endpoint := dynamotest.Endpoint(t)
	noTable := New(dynamotest.Config(endpoint), "no-such-table")
	cfg := dynamotest.Config(endpoint)
	cfg.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, errors.New("none anywhere")
	})
	noCredentials := New(cfg, "rateLimit")
	cfg = dynamotest.Config(endpoint)
	cfg.Region, cfg.BaseEndpoint = "", nil
	noRegion := New(cfg, "rateLimit")
	const incomplete = "the table could not be reached: the AWS settings (credentials, region or endpoint) are incomplete"
	for store, want := range map[*Store]string{noTable: "the table does not exist", noRegion: incomplete, noCredentials: incomplete} {
		l := &ratelimit.Limiter{Store: store, Timeout: time.Minute}
		d, err := l.Check(t.Context(), request("r1"))
		e, ok := errors.AsType[*ratelimit.StoreError](err)
		if !ok || e.What != want || e.Failure != ratelimit.Misconfigured || d.Requests != 1 {
			t.Errorf("Check = %+v, %v, want %q at the first attempt", d, err, want)
		}
	}
}

// answered returns the error of a response with the status and the code.
func answered(status int, code, message string) error {
	return &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}},
		Err:      &smithy.GenericAPIError{Code: code, Message: message},
	}
}

func TestClassify(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want ratelimit.Failure
		what string // what it says; empty: anything
	}{
		"throughput exceeded":         {answered(400, "ProvisionedThroughputExceededException", ""), ratelimit.NotApplied, "the table is throttled"},
		"throttling":                  {answered(400, "ThrottlingException", ""), ratelimit.NotApplied, ""},
		"request limit":               {answered(400, "RequestLimitExceeded", ""), ratelimit.NotApplied, ""},
		"conflict of two regions":     {answered(400, "ReplicatedWriteConflictException", ""), ratelimit.NotApplied, ""},
		"internal error":              {answered(500, "InternalServerError", ""), ratelimit.Unknown, "the table failed"},
		"service unavailable":         {answered(503, "ServiceUnavailable", ""), ratelimit.Unknown, ""},
		"connection lost":             {&smithyhttp.RequestSendError{Err: io.ErrUnexpectedEOF}, ratelimit.Unknown, "the table did not answer in time"},
		"timeout":                     {context.DeadlineExceeded, ratelimit.Unknown, "the table did not answer in time"},
		"canceled":                    {context.Canceled, ratelimit.Unknown, ""},
		"unreadable body":             {&smithy.DeserializationError{Err: io.ErrUnexpectedEOF}, ratelimit.Unknown, ""},
		"wrong type of an attribute":  {answered(400, "ValidationException", "An operand in the update expression has an incorrect data type"), ratelimit.Unreadable, ""},
		"another fault of validation": {answered(400, "ValidationException", "Item size has exceeded the maximum"), ratelimit.Invalid, ""},
		"no table":                    {answered(400, "ResourceNotFoundException", ""), ratelimit.Misconfigured, "the table does not exist"},
		"no access":                   {answered(400, "AccessDeniedException", ""), ratelimit.Misconfigured, "access to the table is denied"},
		"expired credentials":         {answered(400, "ExpiredTokenException", ""), ratelimit.Misconfigured, "access to the table is denied"},
		"no credentials":              {errors.New("no credentials anywhere"), ratelimit.Misconfigured, ""},
	} {
		e, ok := errors.AsType[*ratelimit.StoreError](Classify(tt.err))
		if !ok || e.Failure != tt.want || e.What == "" || tt.what != "" && e.What != tt.what || !errors.Is(e, tt.err) {
			t.Errorf("%s: Classify = %+v, want class %d with its cause, and %q", name, e, tt.want, tt.what)
		}
	}
	if err := Classify(nil); err != nil {
		t.Errorf("Classify(nil) = %v, want nil", err)
	}
}

// The first request after Redial opens a connection, and the next one has the same. Requests
// that are sent as usual share neither.
func TestRedialOpensAConnection(t *testing.T) {
	var connections atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("{}"))
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	for name, client := range map[string]aws.HTTPClient{"the SDK's": awshttp.NewBuildableClient(), "net/http's": &http.Client{Transport: &http.Transport{}}} {
		connections.Store(0)
		store := New(aws.Config{
			Region: "eu-west-1", BaseEndpoint: &server.URL, HTTPClient: client,
			Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: "key", SecretAccessKey: "secret"}, nil
			}),
		}, "rateLimit")
		read := func(s ratelimit.Store, want int64) {
			t.Helper()
			if _, err := s.Read(t.Context(), ratelimit.Key{UserID: "u1", Activity: "act"}); err != nil || connections.Load() != want {
				t.Errorf("%s: %d connections, want %d: %v", name, connections.Load(), want, err)
			}
		}
		read(store, 1)
		read(store, 1)
		beside := store.Redial()
		read(beside, 2)
		read(beside, 2)
		read(store, 2)
		read(store.Redial(), 3)
	}
}

func number(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }

// A foreign attribute is one that somebody else has written.
type foreign struct {
	policy string
	attr   string
	value  types.AttributeValue
}

var unread = []foreign{
	{"10/1m", "note", Text("VIP")},
	{"bucket 1/5s", "tat", number("9.5")},
	{"log 1/1h", "a0", number("9.5")},
}

var unreadable = []foreign{
	{"10/1m", "activityCount", Text("3")},
	{"10/1m", "activityCount", &types.AttributeValueMemberNULL{Value: true}},
	{"10/1m", "activityCount", number("9.5")},
	{"10/1m", "activityCount", number("1e30")},
	{"10/1m", "activityCount", number("-1e30")},
	{"10/1m", "ids", Text("r1")},
	{"10/1m", "ids", number("3")},
	{"10/1m", "ids", &types.AttributeValueMemberL{Value: []types.AttributeValue{Text("r1")}}},
	{"10/1m", "ids", &types.AttributeValueMemberBS{Value: [][]byte{{1, 2, 3}}}},
	{"10/1m", "i27", number("7")}, // the next set
	{"1000/1m", "i26", number("7")},
	{"bucket 1/5s", "tat", Text("soon")},
	{"10/1m", "activityCount", &types.AttributeValueMemberBS{Value: [][]byte{{1, 2, 3, 4, 5, 6, 7, 8}}}},
	{"bucket 1/5s", "i26", Text("x")},
	{"log 100/12h", "a5", Text("x")},
	{"log 100/12h", "top", Text("x")},
	{"sliding 50/1h", "c472222", Text("x")},
	{"reservoir 10/10s ahead 15m", "t", Text("x")},
	{"minute: 10/1m, day: 200/1d", "day_s", Text("x")},
	{"minute: 10/1m, day: 200/1d", "minute_s", number("1700000040000000001.5")},
}

func TestAnUnreadableAttributeIsNamedAfterAtMostTwoRequests(t *testing.T) {
	endpoint := dynamotest.Endpoint(t)
	client, table := dynamotest.Client(t, endpoint), dynamotest.Table(t)
	for i, tt := range unreadable {
		t.Run(fmt.Sprintf("%s with %s as %T %d", tt.policy, tt.attr, tt.value, i), func(t *testing.T) {
			l := &ratelimit.Limiter{
				Store: New(dynamotest.Config(endpoint), table), Memory: ratelimit.NewMemory(1 << 20),
				Timeout: 5 * time.Second, Now: func() time.Time { return start },
			}
			r := request("r1")
			r.UserID, r.Policy = fmt.Sprint("u", i), policy.Must(tt.policy)
			if tt.attr == "a5" || tt.attr == "top" {
				r.Count = 100 // every slot matters
			}
			window, _ := r.Policy.Item(start.UnixMilli())
			write := func(attr string, value types.AttributeValue) {
				t.Helper()
				_, err := client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
					TableName: &table, Key: Key(ratelimit.Key{UserID: r.UserID, Activity: r.Activity, Window: window}),
					UpdateExpression: aws.String("SET #a = :v"), ExpressionAttributeNames: map[string]string{"#a": attr},
					ExpressionAttributeValues: map[string]types.AttributeValue{":v": value},
				})
				testkit.OK(t, err)
			}
			write(tt.attr, tt.value)
			for range 2 { // the second time with what was learned
				checkUnreadable(t, l, ratelimit.Check, r, tt.attr)
				checkUnreadable(t, l, ratelimit.Status, r, tt.attr)
			}
			other := r
			other.UserID += " other"
			if d, err := l.Check(t.Context(), other); err != nil || !d.Allowed || l.CircuitOpen() {
				t.Errorf("another user's Check = %+v, %v, circuit open: %v", d, err, l.CircuitOpen())
			}
			if d, err := l.Decide(t.Context(), ratelimit.Reset, r); err != nil || d.Used != 0 {
				t.Errorf("Reset = %+v, %v, want nothing used", d, err)
			}
			d, err := l.Check(t.Context(), r)
			if err != nil || !d.Allowed || d.Used != r.Count {
				t.Errorf("Check after Reset = %+v, %v, want %d used", d, err, r.Count)
			}
			if r.Policy.Queues() {
				return
			}
			write(tt.attr, tt.value)
			r.At = d.At
			checkUnreadable(t, l, ratelimit.Release, r, tt.attr)
		})
	}
}

func checkUnreadable(t *testing.T, l *ratelimit.Limiter, op ratelimit.Op, r ratelimit.Request, attr string) {
	t.Helper()
	d, err := l.Decide(t.Context(), op, r)
	e, ok := errors.AsType[*ratelimit.StoreError](err)
	if !ok || e.Failure != ratelimit.Unreadable || e.Attr != attr || d.Requests > 2 {
		t.Errorf("it answers %+v, %v, want %s to be unreadable after at most two requests", d, err, attr)
	}
}

// An attribute that no policy knows changes nothing. One that the first update replaces is
// repaired, and nobody has to know.
func TestAForeignAttributeThatIsNotRead(t *testing.T) {
	endpoint, table := dynamotest.Endpoint(t), dynamotest.Table(t)
	l := &ratelimit.Limiter{Store: New(dynamotest.Config(endpoint), table), Now: func() time.Time { return start }}
	for _, tt := range unread {
		r := request("r1")
		r.UserID, r.Policy = tt.attr, policy.Must(tt.policy)
		window, _ := r.Policy.Item(start.UnixMilli())
		item := Key(ratelimit.Key{UserID: r.UserID, Activity: r.Activity, Window: window})
		item[tt.attr] = tt.value
		if _, err := dynamotest.Client(t, endpoint).PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item}); err != nil {
			t.Fatal(err)
		}
		for _, op := range []ratelimit.Op{ratelimit.Check, ratelimit.Status} {
			if d, err := l.Decide(t.Context(), op, r); err != nil || d.Used != 1 || d.Requests != 1 {
				t.Errorf("%s: %s = %+v, %v, want 1 used after one request", tt.attr, op, d, err)
			}
		}
	}
}
