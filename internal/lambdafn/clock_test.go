package lambdafn_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
)

// The clock of DynamoDB is an hour ahead of this machine's, and it refuses each
// signature that is more than 5 minutes off. The first decision corrects that, and
// is decided by the table nevertheless.
func TestADecisionWithAWrongClock(t *testing.T) {
	t.Parallel()
	testkit.Retry(t, func(t testing.TB) { // an attempt that ends too early is sent again
		r := newRig(t)
		right, err := url.Parse(r.proxy.URL())
		if err != nil {
			t.Fatal(err)
		}
		table := httputil.NewSingleHostReverseProxy(right)
		table.ModifyResponse = func(answer *http.Response) error {
			answer.Header.Del("Date") // the server's handler sets its own
			return nil
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			now := time.Now().Add(time.Hour)
			w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
			signed, err := time.Parse("20060102T150405Z", q.Header.Get("X-Amz-Date"))
			if err != nil || now.Sub(signed).Abs() > 5*time.Minute {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = w.Write([]byte(`{"__type":"com.amazon.coral.service#InvalidSignatureException","message":"Signature expired"}`))
				return
			}
			table.ServeHTTP(w, q)
		}))
		t.Cleanup(server.Close)

		i := r.start(t, "posts-guard", "AWS_ENDPOINT_URL_DYNAMODB="+server.URL)
		inOneMinute(t, 20*time.Second)
		for n := range int64(3) {
			if a, _ := ask(t, i, event("create_post")); a.Reason != "ok" || a.ActivityCount != n+1 {
				t.Errorf("check %d: %+v, want it counted\n%s", n+1, a, i.Logs())
			}
		}
		if counts := r.proxy.Counts(); counts["UpdateItem"] != 3 {
			t.Errorf("requests %v, want one UpdateItem for each check", counts)
		}
	})
}
