package sqsqueue_test

import (
	"context"
	"crypto/md5"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	. "github.com/cric-talk/guards/internal/delayed/sqsqueue"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// A slowQueue is an aws.HTTPClient for a queue that takes each message, unless answer says
// otherwise.
type slowQueue struct {
	answer func(n int) outcome // of the n-th send, from 1 on

	mu     sync.Mutex
	sends  int
	copies int
}

// An outcome is what becomes of one send. The zero outcome is an answer at once.
type outcome struct {
	after  time.Duration
	lost   bool   // taken, and the connection breaks
	hangs  bool   // taken, and no answer comes
	status int    // not taken: an error answer
	code   string // of the error answer
	fails  error  // not taken: there is no connection
}

func (q *slowQueue) Do(r *http.Request) (*http.Response, error) {
	var message struct{ MessageBody string }
	if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
		return nil, err
	}
	q.mu.Lock()
	q.sends++
	o := q.answer(q.sends)
	if o.status == 0 && o.fails == nil {
		q.copies++
	}
	q.mu.Unlock()
	var after <-chan time.Time
	if !o.hangs {
		after = time.After(o.after)
	}
	select {
	case <-after:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	switch {
	case o.fails != nil:
		return nil, o.fails
	case o.lost:
		return nil, io.ErrUnexpectedEOF
	case o.status != 0:
		return response(o.status, `{"__type": "`+o.code+`"}`), nil
	}
	return response(200, taken(message.MessageBody)), nil
}

// open returns a Queue that sends to q.
func (q *slowQueue) open() *Queue {
	cfg := dynamotest.Config("http://nowhere.invalid")
	cfg.HTTPClient = q
	return New(cfg, "http://nowhere.invalid/q")
}

// taken returns the answer of a queue that has taken a message.
func taken(body string) string {
	return fmt.Sprintf(`{"MessageId": "1", "MD5OfMessageBody": "%x"}`, md5.Sum([]byte(body)))
}

func response(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Body: io.NopCloser(strings.NewReader(body))}
}

// Each row is a queue in trouble: how many sends and copies it gets of one job, and when
// Send returns.
func TestAtMostTwoCopies(t *testing.T) {
	slow := func(d time.Duration) func(int) outcome { return func(int) outcome { return outcome{after: d} } }
	always := func(o outcome) func(int) outcome { return func(int) outcome { return o } }
	then := func(first ...outcome) func(int) outcome {
		return func(n int) outcome {
			if n > len(first) {
				return outcome{}
			}
			return first[n-1]
		}
	}
	refused := outcome{fails: &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}}
	throttled := outcome{status: 400, code: "com.amazon.coral.availability#ThrottlingException"}
	for name, tt := range map[string]struct {
		answer        func(int) outcome
		sends, copies int
		least, most   time.Duration // how long Send takes
		fails         bool
	}{
		"answers at once":              {slow(0), 1, 1, 0, 0, false},
		"answers after 0.5 s":          {slow(500 * time.Millisecond), 1, 1, 500 * time.Millisecond, 500 * time.Millisecond, false},
		"answers after 0.9 s":          {slow(900 * time.Millisecond), 1, 1, 900 * time.Millisecond, 900 * time.Millisecond, false},
		"answers after 1.2 s":          {slow(1200 * time.Millisecond), 2, 2, 1200 * time.Millisecond, 1200 * time.Millisecond, false},
		"answers after 1.8 s":          {slow(1800 * time.Millisecond), 2, 2, 1800 * time.Millisecond, 1800 * time.Millisecond, false},
		"answers after 3 s":            {slow(3 * time.Second), 2, 2, Timeout, Timeout, true},
		"the first connection is dead": {then(outcome{hangs: true}), 2, 2, time.Second, time.Second, false},
		"all answers are lost":         {always(outcome{lost: true}), 2, 2, time.Second, time.Second, true},
		"lost late":                    {always(outcome{lost: true, after: 700 * time.Millisecond}), 2, 2, 1700 * time.Millisecond, 1700 * time.Millisecond, true},
		"one answer is lost":           {then(outcome{lost: true}), 2, 2, time.Second, time.Second, false},
		"one 500":                      {then(outcome{status: 500, code: "InternalError"}), 2, 1, time.Second, time.Second, false},
		"only 500":                     {always(outcome{status: 500, code: "InternalError"}), 2, 0, time.Second, time.Second, true},
		"throttled once":               {then(throttled), 2, 1, 12 * time.Millisecond, 25 * time.Millisecond, false},
		"throttled":                    {always(throttled), 6, 0, 387 * time.Millisecond, 775 * time.Millisecond, true},
		"refused four times":           {then(refused, refused, refused, refused), 5, 1, 187 * time.Millisecond, 375 * time.Millisecond, false},
		"refused, then silent":         {then(refused, outcome{hangs: true}, outcome{hangs: true}), 3, 2, Timeout, Timeout, true},
		"silent, then refused":         {then(outcome{hangs: true}, refused), 3, 2, 1020 * time.Millisecond, 1050 * time.Millisecond, false},
		"lost, then only refused":      {then(outcome{lost: true}, refused, refused, refused, refused, refused), 6, 1, 1300 * time.Millisecond, 1760 * time.Millisecond, true},
		"no such queue":                {always(outcome{status: 400, code: "com.amazonaws.sqs#QueueDoesNotExist"}), 1, 0, 0, 0, true},
		"access is denied":             {always(outcome{status: 403, code: "AccessDeniedException"}), 1, 0, 0, 0, true},
		"wrong credentials":            {always(outcome{status: 400, code: "UnrecognizedClientException"}), 1, 0, 0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := &slowQueue{answer: tt.answer}
				began := time.Now()
				err := q.open().Send(t.Context(), job, 0)
				took := time.Since(began)
				synctest.Wait()
				if err != nil && strings.Contains(err.Error(), "mod") {
					t.Errorf("the job is in the error: %v", err)
				}
				if (err != nil) != tt.fails || q.sends != tt.sends || q.copies != tt.copies {
					t.Errorf("%v after %d sends, %d of them taken, want an error: %v, %d and %d", err, q.sends, q.copies, tt.fails, tt.sends, tt.copies)
				}
				if took < tt.least || took > tt.most {
					t.Errorf("Send took %v, want %v to %v", took, tt.least, tt.most)
				}
			})
		})
	}
}

