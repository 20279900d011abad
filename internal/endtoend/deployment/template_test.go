package deployment_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
	"github.com/cric-talk/guards/internal/workbench/scaffold"
)

// managed lists the policies of AWS that SAM adds to roles. With a role's name in
// front, only that role may have the policy.
var managed = []string{
	"arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole",
	"DelayedJobsFunctionRole arn:aws:iam::aws:policy/service-role/AWSLambdaSQSQueueExecutionRole",
}

// The tests of package rules read template.yaml. This one reads what SAM makes of
// it: the settings of Globals in each function, and the policies of each role.
func TestTemplateHasTheSettingsOfGlobals(t *testing.T) {
	resources := transform(t, "template.yaml")["Resources"].(object)
	functions := 0
	for id, r := range resources {
		for _, s := range statements(r) {
			for _, part := range []string{"Action", "Resource", "Principal", "NotAction", "NotResource"} {
				if strings.Contains(show(s[part]), "*") {
					t.Errorf("%s: %s is %s, want no wildcard", id, part, show(s[part]))
				}
			}
		}
		arns, _ := at(r, "Properties.ManagedPolicyArns").([]any)
		for _, arn := range arns {
			if !slices.Contains(managed, show(arn)) && !slices.Contains(managed, id+" "+show(arn)) {
				t.Errorf("%s has the policy %s", id, show(arn))
			}
		}
		if at(r, "Type") != "AWS::Lambda::Function" {
			continue
		}
		functions++
		loop := "null"
		if id == "DelayedJobsFunction" { // it sends to its own queue, and Lambda would stop it after about 16 rounds
			loop = "Allow"
		}
		for path, want := range map[string]string{
			id + ".Properties.RecursiveLoop": loop,
			id + ".Properties.Runtime":       "provided.al2023", id + ".Properties.Architectures": `["arm64"]`,
			id + ".Properties.LoggingConfig":                             `{"ApplicationLogLevel":"INFO","LogFormat":"JSON","LogGroup":{"Ref":"LogGroup"},"SystemLogLevel":{"Ref":"SystemLogLevel"}}`,
			id + "EventInvokeConfig.Properties.MaximumRetryAttempts":     "0",
			id + "EventInvokeConfig.Properties.MaximumEventAgeInSeconds": "60", // runs of a short schedule don't pile up
		} {
			if got := show(at(resources, path)); got != want {
				t.Errorf("%s is %s, want %s", path, got, want)
			}
		}
	}
	if want := len(cricket.All) + 2; functions != want { // cleanup and delayed-jobs
		t.Errorf("there are %d functions, want %d", functions, want)
	}
}

// extra is a template.extra.yaml with what a cloud team adds.
const extra = `Globals:
  Function:
    Tracing: Active
    PermissionsBoundary: !Sub arn:${AWS::Partition}:iam::${AWS::AccountId}:policy/boundary
    Tags: {team: limits}
    VpcConfig:
      SubnetIds: [subnet-0123456789abcdef0]
      SecurityGroupIds: [!GetAtt Functions.GroupId]
    Environment:
      Variables:
        TEAM: limits
Resources:
  Functions:
    Type: AWS::EC2::SecurityGroup
    Properties:
      GroupDescription: The functions send requests to DynamoDB and SQS only.
      VpcId: vpc-0123456789abcdef0
      SecurityGroupEgress:
        - {IpProtocol: tcp, FromPort: 443, ToPort: 443, CidrIp: 0.0.0.0/0, Description: AWS}
  Table:
    Properties:
      SSESpecification: {SSEEnabled: true, SSEType: KMS, KMSMasterKeyId: alias/limits}
      Tags:
        - {Key: team, Value: limits}
  DegradedAlarm: null
  CleanupThrottlesAlarm:
    Properties: {Threshold: 5, OKActions: null}
  GuardsDashboard: null
Parameters:
  Dashboard: null
Conditions:
  MakesDashboard: null
  MeasuresGuards: null
Outputs:
  DashboardName: null
`

// newProject writes a new project, perhaps with an extra file, and returns its template.
func newProject(t *testing.T, extra string) string {
	t.Helper()
	a := guards.Activity{Name: "upload_photo", Limit: "5/1m"}
	_, changes, err := scaffold.Init("my-guards", scaffold.Request{Guard: "photos-guard", Activity: a}, scaffold.Origin{Version: "v0.1.0"})
	testkit.OK(t, err)
	dir := t.TempDir()
	if extra != "" {
		changes = append(changes, scaffold.Change{File: "template.extra.yaml", After: extra})
	}
	testkit.OK(t, scaffold.Create(dir, changes))
	stale := testkit.Must(scaffold.Stale(os.DirFS(dir), cricket.Link(guards.Guard{Name: "photos-guard", Message: "m", Activities: []guards.Activity{a}}), true))(t)
	name := filepath.Join(dir, "template.yaml")
	for _, c := range stale {
		if err := os.WriteFile(name, []byte(c.After), 0o600); err != nil || c.File != "template.yaml" {
			t.Fatal(c.File, err)
		}
	}
	return name
}

