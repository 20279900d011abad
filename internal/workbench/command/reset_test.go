package command

import (
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/limits"
)

// A reset that fails is never reported as done. If its answer is lost, the reset
// may be done. It is not sent again, because that could delete newer counts.
func TestAResetThatFailsIsReported(t *testing.T) {
	credentials(t)
	for _, tt := range []struct {
		fault   dynamotest.Fault
		message string
		counted string // in the table afterwards
	}{
		{dynamotest.AccessDenied, "guards: access to the table is denied\n", "create_post          1/10"},
		{dynamotest.Throttle, "guards: the table is throttled\n", "create_post          1/10"},
		{dynamotest.LoseResponse, "guards: the table did not answer in time\n", "create_post          0/10"},
		{dynamotest.Status500After, "guards: the table failed\n", "create_post          0/10"},
	} {
		p := dynamotest.NewProxy(t)
		where := []string{"--region", "us-east-1", "--endpoint", p.URL(), "--table", dynamotest.Table(t)}
		guards := func(command string) (status int, printed, noted string) {
			var out, log stream
			status = run(t.Context(), append(strings.Fields(command), where...), session{guards: limits.All, out: &out, err: &log, now: atPinned})
			return status, out.String(), log.String()
		}
		if status, _, log := guards("check create_post --user u1 --store dynamodb"); status != done {
			t.Fatalf("check: status %d, %s", status, log)
		}
		p.ResetCounts()
		p.Fail(1, tt.fault, "DeleteItem")
		if status, out, log := guards("reset create_post --user u1 --yes"); status != unreachable || out != "" || !strings.HasPrefix(log, tt.message) {
			t.Errorf("%s: status %d, %q, %q, want %d and %s", tt.fault, status, out, log, unreachable, tt.message)
		}
		if n := p.Counts()["DeleteItem"]; n != 1 {
			t.Errorf("%s: the reset was sent %d times", tt.fault, n)
		}
		if _, out, _ := guards("status --user u1"); !strings.Contains(out, tt.counted) {
			t.Errorf("%s: %s, want %s", tt.fault, out, tt.counted)
		}
	}
}
