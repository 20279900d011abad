package lambdafn_test

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

// On AWS, DynamoDB is asked over TLS. A guard uses HTTP/1.1, even if the server
// offers HTTP/2. It sends a request only if it can verify the server's identity.
func TestADecisionOverTLS(t *testing.T) {
	t.Parallel()
	testkit.Retry(t, func(t testing.TB) { // a handshake must end before the attempt does
		r := newRig(t)
		plain, err := url.Parse(r.proxy.URL())
		if err != nil {
			t.Fatal(err)
		}
		table := httputil.NewSingleHostReverseProxy(plain)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if q.Proto != "HTTP/1.1" {
				t.Errorf("a request with %s, want HTTP/1.1", q.Proto)
			}
			table.ServeHTTP(w, q)
		}))
		server.EnableHTTP2 = true
		server.Config.ErrorLog = log.New(io.Discard, "", 0) // of the caller who does not know the authority
		server.StartTLS()
		t.Cleanup(server.Close)
		authority := filepath.Join(t.TempDir(), "ca.pem")
		if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
			t.Fatal(err)
		}

		i := r.start(t, "posts-guard", "AWS_ENDPOINT_URL_DYNAMODB="+server.URL, "AWS_CA_BUNDLE="+authority)
		if a, _ := ask(t, i, event("create_post")); a.Reason != "ok" || a.ActivityCount != 1 {
			t.Errorf("%+v, want a counted action\n%s", a, i.Logs())
		}
		if counts := r.proxy.Counts(); counts["UpdateItem"] != 1 {
			t.Errorf("requests %v, want one UpdateItem", counts)
		}

		i = r.start(t, "posts-guard", "AWS_ENDPOINT_URL_DYNAMODB="+server.URL, "DECISION_TIMEOUT=2s")
		if a, _ := ask(t, i, event("create_post")); a.Reason != "unavailable" || !strings.Contains(i.Logs(), "certificate") {
			t.Errorf("an unknown certificate: %+v, want unavailable, and the cause in the log\n%s", a, i.Logs())
		}
		if counts := r.proxy.Counts(); counts["UpdateItem"] != 1 {
			t.Errorf("requests %v, want none to an unknown server", counts)
		}
	})
}
