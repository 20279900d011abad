package wiring_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	. "github.com/cric-talk/guards/internal/wiring"
)

// In a function of its own, the memory of decisions takes at most 64 MB, and at most a third of
// the function's. In an app's function it takes 8 MB and no leases.
func TestMemoryOfDecisions(t *testing.T) {
	for size, want := range map[string]int{
		"": 64 << 20, "x": 64 << 20, "0": 64 << 20, "1": 1 << 20 / 3, "128": 128 << 20 / 3, "192": 64 << 20, "256": 64 << 20, "10240": 64 << 20,
	} {
		t.Setenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", size)
		inLambda := size != "" && size != "x" && size != "0"
		inApp := want
		if inLambda {
			inApp = 8 << 20
		}
		for env, want := range map[Environment]int{Function: want, "GUARDS_": inApp} {
			settings, err := env.Settings()
			if err != nil {
				t.Fatal(err)
			}
			without := In(new(memstore.Store), nil, settings).Limiter.Memory.NoLeases
			if got := ReadMemory(settings.InLambda); got != want || without != (inLambda && env != Function) {
				t.Errorf("%q with %q MB: %d bytes, without leases %v, want %d", env, size, got, without, want)
			}
		}
	}
}

// An empty variable counts as unset. BYPASS_ROLES is different: empty means no role.
func TestSettings(t *testing.T) {
	admin := []string{"admin"}
	for env, want := range map[string]Settings{
		"": {Mode: live.Enforce, DecisionTimeout: time.Second, BypassRoles: admin, Metrics: ByActivity},
		"MODE= ON_OUTAGE= ON_LIMIT= DECISION_TIMEOUT=": {Mode: live.Enforce, DecisionTimeout: time.Second, BypassRoles: admin, Metrics: ByActivity},
		"MODE=shadow ON_OUTAGE=deny ON_LIMIT=error":    {Mode: live.Shadow, DenyOutage: true, RefusalIsError: true, DecisionTimeout: time.Second, BypassRoles: admin, Metrics: ByActivity},
		"MODE=off ON_OUTAGE=allow ON_LIMIT=answer":     {Mode: live.Off, DecisionTimeout: time.Second, BypassRoles: admin, Metrics: ByActivity},
		"DECISION_TIMEOUT=5s":                          {Mode: live.Enforce, DecisionTimeout: 5 * time.Second, BypassRoles: admin, Metrics: ByActivity},
		"DECISION_TIMEOUT=1ns":                         {Mode: live.Enforce, DecisionTimeout: 1, BypassRoles: admin, Metrics: ByActivity},
		"BYPASS_ROLES=":                                {Mode: live.Enforce, DecisionTimeout: time.Second, Metrics: ByActivity},
		"BYPASS_ROLES=,root,staff,":                    {Mode: live.Enforce, DecisionTimeout: time.Second, BypassRoles: []string{"root", "staff"}, Metrics: ByActivity},
		"METRICS=guard":                                {Mode: live.Enforce, DecisionTimeout: time.Second, BypassRoles: admin, Metrics: ByGuard},
		"METRICS=off":                                  {Mode: live.Enforce, DecisionTimeout: time.Second, BypassRoles: admin, Metrics: NoMetrics},
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
		got, err := Function.Settings()
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v (-want +got):\n%s", env, err, diff)
		}
	}
}

// A limiter in an app's own process has variables of its own, because the plain names belong
// to the app. It has no ON_LIMIT.
func TestSettingsWithAPrefix(t *testing.T) {
	for name, value := range map[string]string{
		"MODE": "of", "ON_OUTAGE": "never", "TABLE_NAME": "a b", "POWERTOOLS_METRICS_NAMESPACE": "App", "ON_LIMIT": "error", "GUARDS_ON_LIMIT": "error",
		"GUARDS_MODE": "shadow", "GUARDS_ON_OUTAGE": "deny", "GUARDS_TABLE_NAME": "limits", "GUARDS_BYPASS_ROLES": "root", "GUARDS_METRICS": "guard", "GUARDS_DECISION_TIMEOUT": "250ms",
	} {
		t.Setenv(name, value)
	}
	const e Environment = "GUARDS_"
	got, err := e.Settings()
	want := Settings{Mode: live.Shadow, DenyOutage: true, DecisionTimeout: 250 * time.Millisecond, BypassRoles: []string{"root"}, Metrics: ByGuard, ForApp: true}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if table, err := e.Table(); table != "limits" || err != nil || e.Namespace() != "Guards" {
		t.Errorf("the table is %s, %v, and the namespace %s", table, err, e.Namespace())
	}
	t.Setenv("GUARDS_DECISION_TIMEOUT", "fast")
	if _, err := e.Settings(); err == nil || !strings.HasPrefix(err.Error(), `GUARDS_DECISION_TIMEOUT is "fast", want`) {
		t.Errorf("%v, want an error that names the variable", err)
	}
	t.Setenv("GUARDS_MODE", "of")
	if _, err := e.Settings(); err == nil || !strings.HasPrefix(err.Error(), `GUARDS_MODE is "of", want`) {
		t.Errorf("%v, want an error that names the variable", err)
	}
}

func TestTableName(t *testing.T) {
	for name, want := range map[string]string{
		"": "rateLimit", "abc": "abc", "Z_9-.": "Z_9-.", strings.Repeat("t", 255): strings.Repeat("t", 255),
		"ab": "", strings.Repeat("t", 256): "", "a/b": "", "tablé": "",
	} {
		if got, err := TableName("TABLE_NAME", name); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", name, got, err, want)
		}
	}
}
