package client_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/cric-talk/guards/client"
)

// The SDK sends each attempt once. A connection that breaks in the middle of an
// answer is an outage.
func TestAttemptsByTheSDK(t *testing.T) {
	for name, tt := range map[string]struct {
		reply   http.HandlerFunc
		message string
	}{
		"an error of Lambda": {respond(http.StatusInternalServerError, "ServiceException", "{}"), "posts-guard did not answer: ServiceException"},
		"half of an answer": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`{"allowed":`))
		}, "posts-guard did not answer: the answer broke off"},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				tt.reply(w, r)
			}))
			defer server.Close()
			g := open(t, client.Options{
				Activities: activities,
				Client:     lambda.New(lambda.Options{Region: urlRegion, Credentials: anyKeys, BaseEndpoint: aws.String(server.URL)}),
				Attempts:   2, Timeout: 20 * time.Second, DecisionTimeout: 5 * time.Second,
			})
			_, err := g.Status(t.Context(), "create_post", client.Request{UserID: "u1"})
			if !errors.Is(err, client.ErrOutage) || !strings.HasPrefix(err.Error(), tt.message) || requests.Load() != 2 {
				t.Errorf("%v after %d requests, want %s after 2", err, requests.Load(), tt.message)
			}
		})
	}
}
