package lambdafn_test

import (
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

func TestEnvironmentThatCannotBeRead(t *testing.T) {
	binary := lambdatest.Build(t, "./functions/posts-guard")
	for setting, says := range map[string]string{
		"MODE=of":               `MODE is "of", want enforce or shadow or off`,
		"ON_OUTAGE=Allow":       `ON_OUTAGE is "Allow", want allow or deny`,
		"ON_LIMIT=exception":    `ON_LIMIT is "exception", want answer or error`,
		"DECISION_TIMEOUT=fast": `DECISION_TIMEOUT is "fast", want a duration such as 250ms, at most 5s`,
		"DECISION_TIMEOUT=6s":   `DECISION_TIMEOUT is "6s"`,
		"DECISION_TIMEOUT=0s":   `DECISION_TIMEOUT is "0s"`,
		"METRICS=none":          `METRICS is "none", want activity or guard or off`,
		"TABLE_NAME=rate limit": `TABLE_NAME is "rate limit"`,
	} {
		exit := lambdatest.Start(t, binary, setting).Exit(t)
		if exit.Code != 1 || !strings.Contains(exit.Logs, says) {
			t.Errorf("%s: %+v, want status 1 and %s", setting, exit, says)
		}
	}
	// Variables that cleanup does not read do not stop it.
	lambdatest.Start(t, lambdatest.Build(t, "./functions/cleanup"), "MODE=of", "ON_OUTAGE=Allow", "ON_LIMIT=exception", "DECISION_TIMEOUT=fast", "METRICS=none").Ready(t)
	exit := lambdatest.Start(t, lambdatest.Build(t, "./functions/cleanup"), "TABLE_NAME=a/b").Exit(t)
	if exit.Code != 1 || !strings.Contains(exit.Logs, `cleanup: TABLE_NAME is "a/b"`) {
		t.Errorf("cleanup with a name that no table has: %+v, want status 1", exit)
	}
}