// If the function has little time left, the copy follows after half of it, so that its
// answer can still come. Send ends 100 ms before the deadline, and sends nothing afterwards.
func TestSendEndsBeforeTheDeadline(t *testing.T) {
	for name, tt := range map[string]struct {
		answer func(n int) outcome
		takes  time.Duration
		fails  bool
	}{
		"the copy is answered": {func(n int) outcome { return outcome{hangs: n == 1, after: 200 * time.Millisecond} }, 500 * time.Millisecond, false},
		"no answer":            {func(int) outcome { return outcome{hangs: true} }, 600 * time.Millisecond, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := &slowQueue{answer: tt.answer}
				queue := q.open()
				ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
				defer cancel()
				began := time.Now()
				if err := queue.Send(ctx, job, 0); (err != nil) != tt.fails || time.Since(began) != tt.takes {
					t.Errorf("%v after %v of 700ms, want an error: %v, after %v", err, time.Since(began), tt.fails, tt.takes)
				}
				cancel()
				err := queue.Send(ctx, job, 0)
				synctest.Wait()
				if !errors.Is(err, context.Canceled) || q.sends != 2 {
					t.Errorf("%v after %d sends, want none after the deadline", err, q.sends)
				}
			})
		})
	}
}

// Six jobs at once leave connections open, which are dead afterwards. The next job finds
// one of them, and its copy must not find another one. A send that ends can close its
// connection, so two jobs would not be enough.
func TestACopyHasANewConnection(t *testing.T) {
	t.Parallel()
	const jobs = 6
	testkit.Retry(t, func(t testing.TB) {
		var dead sync.Map // the addresses of the first connections
		var first atomic.Int32
		all := make(chan struct{})
		server := testkit.Serve(t, func(w http.ResponseWriter, r *http.Request) {
			var message struct{ MessageBody string }
			testkit.NoError(t, json.NewDecoder(r.Body).Decode(&message))
			if _, ok := dead.Load(r.RemoteAddr); ok {
				<-r.Context().Done()
				return
			}
			if message.MessageBody != stored {
				dead.Store(r.RemoteAddr, true)
				if first.Add(1) == jobs {
					close(all)
				}
				<-all
			}
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			_, _ = io.WriteString(w, taken(message.MessageBody))
		})
		cfg := dynamotest.Config(server.URL)
		cfg.HTTPClient = awshttp.NewBuildableClient()
		queue := New(cfg, server.URL+"/q")
		var sent sync.WaitGroup
		for range jobs {
			other := job
			other.RequestID = "first"
			sent.Go(func() {
				testkit.NoError(t, queue.Send(t.Context(), other, 0))
			})
		}
		if sent.Wait(); t.Failed() {
			return
		}
		time.Sleep(100 * time.Millisecond) // until they are idle; otherwise the next job dials, and leaves a new one
		if err := queue.Send(t.Context(), job, 0); err != nil {
			t.Errorf("%v, want an answer on a new connection", err)
		}
	})
}
