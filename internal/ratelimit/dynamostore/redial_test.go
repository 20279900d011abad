package dynamostore_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/cric-talk/guards/internal/ratelimit"
	. "github.com/cric-talk/guards/internal/ratelimit/dynamostore"
)

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
