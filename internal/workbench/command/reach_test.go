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

	"github.com/cric-talk/guards/limits"
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
	send := func(t *testing.T, within time.Duration) error {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://10.1.2.3:8000/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := c.Do(r)
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	}
	synctest.Test(t, func(t *testing.T) {
		for _, address := range []struct {
			connects bool
			within   time.Duration
			want     string
		}{
			{false, 3 * time.Second, "http://10.1.2.3:8000 can't be reached: no connection in 3 s"},
			{true, answerWait, "http://10.1.2.3:8000 can't be reached: no answer in 10 s"},
		} {
			connects = address.connects
			began := time.Now()
			err := send(t, time.Hour)
			e, ok := errors.AsType[*unreached](err)
			if took := time.Since(began); !ok || took > address.within || e.RetryableError() || e.Error() != address.want {
				t.Errorf("after %v: %v, want within %v: %s", took, err, address.within, address.want)
			}
		}
		c.answer = 0 // as for a function
		if err := send(t, time.Hour); !errors.Is(err, context.DeadlineExceeded) || errors.As(err, new(*unreached)) {
			t.Errorf("a function that runs for an hour: %v", err)
		}
		if err := send(t, time.Second); !errors.Is(err, context.DeadlineExceeded) || errors.As(err, new(*unreached)) {
			t.Errorf("the caller stopped waiting: %v", err)
		}
		silent = false
		if err := send(t, time.Hour); err != nil {
			t.Errorf("an address that answers: %v", err)
		}
		silent = true
		if err := send(t, time.Minute); !errors.Is(err, context.DeadlineExceeded) || errors.As(err, new(*unreached)) {
			t.Errorf("silent after an answer: %v", err)
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
			var log stream
			status := run(t.Context(), append(strings.Fields(command), "--region", "us-east-1", "--endpoint", server.URL), session{guards: limits.All, out: io.Discard, err: &log})
			want := "guards: " + server.URL + " can't be reached: what answers there is not DynamoDB: 200 OK\n" +
				"guards: choose another address with --endpoint or AWS_ENDPOINT_URL_DYNAMODB, or another region with --region\n"
			if status != unreachable || log.String() != want {
				t.Errorf("guards %s, answered with %s: status %d, %s", command, answer, status, &log)
			}
		}
		server.Close()
	}
}