// rolesOf returns the roles that a row of security.md is about, by its first cell.
func rolesOf(row string) (roles []string) {
	for _, g := range cricket.All {
		queues := 0
		for _, a := range g.Activities {
			if a.Limit.Queues() {
				queues++
			}
		}
		if row == "each guard" || row == "each guard but those with reservoirs only" && queues < len(g.Activities) || row == "a guard with delayed jobs" && g.DelayedQueue {
			roles = append(roles, scaffold.LogicalID(g.Name)+"FunctionRole")
		}
	}
	switch row {
	case "`delayed-jobs`":
		return []string{"DelayedJobsFunctionRole"}
	case "`cleanup`":
		return []string{"CleanupFunctionRole"}
	case "the schedule of `cleanup`":
		return []string{"CleanupFunctionScheduleRole"}
	}
	return roles
}

// What SAM makes of the roles is in security.md, action by action.
func TestTheTemplateAndTheDocumentListTheSameActions(t *testing.T) {
	got := map[string][]string{} // by role, each as in: sqs:SendMessage on ReadyQueue
	for id, r := range transform(t, "template.yaml")["Resources"].(object) {
		for _, s := range statements(at(r, "Properties.Policies")) {
			if s["Effect"] != "Allow" {
				continue // see TestNoRoleThatDecidesWritesTheSettings
			}
			actions, ok := s["Action"].([]any)
			if !ok {
				actions = []any{s["Action"]}
			}
			for _, action := range actions {
				resource := strings.Trim(show(at(s["Resource"], "Fn::GetAtt")), `[]"`)
				got[id] = append(got[id], show(action)+" on "+strings.TrimSuffix(resource, `","Arn`))
			}
		}
		slices.Sort(got[id])
	}
	document := testkit.Must(os.ReadFile(filepath.Join("..", "..", "..", "docs", "security.md")))(t)
	want := map[string][]string{}
	quoted := regexp.MustCompile("`([^`]+)`")
	for _, row := range regexp.MustCompile(`(?m)^\| (.+) \| (.+) \| (.+) \|$`).FindAllStringSubmatch(string(document), -1) {
		for _, role := range rolesOf(row[1]) {
			if strings.Contains(row[2], "from AWS's policy") {
				continue // the test of the settings knows these
			}
			for _, action := range quoted.FindAllStringSubmatch(row[2], -1) {
				for _, resource := range quoted.FindAllStringSubmatch(row[3], -1) {
					want[role] = append(want[role], action[1]+" on "+resource[1])
				}
			}
			slices.Sort(want[role])
		}
	}
	for role, actions := range got {
		if diff := cmp.Diff(want[role], actions); diff != "" && len(actions) > 0 {
			t.Errorf("%s in docs/security.md (-document +template):\n%s", role, diff)
		}
	}
}

// No role that may write counts can write the live settings, whatever else it may do. These roles
// are the guards' roles, delayed-jobs' role, and the role of an app that decides in its own
// process. The emulators ignore the condition, so this reads what SAM makes of the template.
func TestNoRoleThatDecidesWritesTheSettings(t *testing.T) {
	const want = `{"Action":["dynamodb:UpdateItem","dynamodb:DeleteItem"],"Condition":{"ForAnyValue:StringEquals":{"dynamodb:LeadingKeys":[" config"]}},` +
		`"Effect":"Deny","Resource":{"Fn::GetAtt":["Table","Arn"]}}`
	decide := 0
	for id, r := range transform(t, "template.yaml")["Resources"].(object) {
		writes, keeps := false, false
		for _, s := range statements(r) {
			text := show(s)
			writes = writes || s["Effect"] == "Allow" && strings.Contains(text, "dynamodb:UpdateItem")
			keeps = keeps || text == want
		}
		if id == "CleanupFunctionRole" { // an erasure removes grants and blocks
			keeps = !keeps
		}
		if writes && !keeps {
			t.Errorf("%s writes counts: it denies no writes to the settings", id)
		}
		if writes {
			decide++
		}
	}
	if decide < len(cricket.All)+3 {
		t.Errorf("%d policies write counts, want those of the guards, of delayed-jobs, of cleanup and of a limiter", decide)
	}
}

