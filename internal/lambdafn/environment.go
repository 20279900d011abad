package lambdafn

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cric-talk/guards/internal/guard"
)

// An environment is what a function reads of its variables.
type environment struct {
	table           string
	mode            guard.Mode
	denyOutage      bool
	refusalIsError  bool
	decisionTimeout time.Duration
	bypassRoles     []string
	namespace       string
}

// longestDecision is the most that DECISION_TIMEOUT takes.
const longestDecision = 5 * time.Second

// readEnvironment reads the variables, or says which can't be read. One that is
// empty is as one that is not set, but BYPASS_ROLES, which is then nobody.
func readEnvironment(lookup func(string) (string, bool)) (e environment, err error) {
	get := func(name, ordinary string) string {
		if v, _ := lookup(name); v != "" {
			return v
		}
		return ordinary
	}
	choice := func(name string, choices ...string) (v string) {
		v = get(name, choices[0])
		if slices.Contains(choices, v) {
			return v
		}
		err = fmt.Errorf("%s is %q, want %s", name, v, strings.Join(choices, " or "))
		return ""
	}
	if e.table, err = readTable(lookup); err != nil {
		return e, err
	}
	e.mode = guard.Mode(choice("MODE", string(guard.Enforce), string(guard.Shadow), string(guard.Off)))
	e.denyOutage = choice("ON_OUTAGE", "allow", "deny") == "deny"
	e.refusalIsError = choice("ON_LIMIT", "answer", "error") == "error"
	e.namespace = get("POWERTOOLS_METRICS_NAMESPACE", "Guards")
	if err != nil {
		return e, err
	}
	timeout := get("DECISION_TIMEOUT", "1s")
	e.decisionTimeout, err = time.ParseDuration(timeout)
	if err != nil || e.decisionTimeout <= 0 || e.decisionTimeout > longestDecision {
		return e, fmt.Errorf("DECISION_TIMEOUT is %q, want a duration such as 250ms, at most %v", timeout, longestDecision)
	}
	roles, set := lookup("BYPASS_ROLES")
	if !set {
		roles = "admin"
	}
	for role := range strings.SplitSeq(roles, ",") {
		if role = strings.TrimSpace(role); role != "" {
			e.bypassRoles = append(e.bypassRoles, role)
		}
	}
	return e, nil
}

// readTable reads the table's name.
func readTable(lookup func(string) (string, bool)) (string, error) {
	table, _ := lookup("TABLE_NAME")
	if table == "" {
		return "rateLimit", nil
	}
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
	if len(table) < 3 || len(table) > 255 || strings.ContainsFunc(table, func(c rune) bool { return !strings.ContainsRune(letters, c) }) {
		return "", fmt.Errorf("TABLE_NAME is %q, want 3 to 255 letters, digits, dots, hyphens and underscores", table)
	}
	return table, nil
}
