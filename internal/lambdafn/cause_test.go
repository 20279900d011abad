package lambdafn_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// operating.md has a query that groups the outages in the log by their cause, and
// lists the causes. A cause must not contain what differs each time, such as the
// id of a request.
func TestTheCausesOfOutagesCanBeCounted(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	query := regexp.MustCompile("`filter message = \"table unavailable\" \\| parse error /(.+)/ \\| stats count\\(\\) by cause`").FindSubmatch(document)
	if query == nil {
		t.Fatal("docs/operating.md has no query for the causes of outages")
	}
	cause := regexp.MustCompile(string(query[1]))
	for fault, want := range map[dynamotest.Fault]string{
		dynamotest.Throttle: "the table is throttled", dynamotest.AccessDenied: "access to the table is denied", dynamotest.HangBefore: "the table did not answer in time",
	} {
		if !strings.Contains(string(document), "| "+want+" | ") {
			t.Errorf("docs/operating.md does not list %q", want)
		}
		r := newRig(t)
		i := r.start(t, "posts-guard")
		r.proxy.Fail(math.MaxInt, fault)
		for user := range 3 {
			i.Invoke(t, fmt.Sprintf(`{"userId": "u%d", "activity": "create_post"}`, user))
		}
		i.Stop()
		lines := 0
		for line := range strings.Lines(i.Logs()) {
			var entry struct{ Msg, Message, Error string }
			if json.Unmarshal([]byte(line), &entry) != nil || entry.Msg+entry.Message != "table unavailable" {
				continue
			}
			lines++
			if got := cause.FindStringSubmatch(entry.Error); got == nil || got[1] != want {
				t.Errorf("%s: the cause is %q, want %s: %s", fault, got, want, line)
			}
		}
		if lines == 0 {
			t.Errorf("%s: no outage in the log:\n%s", fault, i.Logs())
		}
	}
}