// These scanners read this repository's template, a new project's template, and the
// template of a project with a template.extra.yaml. A template may skip a check only
// with a reason.
func TestTemplatesPassTheScanners(t *testing.T) {
	for _, file := range []string{"template.yaml", newProject(t, ""), newProject(t, extra)} {
		whole := transform(t, file)
		for id, r := range whole["Resources"].(object) {
			skips, _ := at(r, "Metadata.checkov.skip").([]any)
			for _, skip := range skips {
				if len(show(at(skip, "comment"))) < 10 {
					t.Errorf("%s skips %s without a reason", id, show(at(skip, "id")))
				}
			}
		}
		transformed := filepath.Join(t.TempDir(), "transformed.json")
		testkit.OK(t, os.WriteFile(transformed, []byte(show(whole)), 0o600))
		scan(t, transformed)
		run(t, nil, ".cache/venv/bin/cfn-lint", "--include-checks", "I", "--", transformed)
		if file != "template.yaml" {
			run(t, []string{"SAM_CLI_TELEMETRY=0", "AWS_DEFAULT_REGION=us-east-1"}, ".cache/venv/bin/sam", "validate", "--lint", "--template-file", file)
		}
	}
}

// API Gateway must not cache what the example of an authorizer answers, because a cached answer is not counted.
func TestTheExampleOfAnAuthorizerIsNotCached(t *testing.T) {
	const file = "examples/authorizer/template.yaml"
	resources := transform(t, file)["Resources"].(object)
	for path, identity := range map[string]string{
		"RestApi.Properties.Body.securityDefinitions":        "null",
		"HttpApi.Properties.Body.components.securitySchemes": `["$request.header.Authorization"]`,
	} {
		got := at(resources, path+".Guard.x-amazon-apigateway-authorizer")
		if show(at(got, "authorizerResultTtlInSeconds")) != "0" || show(at(got, "identitySource")) != identity {
			t.Errorf("%s is %s, want authorizerResultTtlInSeconds 0 and identitySource %s", path, show(got), identity)
		}
	}
	const want = `{"responseParameters":{"gatewayresponse.header.Retry-After":"context.authorizer.retryAfter"},` +
		`"responseTemplates":{"application/json":"{\"message\": \"$context.authorizer.message\"}"},"statusCode":"429"}`
	if got := show(at(resources, "RestApi.Properties.Body.x-amazon-apigateway-gateway-responses.ACCESS_DENIED")); got != want {
		t.Errorf("the gateway response of a refusal is %s, want %s", got, want)
	}
	run(t, nil, ".cache/venv/bin/cfn-lint", "--include-checks", "I", "--", file)
	run(t, []string{"SAM_CLI_TELEMETRY=0", "AWS_DEFAULT_REGION=us-east-1"}, ".cache/venv/bin/sam", "validate", "--lint", "--template-file", file)
}

// scan reports what checkov finds in a file.
func scan(t *testing.T, name string) {
	t.Helper()
	stdout, stderr, err := attempt(t, nil, ".cache/scan/bin/checkov", "--framework", "cloudformation", "--file", name,
		"--output", "json", "--compact", "--quiet", "--soft-fail", "--skip-download")
	var out struct {
		Summary struct {
			Passed int
			Unread int `json:"parsing_errors"`
		}
		Results struct {
			Failed []struct {
				ID       string `json:"check_id"`
				Resource string
			} `json:"failed_checks"`
		}
	}
	if err == nil {
		err = json.Unmarshal([]byte(stdout), &out)
	}
	if err != nil || out.Summary.Passed < 20 || out.Summary.Unread > 0 {
		t.Fatalf("checkov: %v\n%s%s", err, stdout, stderr)
	}
	for _, f := range out.Results.Failed {
		t.Errorf("checkov: %s of %s", f.ID, f.Resource)
	}
}

// A value is any value of the transformed template: an object, a list, a string, a
// number or a bool.
type value = any

type object = map[string]value

// transform returns the CloudFormation template that SAM makes of a file.
func transform(t *testing.T, file string) (o object) {
	t.Helper()
	if os.Getenv("TEMPLATE_TOOLS") == "" {
		t.Skip("make template runs this test, which needs SAM and checkov")
	}
	testkit.OK(t, json.Unmarshal([]byte(run(t, nil, ".cache/venv/bin/python", "tools/transform.py", file)), &o))
	return o
}

// statements returns the statements of all policies in v.
func statements(v value) (all []object) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			all = append(all, statements(e)...)
		}
	case object:
		if _, ok := v["Effect"].(string); ok {
			all = append(all, v)
		}
		for _, e := range v {
			all = append(all, statements(e)...)
		}
	}
	return all
}

// at returns the value at a path such as Properties.Target.Input, or nil.
func at(v value, path string) value {
	for name := range strings.SplitSeq(path, ".") {
		o, ok := v.(object)
		if !ok {
			return nil
		}
		v = o[name]
	}
	return v
}

// show returns a value on one line. A string stands for itself.
func show(v value) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
