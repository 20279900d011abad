package lambdafn

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// Settings are what a guard reads from its environment, except the table's name
// and the namespace of the metrics.
type Settings struct {
	Mode            guard.Mode
	DenyOutage      bool
	RefusalIsError  bool
	DecisionTimeout time.Duration
	BypassRoles     []string
}

// Handler returns a handler that counts in store. It has no log, no metrics and
// no live limits.
func (s *Settings) Handler(g limits.Guard, store ratelimit.Store) *guard.Handler {
	return &guard.Handler{
		Guard:   g,
		Limiter: &ratelimit.Limiter{Store: store, Memory: ratelimit.NewMemory(readMemory()), Timeout: s.DecisionTimeout},
		Mode:    s.Mode, DenyOutage: s.DenyOutage, RefusalIsError: s.RefusalIsError, BypassRoles: s.BypassRoles,
	}
}

// ReadSettings reads the settings. Its error names the variable that cannot be
// read. An empty variable counts as unset. BYPASS_ROLES is different: empty
// means that nobody bypasses.
func ReadSettings() (s Settings, err error) {
	choice := func(name string, choices ...string) string {
		v := cmp.Or(os.Getenv(name), choices[0])
		if !slices.Contains(choices, v) {
			err = fmt.Errorf("%s is %q, want %s", name, v, strings.Join(choices, " or "))
		}
		return v
	}
	s.Mode = guard.Mode(choice("MODE", string(guard.Enforce), string(guard.Shadow), string(guard.Off)))
	s.DenyOutage = choice("ON_OUTAGE", "allow", "deny") == "deny"
	s.RefusalIsError = choice("ON_LIMIT", "answer", "error") == "error"
	if err != nil {
		return s, err
	}
	timeout := cmp.Or(os.Getenv("DECISION_TIMEOUT"), "1s")
	s.DecisionTimeout, err = time.ParseDuration(timeout)
	if err != nil || s.DecisionTimeout <= 0 || s.DecisionTimeout > policy.Late {
		return s, fmt.Errorf("DECISION_TIMEOUT is %q, want a duration such as 250ms, at most %v", timeout, policy.Late)
	}
	s.BypassRoles = BypassRoles()
	return s, nil
}

// BypassRoles reads the roles that are never limited. An empty variable means
// that there are none.
func BypassRoles() (all []string) {
	roles, set := os.LookupEnv("BYPASS_ROLES")
	if !set {
		roles = "admin"
	}
	for role := range strings.SplitSeq(roles, ",") {
		if role = strings.TrimSpace(role); role != "" {
			all = append(all, role)
		}
	}
	return all
}

// readMemory returns how many bytes the [ratelimit.Memory] may take: a third of
// the function's memory, and at most [ratelimit.DefaultMemory].
func readMemory() int {
	megabytes, err := strconv.Atoi(os.Getenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE")) // Lambda sets it
	if err != nil || megabytes < 1 {
		return ratelimit.DefaultMemory
	}
	return min(ratelimit.DefaultMemory, megabytes<<20/3)
}

// readNamespace reads the namespace of the metrics in CloudWatch.
func readNamespace() string { return cmp.Or(os.Getenv("POWERTOOLS_METRICS_NAMESPACE"), "Guards") }

// TableName returns the name of a table in DynamoDB. An empty name means
// rateLimit. The error of a malformed name begins with setting, which is where
// the name stands.
func TableName(setting, name string) (string, error) {
	name = cmp.Or(name, "rateLimit")
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
	if len(name) < 3 || len(name) > 255 || strings.ContainsFunc(name, func(c rune) bool { return !strings.ContainsRune(letters, c) }) {
		return "", fmt.Errorf("%s is %q, want 3 to 255 letters, digits, dots, hyphens and underscores", setting, name)
	}
	return name, nil
}
