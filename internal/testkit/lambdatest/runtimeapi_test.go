package lambdatest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A real Go function never sends an unexpected answer, so this test sends HTTP
// requests itself.
func TestEachInvocationAcceptsOneAnswer(t *testing.T) {
	api := newRuntimeAPI("arn")
	post := func(path string) int {
		w := httptest.NewRecorder()
		api.handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/2018-06-01/runtime/invocation/"+path, strings.NewReader("{}")))
		return w.Code
	}
	job := &work{Invocation: Invocation{RequestID: "id"}, over: make(chan struct{})}
	if got := post("id/response"); got != http.StatusBadRequest {
		t.Errorf("an answer without an invocation: %d, want 400", got)
	}
	api.handOver(httptest.NewRecorder(), job)
	for _, step := range []struct {
		path string
		want int
	}{
		{"other/response", http.StatusBadRequest},
		{"id/error", http.StatusAccepted}, // an error without a type
		{"id/response", http.StatusBadRequest},
	} {
		if got := post(step.path); got != step.want {
			t.Errorf("POST %s: %d, want %d", step.path, got, step.want)
		}
	}
	if got := api.resultOf(job); got == nil || got.ErrorType != "Unhandled" {
		t.Errorf("got %+v, want Unhandled", got)
	}
}
