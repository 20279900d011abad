package lambdafn_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

const canary = "canary-user-4711"

// A rig runs the deployed binaries with a table behind a proxy.
type rig struct {
	proxy *dynamotest.Proxy
	table string
}

func newRig(t testing.TB) rig {
	t.Helper()
	return rig{dynamotest.NewProxy(t), dynamotest.Table(t)}
}

// start starts an instance of a function on the rig's table. When the test
// ends, it checks that the log contains no user id.
func (r rig) start(t testing.TB, function string, env ...string) *lambdatest.Instance {
	t.Helper()
	env = append([]string{
		"TABLE_NAME=" + r.table, "AWS_ENDPOINT_URL_DYNAMODB=" + r.proxy.URL(),
		"DECISION_TIMEOUT=5s", // so that a slow test machine causes no outage
	}, env...)
	i := lambdatest.Start(t, lambdatest.Build(t, "./functions/"+function), env...)
	t.Cleanup(func() {
		if strings.Contains(i.Logs(), canary) {
			t.Errorf("a user id in the log of %s:\n%s", function, i.Logs())
		}
		checkMetrics(t, i.Logs())
	})
	return i
}

type answer struct {
	Allowed       bool
	Reason        string
	Activity      string
	Limit         int64
	ActivityCount int64
	WaitTime      int64
	Message       string
	At            int64
	RequestID     string
}

func ask(t testing.TB, i *lambdatest.Instance, payload string) (a answer, errorType string) {
	t.Helper()
	r := i.Invoke(t, payload)
	if r.ErrorType == "" {
		if err := json.Unmarshal(r.Payload, &a); err != nil {
			t.Fatalf("%v: %s", err, r.Payload)
		}
	}
	return a, r.ErrorType
}

func event(activity string) string {
	return fmt.Sprintf(`{"userId": %q, "activity": %q}`, canary, activity)
}
