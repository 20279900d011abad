package terraform_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

// A declared module is what tofu show prints of one.
type declared struct {
	Variables map[string]struct {
		Type        any
		Description string
		Default     any
	}
	Outputs map[string]any
}

// show returns what tofu reads in a folder. It needs no provider.
func show(t *testing.T, folder string) declared {
	t.Helper()
	var printed struct {
		RootModule declared `json:"root_module"`
	}
	out := tofu(t, folder, "show", "-json", "-module=.")
	if err := json.Unmarshal([]byte(out), &printed); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return printed.RootModule
}

func TestEachParameterIsAVariable(t *testing.T) {
	module := show(t, moduleFolder(t))
	for name, p := range template(t).Parameters {
		want := map[string]string{"String": "string", "Number": "number"}[p.Type]
		if p.boolean() {
			want = "bool"
		}
		v, ok := module.Variables[snake(name)]
		if !ok || v.Type != any(want) || v.Default != nil || !strings.HasPrefix(v.Description, p.Description+" ") {
			t.Errorf("the variable for %s is %+v, want a %s with null as its default, and with the template's description", name, v, want)
		}
	}
	if _, ok := module.Variables["name_prefix"]; !ok {
		t.Error("there is no name_prefix: has this test read a module?")
	}
}

// Functions, layers and the names that differ are in maps.
func TestEachOutputIsAnOutput(t *testing.T) {
	module := show(t, moduleFolder(t))
	for name := range template(t).Outputs {
		if _, ok := module.Outputs[snake(name)]; !ok && !strings.HasPrefix(name, "AgentLayerArn") && !slices.Contains(functionOutputs(t), name) {
			t.Errorf("the module has no output %s", snake(name))
		}
	}
	for _, name := range []string{"outputs", "function_arns", "agent_layer_arns", "agent_environment"} {
		if _, ok := module.Outputs[name]; !ok {
			t.Errorf("the module has no output %s", name)
		}
	}
}

// The variables accept exactly what the template accepts.
func TestVariablesAcceptWhatTheTemplateAccepts(t *testing.T) {
	const account = "123456789012"
	texts := []string{
		"", "a", "ab", "abc", "dev", "dev-", "d v-", "rateLimit", "a/b", strings.Repeat("t", 255), strings.Repeat("t", 256),
		"1s", "5s", "6s", "1.5s", "250ms", "5001ms", "1m", "admin,staff", "admin, staff", ",",
		"rate(1 minute)", "rate(5 minutes)", "rate(31 minutes)", "rate(1 hour)", "${a}", "%{a}", `\`, `"`,
		"arn:aws:sns:eu-west-1:" + account + ":alarms", "arn:aws:sqs:eu-west-1:" + account + ":alarms",
		account, "arn:aws:iam::" + account + ":role/backend", "arn:aws:iam::" + account + ":root",
	}
	numbers := []string{"-1", "0", "1", "2", "30", "31", "10000", "10001", "43200", "43201"}
	folder := t.TempDir()
	copyFile(t, filepath.Join(moduleFolder(t), "parameters.tf"), folder)
	var runs strings.Builder
	count := map[bool]int{}
	for name, p := range template(t).Parameters {
		values := texts
		switch {
		case p.boolean():
			values = []string{"true", "false"}
		case p.Type == "Number":
			values = numbers
		case p.AllowedValues != nil:
			values = []string{"", "Allow", strings.ToLower(fmt.Sprint(p.AllowedValues[0])), "${a}"}
			for _, v := range p.AllowedValues {
				values = append(values, fmt.Sprint(v))
			}
		}
		for i, value := range values {
			accepted := p.accepts(t, value)
			count[accepted]++
			literal := value
			if p.Type == "String" && !p.boolean() {
				literal = strings.NewReplacer("${", "$${", "%{", "%%{").Replace(fmt.Sprintf("%q", value))
			}
			fmt.Fprintf(&runs, "run \"%s_%d\" {\n  command = plan\n  variables {\n    %[1]s = %[3]s\n  }\n", snake(name), i, literal)
			if !accepted {
				fmt.Fprintf(&runs, "  expect_failures = [var.%s]\n", snake(name))
			}
			runs.WriteString("}\n")
		}
	}
	testkit.OK(t, os.WriteFile(filepath.Join(folder, "values.tftest.hcl"), []byte(runs.String()), 0o600))
	tofu(t, folder, "init")
	out := tofu(t, folder, "test")
	want := fmt.Sprintf("Success! %d passed, 0 failed.", count[true]+count[false])
	if !strings.Contains(out, want) || count[true] < 50 || count[false] < 50 {
		t.Errorf("%v values of the parameters were accepted and refused. tofu test printed\n%s", count, out)
	}
}

// The example gives only variables that the module has, takes only outputs that it has, and is formatted.
func TestTheExampleFitsTheModule(t *testing.T) {
	example := document(t, "```hcl\n")
	folder := t.TempDir()
	testkit.OK(t, os.WriteFile(filepath.Join(folder, "main.tf"), []byte(example), 0o600))
	tofu(t, folder, "fmt", "-check", "-diff")
	module := show(t, moduleFolder(t))
	_, call, _ := strings.Cut(example, "module \"guards\" {\n  source ")
	call, _, _ = strings.Cut(call, "\n}\n")
	given := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^  (\w+) *=`).FindAllStringSubmatch(call, -1) {
		given[found[1]] = true
	}
	for name := range given {
		if _, ok := module.Variables[name]; !ok {
			t.Errorf("the example sets %s, which is no variable of the module", name)
		}
	}
	for _, name := range []string{"template", "bucket"} { // the variables without a default
		if !given[name] {
			t.Errorf("the example does not set %s", name)
		}
	}
	taken := regexp.MustCompile(`module\.guards\.(\w+)`).FindAllStringSubmatch(example, -1)
	for _, found := range taken {
		if _, ok := module.Outputs[found[1]]; !ok {
			t.Errorf("the example takes %s, which is no output of the module", found[1])
		}
	}
	if len(taken) < 4 {
		t.Errorf("the example takes %q of the module", taken)
	}
}
