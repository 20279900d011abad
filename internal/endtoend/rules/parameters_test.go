package rules_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/wiring"
)

// accepts returns a function that reports whether CloudFormation accepts a value for a parameter of template.yaml.
func accepts(t *testing.T, parameter string) func(value string) bool {
	t.Helper()
	p := at(whole(t), "Parameters."+parameter)
	if list, ok := at(p, "AllowedValues").([]any); ok {
		return func(value string) bool { return slices.Contains(list, any(value)) }
	}
	pattern, ok := at(p, "AllowedPattern").(string)
	if !ok || at(p, "ConstraintDescription") == nil {
		t.Fatalf("parameter %s has no AllowedValues, and no AllowedPattern with a ConstraintDescription", parameter)
	}
	return regexp.MustCompile(pattern).MatchString
}

// Each row follows a description. The lists have values at both sides of each bound.
func TestParametersAcceptWhatTheyDescribe(t *testing.T) {
	const digits, word = "123456789012", "abcdefghij"
	for parameter, values := range map[string]struct{ accepted, refused []string }{
		"NamePrefix": {[]string{"", "dev-", "A_1-", word + word + "-"}, []string{"dev", "-", word + word + "a-", "d v-", "ä-"}},
		"TableName": {
			[]string{"rateLimit", "a.b", "A-1_", strings.Repeat("t", 255)},
			[]string{"", "ab", "rate limit", "a/b", strings.Repeat("t", 256)},
		},
		"Mode":        {[]string{"enforce", "shadow", "off"}, []string{"", "on", "Enforce"}},
		"OnOutage":    {[]string{"allow", "deny"}, []string{"", "error"}},
		"Metrics":     {[]string{"activity", "guard", "off"}, []string{"", "on", "true"}},
		"Alarms":      {[]string{"true", "false"}, []string{"", "off"}},
		"Dashboard":   {[]string{"true", "false"}, []string{"", "off"}},
		"OnLimit":     {[]string{"answer", "error"}, []string{"", "deny"}},
		"BypassRoles": {[]string{"", "admin", "admin,staff"}, []string{",", "admin,", "admin, staff", "admin,,staff"}},
		"CleanupSchedule": {
			[]string{"rate(1 minute)", "rate(2 minutes)", "rate(9 minutes)", "rate(10 minutes)", "rate(29 minutes)", "rate(30 minutes)"},
			[]string{"", "rate(0 minutes)", "rate(1 minutes)", "rate(2 minute)", "rate(31 minutes)", "rate(300 minutes)", "rate(1 hour)", "cron(* * * * ? *)"},
		},
		"AlarmTopicArn": {
			[]string{"", "arn:aws:sns:eu-west-1:" + digits + ":alarms", "arn:aws-us-gov:sns:us-gov-west-1:" + digits + ":a_b-C"},
			[]string{"alarms", "arn:aws:sqs:eu-west-1:" + digits + ":alarms", "arn:aws:sns:eu-west-1:12345:alarms", "arn:aws:sns:eu-west-1:" + digits + ":"},
		},
		"UrlPrincipal": {
			[]string{"", digits, "arn:aws:iam::" + digits + ":role/backend", "arn:aws:iam::" + digits + ":user/path/to/me"},
			[]string{
				"*", "12345", "arn:aws:iam::" + digits + ":root", "arn:aws:iam::" + digits + ":role/*", "arn:aws:iam::" + digits + ":group/admins",
				"arn:aws:sts::" + digits + ":assumed-role/backend/session", "lambda.amazonaws.com",
			},
		},
	} {
		accepts := accepts(t, parameter)
		for _, value := range values.accepted {
			if !accepts(value) {
				t.Errorf("%s refuses %q, want it accepted", parameter, value)
			}
		}
		for _, value := range values.refused {
			if accepts(value) {
				t.Errorf("%s accepts %q, want it refused", parameter, value)
			}
		}
	}
}

// The functions start with each value that a parameter accepts. DecisionTimeout accepts durations of up to 5s, written in
// milliseconds, or in seconds with up to three decimals.
func TestParametersAcceptOnlyWhatGuardsRead(t *testing.T) {
	timeout, table := accepts(t, "DecisionTimeout"), accepts(t, "TableName")
	for n := range 7000 {
		for _, value := range []string{
			fmt.Sprintf("%dms", n), fmt.Sprintf("%ds", n), fmt.Sprintf("%d.%ds", n/1000, n%1000/100), fmt.Sprintf("%d.%02ds", n/1000, n%1000/10),
			fmt.Sprintf("%d.%03ds", n/1000, n%1000), fmt.Sprintf("%dm", n), fmt.Sprintf("%d", n), fmt.Sprintf("-%dms", n),
		} {
			if !timeout(value) {
				continue
			}
			t.Setenv("DECISION_TIMEOUT", value)
			if _, err := wiring.Function.Settings(); err != nil {
				t.Errorf("DecisionTimeout accepts %q, and a guard does not: %v", value, err)
			}
		}
	}
	for _, value := range []string{"1ms", "250ms", "999ms", "1000ms", "5000ms", "1s", "1.5s", "4.999s", "5s"} {
		if !timeout(value) {
			t.Errorf("DecisionTimeout refuses %q, want durations of up to 5s", value)
		}
	}
	for _, name := range []string{"ab", "abc", "a b", "a/b", "ä-ä", "a.b-c_D", strings.Repeat("t", 255), strings.Repeat("t", 256)} {
		if _, err := wiring.TableName("TABLE_NAME", name); (err == nil) != table(name) {
			t.Errorf("TableName and the functions differ about %.20q: %v", name, err)
		}
	}
}

// Without parameters, the functions have the settings that they have without variables.
func TestParametersHaveTheDefaultsOfTheFunctions(t *testing.T) {
	variables := at(whole(t), "Globals.Function.Environment.Variables").(map[string]any)
	settings := func() wiring.Settings {
		return testkit.Must(wiring.Function.Settings())(t)
	}
	unset := settings()
	for variable, parameter := range map[string]string{
		"MODE": "Mode", "ON_OUTAGE": "OnOutage", "ON_LIMIT": "OnLimit", "DECISION_TIMEOUT": "DecisionTimeout", "BYPASS_ROLES": "BypassRoles",
		"METRICS": "Metrics",
	} {
		if variables[variable] != parameter {
			t.Errorf("%s is %v in template.yaml, want !Ref %s", variable, variables[variable], parameter)
		}
		t.Setenv(variable, fmt.Sprint(at(whole(t), "Parameters."+parameter+".Default")))
	}
	if got := settings(); fmt.Sprint(got) != fmt.Sprint(unset) || got.DecisionTimeout != time.Second {
		t.Errorf("the defaults of the parameters are read as %+v, want %+v as without variables", got, unset)
	}
	if name, err := wiring.TableName("", ""); err != nil || name != at(whole(t), "Parameters.TableName.Default") {
		t.Errorf("the default of TableName is not %s as without TABLE_NAME", name)
	}
}

// deploying.md refers to template.yaml for the description and the default of each parameter.
func TestEachParameterHasADescriptionAndADefault(t *testing.T) {
	for name, p := range at(whole(t), "Parameters").(map[string]any) {
		if description, _ := at(p, "Description").(string); len(description) < 20 || at(p, "Default") == nil {
			t.Errorf("parameter %s has the description %q and the default %v", name, description, at(p, "Default"))
		}
		if at(p, "AllowedPattern") == nil && at(p, "AllowedValues") == nil && at(p, "MinValue") == nil {
			t.Errorf("parameter %s accepts any value", name)
		}
	}
}
