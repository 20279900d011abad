package command

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
	app "github.com/cric-talk/guards/limits"
)

// A network answers a request as a test demands.
type network func(*http.Request) (*http.Response, error)

func (n network) Do(r *http.Request) (*http.Response, error) { return n(r) }

// People learn within 3 s that nobody accepts connections at an address, and
// the SDK does not try again. A busy server gets more time for its first
// answer. After that answer, failures are left to the SDK.
func TestSilentAddressesAreReported(t *testing.T) {
	silent, connects := true, false
	c := &reacher{answer: answerWait, client: network(func(r *http.Request) (*http.Response, error) {
		if trace := httptrace.ContextClientTrace(r.Context()); connects && trace != nil {
			trace.GotConn(httptrace.GotConnInfo{})
		}
		if silent {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		return &http.Response{Body: http.NoBody}, nil
	})}
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			what             string
			silent, connects bool
			answer           time.Duration // how long an answer may take; 0: as long as it takes
			leaves           time.Duration // when the caller stops waiting
			want             string        // empty: nothing is reported
		}{
			{"nobody accepts", true, false, answerWait, time.Hour, "http://10.1.2.3:8000 can't be reached: no connection in 3 s"},
			{"nobody answers", true, true, answerWait, time.Hour, "http://10.1.2.3:8000 can't be reached: no answer in 10 s"},
			{"a function that runs for an hour", true, true, 0, time.Hour, ""},
			{"the caller stops waiting", true, true, 0, time.Second, ""},
			{"an address that answers", false, true, 0, time.Hour, ""},
			{"silent after an answer", true, true, answerWait, time.Minute, ""},
		} {
			silent, connects, c.answer = tt.silent, tt.connects, tt.answer
			ctx, cancel := context.WithTimeout(t.Context(), tt.leaves)
			r := testkit.Must(http.NewRequestWithContext(ctx, http.MethodPost, "http://10.1.2.3:8000/", http.NoBody))(t)
			began := time.Now()
			_, err := c.Do(r) //nolint:bodyclose // it has none
			cancel()
			took := time.Since(began)
			switch e, ok := errors.AsType[*unreached](err); {
			case ok && (e.Error() != tt.want || e.RetryableError() || took > answerWait):
				t.Errorf("%s: after %v: %v, want %q", tt.what, took, err, tt.want)
			case !ok && (tt.want != "" || tt.silent != errors.Is(err, context.DeadlineExceeded)):
				t.Errorf("%s: %v, want %q", tt.what, err, tt.want)
			}
		}
	})
}

// Another server, such as the app's own, would look like an empty or a broken
// table.
func TestAServerThatIsNotDynamoDBIsReported(t *testing.T) {
	credentials(t)
	for _, answer := range []string{"{}", "<html>"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
		for _, command := range []string{
			"top --yes", "stats", "status --user u1", "cleanup --yes", "erase --user u1 --yes", "reset create_post --user u1 --yes",
			"limits diff", "limits set create_post 20/1m", "check create_post --user u1 --store dynamodb", "serve --store dynamodb",
		} {
			status, _, log := session{page: app.All}.does(t, strings.Fields(command+" --region us-east-1 --endpoint "+server.URL)...)
			want := "guards: " + server.URL + " can't be reached: what answers there is not DynamoDB: 200 OK\n" +
				"guards: choose another address with --endpoint or AWS_ENDPOINT_URL_DYNAMODB, or another region with --region\n"
			if status != unreachable || log != want {
				t.Errorf("guards %s, answered with %s: status %d, %s", command, answer, status, log)
			}
		}
		server.Close()
	}
}

// If a table fails until the command's time is over, the command tells the cause. It also tells it
// for expired credentials.
func TestAFailingTableIsToldWithItsCause(t *testing.T) {
	credentials(t)
	for name, tt := range map[string]struct {
		status     int
		kind       string
		read, many string // what a command says that reads one item, and one that reads all of a user
	}{
		"throttled": {400, "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException", "guards: the table is throttled\n", "guards: the table rateLimit failed for 10 s: ProvisionedThroughputExceededException\n"},
		"failing":   {500, "InternalServerError", "guards: the table failed\n", "guards: the table rateLimit failed for 10 s: InternalServerError\n"},
		"expired":   {400, "com.amazon.coral.service#ExpiredTokenException", "guards: the AWS credentials have expired\n", "guards: the AWS credentials have expired\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testkit.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/x-amz-json-1.0")
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, `{"__type": "`+tt.kind+`", "message": "m"}`)
			})
			for command, want := range map[string]string{"limits diff": tt.read, "status --user u1": tt.many} {
				status, _, log := session{page: app.All}.does(t, strings.Fields(command+" --region us-east-1 --endpoint "+server.URL)...)
				if status != unreachable || !strings.HasPrefix(log, want) {
					t.Errorf("guards %s: status %d, %s, want %s", command, status, log, want)
				}
			}
		})
	}
}
