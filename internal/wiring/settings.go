package wiring

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
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// Settings are what a guard reads from its environment, except the table's name
// and the namespace of the metrics.
type Settings struct {
	Mode            string
	DenyOutage      bool
	RefusalIsError  bool
	DecisionTimeout time.Duration
	BypassRoles     []string
	Metrics         Metrics
	ForApp          bool // decides in an app's process or beside it, and not in a guard's function
	InLambda        bool // ForApp, in the app's Lambda function: see inLambda
}

// Metrics are those that a guard writes.
type Metrics string

// The choices of METRICS.
const (
	ByActivity Metrics = "activity" // each for each activity of the guard
	ByGuard    Metrics = "guard"    // each once for the guard
	NoMetrics  Metrics = "off"
)

// Handler returns a handler that counts in store, without log, metrics and live limits.
func (s *Settings) Handler(g limits.Guard, store ratelimit.Store) *guard.Handler {
	return s.handler(g, s.limiter(store))
}

func (s *Settings) limiter(store ratelimit.Store) *ratelimit.Limiter {
	memory := ratelimit.NewMemory(readMemory(s.InLambda))
	memory.NoLeases = s.InLambda
	return &ratelimit.Limiter{Store: store, Memory: memory, Timeout: s.DecisionTimeout}
}

func (s *Settings) handler(g limits.Guard, limiter *ratelimit.Limiter) *guard.Handler {
	return &guard.Handler{
		Guard: g, Limiter: limiter,
		Mode: s.Mode, DenyOutage: s.DenyOutage, RefusalIsError: s.RefusalIsError, BypassRoles: s.BypassRoles,
		MeasureGuard: s.Metrics == ByGuard, JobsElsewhere: s.ForApp, Version: Version(),
	}
}

// The values of the settings that are one of a few. The first one is the default.
var (
	OnOutages      = []string{"allow", "deny"}
	MetricsChoices = []string{string(ByActivity), string(ByGuard), string(NoMetrics)}
)

// CheckChoice returns an error that begins with setting if its value is not one of the choices.
func CheckChoice(setting, value string, choices []string) error {
	if slices.Contains(choices, value) {
		return nil
	}
	return fmt.Errorf("%s is %q, want %s", setting, value, strings.Join(choices, " or "))
}

// An Environment has the settings of guards as variables whose names begin with a prefix.
type Environment string

const (
	// Function has the settings of a function: the variables of its template, without a prefix.
	Function Environment = ""

	// App has the settings of a limiter in an app and of an agent beside it. The plain names
	// belong to the app.
	App Environment = "GUARDS_"
)

// lookup returns a variable, and whether it is set.
func (e Environment) lookup(name string) (string, bool) { return os.LookupEnv(string(e) + name) }

// get returns a variable. An empty one counts as unset, and then the value is otherwise.
func (e Environment) get(name, otherwise string) string {
	v, _ := e.lookup(name)
	return cmp.Or(v, otherwise)
}

// Settings reads the settings. Its error names the variable that cannot be read. An empty
// variable counts as unset. BYPASS_ROLES is different: empty means that nobody bypasses.
// Only a function has ON_LIMIT: elsewhere a refusal is always a decision.
func (e Environment) Settings() (s Settings, err error) {
	choice := func(name string, choices []string) string {
		v := e.get(name, choices[0])
		if wrong := CheckChoice(string(e)+name, v, choices); wrong != nil {
			err = wrong
		}
		return v
	}
	s.Mode = choice("MODE", live.Modes)
	s.DenyOutage = choice("ON_OUTAGE", OnOutages) == "deny"
	if e == Function {
		s.RefusalIsError = choice("ON_LIMIT", []string{"answer", "error"}) == "error"
	}
	s.Metrics = Metrics(choice("METRICS", MetricsChoices))
	if err != nil {
		return s, err
	}
	timeout := e.get("DECISION_TIMEOUT", "1s")
	if s.DecisionTimeout, err = time.ParseDuration(timeout); err != nil {
		return s, wrongTimeout(string(e)+"DECISION_TIMEOUT", timeout)
	}
	s.BypassRoles = e.BypassRoles()
	s.ForApp = e != Function
	s.InLambda = s.ForApp && lambdaMemory() != 0
	return s, CheckTimeout(string(e)+"DECISION_TIMEOUT", s.DecisionTimeout)
}

// CheckTimeout returns an error that begins with setting if a decision can't take this time.
func CheckTimeout(setting string, timeout time.Duration) error {
	if timeout <= 0 || timeout > policy.Late {
		return wrongTimeout(setting, timeout.String())
	}
	return nil
}

func wrongTimeout(setting, value string) error {
	return fmt.Errorf("%s is %q, want a duration such as 250ms, at most %v", setting, value, policy.Late)
}

// BypassRoles reads the roles that are never limited. An empty variable means none.
func (e Environment) BypassRoles() (all []string) {
	roles, set := e.lookup("BYPASS_ROLES")
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

// Table reads the name of the table. The default is rateLimit.
func (e Environment) Table() (string, error) {
	return TableName(string(e)+"TABLE_NAME", e.get("TABLE_NAME", ""))
}

// Namespace reads the namespace of the metrics in CloudWatch. A function shares the variable
// with AWS's Powertools.
func (e Environment) Namespace() string {
	if e == Function {
		return e.get("POWERTOOLS_METRICS_NAMESPACE", "Guards")
	}
	return e.get("METRICS_NAMESPACE", "Guards")
}

// inLambda is how many bytes a [ratelimit.Memory] takes in an app's Lambda function. Such an app
// has many environments, each with few users, and pays for the memory. There it takes no
// leases, because Lambda may end an environment at any time, or start many from one snapshot.
const inLambda = 8 << 20

// readMemory returns how many bytes the [ratelimit.Memory] may take. App reports whether the
// Lambda function is an app's. A guard's own function gives it a third of its memory, and at most
// [ratelimit.DefaultMemory]. Outside Lambda, it gets just that.
func readMemory(app bool) int {
	switch all := lambdaMemory(); {
	case all == 0:
		return ratelimit.DefaultMemory
	case app:
		return inLambda
	default:
		return min(ratelimit.DefaultMemory, all/3)
	}
}

// lambdaMemory returns how many bytes this Lambda function has; 0: this is none.
func lambdaMemory() int {
	megabytes, err := strconv.Atoi(os.Getenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE")) // Lambda sets it
	if err != nil {
		return 0
	}
	return max(0, megabytes) << 20
}

// TableName returns the name of a table in DynamoDB. An empty name means
// rateLimit. The error of a malformed name begins with setting, where it stands.
func TableName(setting, name string) (string, error) {
	name = cmp.Or(name, "rateLimit")
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
	if len(name) < 3 || len(name) > 255 || strings.ContainsFunc(name, func(c rune) bool { return !strings.ContainsRune(letters, c) }) {
		return "", fmt.Errorf("%s is %q, want 3 to 255 letters, digits, dots, hyphens and underscores", setting, name)
	}
	return name, nil
}
