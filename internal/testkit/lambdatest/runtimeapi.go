package lambdatest

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	smithyrand "github.com/aws/smithy-go/rand"
)

// runtimeAPI is the HTTP server that a function asks for work. It implements
// the part of Lambda's Runtime API that the Go runtime uses, and the part of the
// Extensions API that lambda.WithEnableSIGTERM needs.
type runtimeAPI struct {
	arn      string
	queue    chan *work    // unbuffered, so a job leaves it only when the function asks for work
	asked    chan struct{} // closed when the first request for work arrives
	askOnce  sync.Once
	askedAt  time.Time // set before asked is closed
	stopping chan struct{}
	sigterm  atomic.Bool // the function wants SIGTERM before it is killed

	mu      sync.Mutex
	current *work // the last job that the function got
}

// work is one invocation, from its start to its result.
type work struct {
	Invocation
	id     string
	taken  time.Time
	result *Result
	over   chan struct{} // closed when the function has answered and asks for the next job
}

func newRuntimeAPI(arn string) *runtimeAPI {
	return &runtimeAPI{
		arn:      arn,
		queue:    make(chan *work),
		asked:    make(chan struct{}),
		stopping: make(chan struct{}),
	}
}

func (a *runtimeAPI) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", a.next)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/{kind}", a.answer)
	mux.HandleFunc("POST /2020-01-01/extension/register", a.register)
	mux.HandleFunc("GET /2020-01-01/extension/event/next", a.noEvent)
	return mux
}

// next handles a request for work. It waits for a job.
func (a *runtimeAPI) next(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	a.askOnce.Do(func() { a.askedAt = now; close(a.asked) })
	a.finishCurrent()
	select {
	case job := <-a.queue:
		a.handOver(w, job)
	case <-a.stopping:
	case <-r.Context().Done():
	}
}

// finishCurrent ends the last invocation. As on Lambda, an invocation ends when
// the function asks for the next one, and not when it answers.
func (a *runtimeAPI) finishCurrent() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current != nil && a.current.result != nil {
		close(a.current.over)
		a.current = nil
	}
}

// handOver sends a job to the function.
func (a *runtimeAPI) handOver(w http.ResponseWriter, job *work) {
	a.mu.Lock()
	a.current = job
	job.taken = time.Now()
	deadline := job.taken.Add(job.Timeout)
	a.mu.Unlock()

	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Lambda-Runtime-Aws-Request-Id", job.id)
	h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(deadline.UnixMilli(), 10))
	h.Set("Lambda-Runtime-Invoked-Function-Arn", a.arn)
	h.Set("Lambda-Runtime-Trace-Id", newTraceID(job.taken))
	_, _ = w.Write(job.Payload) // an error means that the function has exited, which await reports
}

// answer records the result of the current job. Its kind is response or error.
func (a *runtimeAPI) answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the function died while it sent its answer
	}
	result := Result{Payload: body}
	if r.PathValue("kind") == "error" {
		var failed struct {
			Type    string `json:"errorType"`
			Message string `json:"errorMessage"`
		}
		_ = json.Unmarshal(body, &failed)
		result.ErrorType, result.ErrorMessage = cmp.Or(failed.Type, "Unhandled"), failed.Message
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current == nil || a.current.id != r.PathValue("id") || a.current.result != nil {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"errorMessage":"this invocation is not running","errorType":"InvalidRequestID"}`)
		return
	}
	result.Duration = time.Since(a.current.taken)
	a.current.result = &result
	w.WriteHeader(http.StatusAccepted) // a Go function exits on any other status
}

// register handles the registration of an extension, which asks for SIGTERM.
func (a *runtimeAPI) register(w http.ResponseWriter, _ *http.Request) {
	a.sigterm.Store(true)
	w.Header().Set("Lambda-Extension-Identifier", newUUID())
}

// noEvent keeps an extension waiting, because there are no events for it.
func (a *runtimeAPI) noEvent(_ http.ResponseWriter, r *http.Request) {
	select {
	case <-a.stopping:
	case <-r.Context().Done():
	}
}

// resultOf returns the result of job, or nil if the function has not answered.
func (a *runtimeAPI) resultOf(job *work) *Result {
	a.mu.Lock()
	defer a.mu.Unlock()
	return job.result
}

func newUUID() string {
	id, _ := smithyrand.NewUUID(rand.Reader).GetUUID() // rand.Reader never fails
	return id
}

func newTraceID(at time.Time) string {
	return fmt.Sprintf("Root=1-%08x-%x;Parent=%x;Sampled=0", at.Unix(), randomBytes(12), randomBytes(8))
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // rand.Read never fails
	return b
}
