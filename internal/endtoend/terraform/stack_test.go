package terraform_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

// stand replaces what needs the provider in a copy of the module. The outputs are a variable, and the resource has only the
// conditions of the stack.
const stand = `
variable "stack_outputs" {
  type    = map(string)
  default = {}
}
resource "terraform_data" "stack" {
  input = { values = local.values, key = "${var.stack_name}/${filesha256(var.template)}.template", capabilities = var.capabilities }
%s}
output "stack" {
  value = terraform_data.stack.output
}
`

// standing returns a folder with a copy of the module without its provider, in which tofu is ready.
func standing(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for _, name := range []string{"parameters.tf", "variables.tf"} {
		copyFile(t, filepath.Join(moduleFolder(t), name), folder)
	}
	main := testkit.Must(os.ReadFile(filepath.Join(moduleFolder(t), "main.tf")))(t)
	outputs := testkit.Must(os.ReadFile(filepath.Join(moduleFolder(t), "outputs.tf")))(t)
	locals, _, found := strings.Cut(string(main), "\ndata ")
	conditions := regexp.MustCompile(`(?s)  lifecycle \{\n    precondition .*?\n  \}\n`).Find(main)
	const stack = "aws_cloudformation_stack.guards.outputs"
	if !found || conditions == nil || strings.Count(string(outputs), stack) != 1 {
		t.Fatal("main.tf or outputs.tf has another form than this test reads")
	}
	for name, content := range map[string]string{
		"main.tf":    locals + fmt.Sprintf(stand, conditions),
		"outputs.tf": strings.Replace(string(outputs), stack, "var.stack_outputs", 1),
	} {
		testkit.OK(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	tofu(t, folder, "init")
	return folder
}

const built = ".cache/sam-build/template.yaml" // make emulated writes it

// packaged returns the file that sam package writes for this repository. The emulator has the code.
func packaged(t *testing.T) string {
	t.Helper()
	if os.Getenv("TOFU") == "" {
		t.Skip("make terraform runs this test")
	}
	file := filepath.Join(t.TempDir(), "packaged.yaml")
	run(t, "sam", "package", "--template-file", built, "--s3-bucket", "artifacts", "--output-template-file", file)
	return file
}

func TestTheModuleRefusesWhatIsNoPackagedTemplate(t *testing.T) {
	folder, root := standing(t), repository(t)
	for _, test := range []struct {
		name, want, file string
	}{
		{"no file", "template must be the file that sam package wrote", "missing.yaml"},
		{"the source", "template must be the file that sam package wrote", filepath.Join(root, "template.yaml")},
		{"what sam build wrote", "template has code that is not in S3", filepath.Join(root, built)},
	} {
		out, err := try(t, folder, "plan", "-input=false", "-var=bucket=artifacts", "-var=template="+test.file)
		if err == nil || !strings.Contains(strings.Join(strings.Fields(out), " "), test.want) {
			t.Errorf("%s: %v, want an error with %q:\n%s", test.name, err, test.want, out)
		}
	}
}

// A parameter without a default must be set, and a project's own defaults count.
func TestAProjectsOwnTemplateCounts(t *testing.T) {
	folder := standing(t)
	file := filepath.Join(t.TempDir(), "packaged.json")
	const own = `{"Parameters": {
		"NamePrefix": {"Type": "String", "Default": ""}, "Mode": {"Type": "String", "Default": "shadow"},
		"LogRetentionDays": {"Type": "Number", "Default": 7}, "Team": {"Type": "String"}
	}, "Resources": {"F": {"Type": "AWS::Serverless::Function", "Properties": {"CodeUri": {"Bucket": "b", "Key": "k"}}}}}`
	testkit.OK(t, os.WriteFile(file, []byte(own), 0o600))
	set := []string{"apply", "-auto-approve", "-input=false", "-var=bucket=artifacts", "-var=template=" + file}
	if out, err := try(t, folder, set...); err == nil || !strings.Contains(out, "so set them: Team") {
		t.Errorf("without Team: %v, want an error that names it:\n%s", err, out)
	}
	if out, err := try(t, folder, append(set, `-var=parameters={"Team"="limits","Moed"="off"}`)...); err == nil || !strings.Contains(out, "has no parameter Moed") {
		t.Errorf("with Moed: %v, want an error that names it:\n%s", err, out)
	}
	tofu(t, folder, append(set, `-var=parameters={"Team"="limits"}`, "-var=name_prefix=dev-")...)
	want := map[string]string{"NamePrefix": "dev-", "Mode": "shadow", "LogRetentionDays": "7", "Team": "limits"}
	testkit.Same(t, "the parameters of the stack", want, values(t, folder))
	tofu(t, folder, append(set, `-var=parameters={"Team"="limits"}`)...)
	want["NamePrefix"] = ""
	testkit.Same(t, "the parameters after name_prefix is no longer set", want, values(t, folder))
}

// values returns the parameters that the module gives to the stack.
func values(t *testing.T, folder string) map[string]string {
	t.Helper()
	var stack struct{ Values map[string]string }
	output(t, folder, "stack", &stack)
	return stack.Values
}

func output(t *testing.T, folder, name string, into any) {
	t.Helper()
	out := tofu(t, folder, "output", "-json", name)
	if err := json.Unmarshal([]byte(out), into); err != nil {
		t.Fatalf("the output %s is %s: %v", name, out, err)
	}
}

// The stack is made with the capabilities, the parameters and the key of the module. The emulator does not know URLs of AWS.
func TestTheOutputsAreThoseOfADeployedStack(t *testing.T) {
	folder, file := standing(t), packaged(t)
	if stat, err := os.Stat(file); err != nil || stat.Size() <= 51200 {
		t.Errorf("the template has %v bytes, so it could go without S3 (%v)", stat, err)
	}
	arguments := []string{
		"apply", "-auto-approve", "-input=false", "-var=bucket=artifacts", "-var=template=" + file,
		"-var=name_prefix=dev-", "-var=table_name=dev-rateLimit", "-var=mode=shadow", "-var=dashboard=false", "-var=log_retention_days=7",
	}
	tofu(t, folder, arguments...)
	var stack struct {
		Key          string
		Capabilities []string
	}
	output(t, folder, "stack", &stack)
	parameters := []string{}
	for name, value := range values(t, folder) {
		parameters = append(parameters, "ParameterKey="+name+",ParameterValue='"+value+"'")
	}
	run(t, "aws", "s3", "cp", "--only-show-errors", file, "s3://artifacts/"+stack.Key)
	run(t, "aws", slices.Concat([]string{"cloudformation", "create-stack", "--stack-name", "guards-terraform",
		"--template-url", os.Getenv("AWS_ENDPOINT_URL") + "/artifacts/" + stack.Key, "--capabilities"}, stack.Capabilities,
		[]string{"--parameters"}, parameters)...)
	run(t, "aws", "cloudformation", "wait", "stack-create-complete", "--stack-name", "guards-terraform")
	var described []struct{ OutputKey, OutputValue string }
	testkit.OK(t, json.Unmarshal([]byte(run(t, "aws", "cloudformation", "describe-stacks", "--stack-name", "guards-terraform",
		"--query", "Stacks[0].Outputs", "--output", "json")), &described))
	outputs := map[string]string{}
	for _, o := range described {
		outputs[o.OutputKey] = o.OutputValue
	}
	given := testkit.Must(json.Marshal(map[string]any{"stack_outputs": outputs}))(t)
	testkit.OK(t, os.WriteFile(filepath.Join(folder, "stack.auto.tfvars.json"), given, 0o600))
	tofu(t, folder, arguments...)

	var printed map[string]struct{ Value any }
	testkit.OK(t, json.Unmarshal([]byte(tofu(t, folder, "output", "-json")), &printed))
	delete(printed, "stack")
	got := map[string]any{}
	for name, o := range printed {
		got[name] = o.Value
	}
	testkit.Same(t, "the outputs of the module", wanted(t, outputs), got)
}

// wanted returns the outputs of the module for the outputs of a stack with the prefix dev- and without a dashboard. tofu leaves out an
// output that is null.
func wanted(t *testing.T, outputs map[string]string) map[string]any {
	t.Helper()
	all, functions := map[string]any{}, map[string]any{}
	for name, value := range outputs {
		all[name] = value
	}
	for _, name := range functionOutputs(t) {
		function := strings.ReplaceAll(snake(strings.TrimSuffix(name, "Arn")), "_", "-")
		if functions[function] = all[name]; !strings.HasSuffix(outputs[name], ":function:dev-"+function) {
			t.Errorf("the output %s is %q", name, outputs[name])
		}
	}
	want := map[string]any{
		"outputs": all, "function_arns": functions,
		"agent_layer_arns": map[string]any{"arm64": all["AgentLayerArnArm64"], "x86_64": all["AgentLayerArnX86"]},
		"agent_environment": map[string]any{
			"GUARDS_AGENT": "http://127.0.0.1:2774", "GUARDS_TABLE_NAME": "dev-rateLimit", "GUARDS_METRICS_NAMESPACE": "dev-Guards",
		},
	}
	for name := range maps.Keys(template(t).Outputs) {
		if name != "DashboardName" && !strings.HasPrefix(name, "AgentLayerArn") && !slices.Contains(functionOutputs(t), name) {
			want[snake(name)] = all[name]
		}
	}
	if len(functions) < 10 || want["invoke_policy_arn"] == nil {
		t.Errorf("the stack has the outputs %v", outputs)
	}
	return want
}
