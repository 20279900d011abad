package dynamostore_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	. "github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// A recorder keeps the bytes of each request. The name of the table does not matter.
type recorder struct {
	aws.HTTPClient

	table string
	sent  *strings.Builder
}

func (r recorder) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(r.sent, req.Header.Get("X-Amz-Target"), strings.ReplaceAll(string(body), r.table, "rateLimit"))
	req.Body = io.NopCloser(bytes.NewReader(body))
	return r.HTTPClient.Do(req)
}

// The decisions of a limit that is not prepaid make the same requests, in the same bytes, as
// before there were prepaid limits. The file was written by the last version without them.
// Since then a bucket alone has the term of since, as one beside other limits, and a
// reservoir looks for ids that have moved, as a log does.
func TestOrdinaryDecisionsMakeTheSameRequests(t *testing.T) {
	table, sent := dynamotest.Table(t), new(strings.Builder)
	cfg := dynamotest.Config(dynamotest.Endpoint(t))
	cfg.HTTPClient = recorder{cfg.HTTPClient, table, sent}
	now := time.UnixMilli(1_700_000_040_000)
	for i, text := range []string{
		"2/1m", "10/12h", "log 2/1m", "log 100/12h", "sliding 2/1h", "bucket 2/1m burst 2", "bucket 1/5s", "reservoir 2/10s ahead 1m",
		"a: 2/1m, b: 9/1h", "a: 2/1m, b: log 5/1h", "a: sliding 2/1m, b: bucket 5/1m burst 3",
	} {
		l := &ratelimit.Limiter{Store: New(cfg, table), Timeout: time.Minute, Now: func() time.Time { return now }}
		ask := func(op ratelimit.Op, id string) {
			fmt.Fprintln(sent, "#", text, op, id)
			_, err := l.Decide(t.Context(), op, ratelimit.Request{UserID: fmt.Sprint("u", i), Activity: "act", Policy: policy.Must(text), Count: 1, ID: id})
			if err != nil {
				t.Fatal(text, op, id, err)
			}
		}
		ask(ratelimit.Check, "r1")
		ask(ratelimit.Check, "r1")
		now = now.Add(7 * time.Second)
		ask(ratelimit.Check, "r2")
		ask(ratelimit.Check, "r3")
		ask(ratelimit.Status, "r3")
		now = now.Add(31 * time.Second)
		ask(ratelimit.Check, "r4")
	}
	want, err := os.ReadFile("testdata/requests.txt")
	if err != nil {
		t.Fatal(err)
	}
	wanted, got := strings.Split(string(want), "\n"), strings.Split(sent.String(), "\n")
	if len(got) != len(wanted) {
		t.Fatalf("%d lines, want %d", len(got), len(wanted))
	}
	for i := range got {
		if got[i] != wanted[i] {
			t.Errorf("line %d of testdata/requests.txt:\n got %s\nwant %s", i+1, got[i], wanted[i])
		}
	}
}
