package lambdafn_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/lambdafn"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
)

// An empty variable counts as unset. BYPASS_ROLES is different: empty means no role.
func TestSettings(t *testing.T) {
	admin := []string{"admin"}
	for env, want := range map[string]lambdafn.Settings{
		"": {Mode: guard.Enforce, DecisionTimeout: time.Second, BypassRoles: admin, Metrics: lambdafn.ByActivity},
		"MODE= ON_OUTAGE= ON_LIMIT= DECISION_TIMEOUT=": {Mode: guard.Enforce, DecisionTimeout: time.Second, BypassRoles: admin, Metrics: lambdafn.ByActivity},
		"MODE=shadow ON_OUTAGE=deny ON_LIMIT=error":    {Mode: guard.Shadow, DenyOutage: true, RefusalIsError: true, DecisionTimeout: time.Second, BypassRoles: admin, Metrics: lambdafn.ByActivity},
		"MODE=off ON_OUTAGE=allow ON_LIMIT=answer":     {Mode: guard.Off, DecisionTimeout: time.Second, BypassRoles: admin, Metrics: lambdafn.ByActivity},
		"DECISION_TIMEOUT=5s":                          {Mode: guard.Enforce, DecisionTimeout: 5 * time.Second, BypassRoles: admin, Metrics: lambdafn.ByActivity},
		"DECISION_TIMEOUT=1ns":                         {Mode: guard.Enforce, DecisionTimeout: 1, BypassRoles: admin, Metrics: lambdafn.ByActivity},
		"BYPASS_ROLES=":                                {Mode: guard.Enforce, DecisionTimeout: time.Second, Metrics: lambdafn.ByActivity},
		"BYPASS_ROLES=,root,staff,":                    {Mode: guard.Enforce, DecisionTimeout: time.Second, BypassRoles: []string{"root", "staff"}, Metrics: lambdafn.ByActivity},
		"METRICS=guard":                                {Mode: guard.Enforce, DecisionTimeout: time.Second, BypassRoles: admin, Metrics: lambdafn.ByGuard},
		"METRICS=off":                                  {Mode: guard.Enforce, DecisionTimeout: time.Second, BypassRoles: admin, Metrics: lambdafn.NoMetrics},
	} {
		for _, name := range []string{"MODE", "ON_OUTAGE", "ON_LIMIT", "DECISION_TIMEOUT", "BYPASS_ROLES", "METRICS"} {
			t.Setenv(name, "") // restores the variable when the test ends
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
		for setting := range strings.FieldsSeq(env) {
			name, value, _ := strings.Cut(setting, "=")
			t.Setenv(name, value)
		}
		got, err := lambdafn.ReadSettings()
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v (-want +got):\n%s", env, err, diff)
		}
	}
}

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

func TestTableName(t *testing.T) {
	for name, want := range map[string]string{
		"": "rateLimit", "abc": "abc", "Z_9-.": "Z_9-.", strings.Repeat("t", 255): strings.Repeat("t", 255),
		"ab": "", strings.Repeat("t", 256): "", "a/b": "", "tablé": "",
	} {
		if got, err := lambdafn.TableName("TABLE_NAME", name); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", name, got, err, want)
		}
	}
}
