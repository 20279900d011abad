package deployment_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/limits"
)

func (s *stack) aGuardsRoleCanNotScan(t *testing.T) {
	key := `{"userId": {"S": "u1"}, "activityWindow": {"S": "x"}}`
	posts := s.assume(t, s.role(t, "PostsGuardFunction"))
	if !may(t, posts, "dynamodb", "get-item", "--table-name", table, "--key", key) {
		t.Error("posts-guard's role may not get an item")
	}
	for _, args := range [][]string{
		{"scan"},
		{"query", "--key-condition-expression", "userId = :u", "--expression-attribute-values", `{":u": {"S": "u1"}}`},
		{"put-item", "--item", key},
		{"delete-table"},
		{"describe-table"},
	} {
		if may(t, posts, append([]string{"dynamodb", args[0], "--table-name", table}, args[1:]...)...) {
			t.Errorf("posts-guard's role may %s", args[0])
		}
	}
	if may(t, posts, "lambda", "invoke", "--function-name", "cleanup", "--payload", "{}", os.DevNull) {
		t.Error("posts-guard's role may run cleanup")
	}
	cleanup := s.assume(t, s.role(t, "CleanupFunction"))
	if !may(t, cleanup, "dynamodb", "scan", "--table-name", table) {
		t.Error("cleanup's role may not scan")
	}
	if may(t, cleanup, "dynamodb", "delete-item", "--table-name", table, "--key", key) {
		t.Error("cleanup's role may delete an item but by what it was allowed")
	}
}

// allowBatches has cleanup's role do what MiniStack asks for a batch of PartiQL:
// an action that IAM does not know. AWS asks for PartiQLDelete, which stands in
// the template, and rolesAllowWhatIsDone compares that.
func (s *stack) allowBatches(t *testing.T) {
	t.Helper()
	run(t, nil, "aws", "iam", "put-role-policy", "--role-name", s.ids["CleanupFunctionRole"], "--policy-name", emulatorsOwn,
		"--policy-document", `{"Version": "2012-10-17", "Statement": [
			{"Effect": "Allow", "Action": "dynamodb:BatchExecuteStatement", "Resource": "*"}]}`)
}

const emulatorsOwn = "emulator"

// role is the ARN of a function's role.
func (s *stack) role(t *testing.T, function string) string {
	t.Helper()
	var out struct{ Configuration struct{ Role string } }
	s.aws(t, &out, "lambda", "get-function", "--function-name", s.ids[function])
	return out.Configuration.Role
}

const backend = "arn:aws:iam::" + account + ":role/backend"

// A backend is any role that has the stack's managed policy.
func (s *stack) aBackendMayInvokeGuardsAlone(t *testing.T) {
	trust := `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole",
		"Principal": {"AWS": "arn:aws:iam::` + account + `:root"}}]}`
	s.aws(t, nil, "iam", "create-role", "--role-name", "backend", "--assume-role-policy-document", trust)
	run(t, nil, "aws", "iam", "attach-role-policy", "--role-name", "backend", "--policy-arn", s.ids["InvokePolicy"])
	role := s.assume(t, backend)
	for _, g := range limits.All {
		if !may(t, role, "lambda", "invoke", "--function-name", g.Name, "--payload", event(user+"3", g.Activities[0].Name), os.DevNull) {
			t.Errorf("a backend may not invoke %s", g.Name)
		}
	}
	for _, function := range []string{"cleanup", "delayed-jobs"} {
		if may(t, role, "lambda", "invoke", "--function-name", function, "--payload", "{}", os.DevNull) {
			t.Errorf("a backend may invoke %s", function)
		}
	}
	if may(t, role, "dynamodb", "scan", "--table-name", table) {
		t.Error("a backend may scan the table")
	}
}

// Who calls a URL must sign, and be the one that it was opened for.
func (s *stack) urlsAreSigned(t *testing.T) {
	who := s.assume(t, backend)
	for _, g := range limits.All {
		var out struct{ AuthType, FunctionUrl string }
		s.aws(t, &out, "lambda", "get-function-url-config", "--function-name", g.Name)
		if out.AuthType != "AWS_IAM" {
			t.Errorf("%s's URL has AuthType %s", g.Name, out.AuthType)
		}
		body := event(user+"5", g.Activities[0].Name)
		if status := post(t, out.FunctionUrl, body, aws.Credentials{}); status != http.StatusForbidden {
			t.Errorf("%s without a signature: status %d, want 403", out.FunctionUrl, status)
		}
		if status := post(t, out.FunctionUrl, body, who); status != http.StatusOK {
			t.Errorf("%s as UrlPrincipal: status %d, want 200", out.FunctionUrl, status)
		}
	}
	for _, function := range []string{"cleanup", "delayed-jobs"} {
		if _, _, err := attempt(t, nil, "aws", "lambda", "get-function-url-config", "--function-name", function); err == nil {
			t.Errorf("%s has a URL", function)
		}
	}
}

// rolesAllowWhatIsDone compares what each function asked in all these steps with
// the inline policies of its role, both ways.
func (s *stack) rolesAllowWhatIsDone(t *testing.T) {
	known := []string{}
	for id, name := range s.ids {
		if !strings.HasSuffix(id, "Function") {
			continue
		}
		role := s.role(t, id)
		key := accessKey(fmt.Sprintf("arn:aws:lambda:us-east-1:%s:function:%s", account, name), role)
		known = append(known, key)
		done := s.recorder.by(key)
		if name == "cleanup" { // by Lambda itself, see aCleanupThatFailsIsKept
			done = append(done, "sqs:SendMessage on "+queueARN(s.ids["CleanupDeadLetterQueue"]))
		}
		if diff := cmp.Diff(s.allowed(t, role), done); diff != "" {
			t.Errorf("%s (-allowed and never done, +done and not allowed):\n%s", name, diff)
		}
	}
	for _, key := range s.recorder.keys() {
		if !slices.Contains(known, key) {
			t.Errorf("somebody (%s) who is no function asked %v", key, s.recorder.by(key))
		}
	}
}

// allowed are the actions in a role's inline policies, each with its resource.
func (s *stack) allowed(t *testing.T, role string) (all []string) {
	t.Helper()
	role = role[strings.LastIndex(role, "/")+1:]
	var names struct{ PolicyNames []string }
	s.aws(t, &names, "iam", "list-role-policies", "--role-name", role)
	for _, name := range names.PolicyNames {
		if name == emulatorsOwn {
			continue
		}
		var out struct {
			PolicyDocument struct {
				Statement []struct {
					Effect, Resource string
					Action           oneOrMore
				}
			}
		}
		s.aws(t, &out, "iam", "get-role-policy", "--role-name", role, "--policy-name", name)
		for _, statement := range out.PolicyDocument.Statement {
			for _, action := range statement.Action {
				all = append(all, action+" on "+statement.Resource)
			}
		}
	}
	slices.Sort(all)
	return all
}

// oneOrMore is a list of JSON that is no list where it has one entry.
type oneOrMore []string

func (l *oneOrMore) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		*l = make(oneOrMore, 1)
		return json.Unmarshal(b, &(*l)[0])
	}
	return json.Unmarshal(b, (*[]string)(l))
}
