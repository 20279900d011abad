package deployment_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// guardRoleCanNotScan tries what a guard never does, and what cleanup never does.
func (s *stack) guardRoleCanNotScan(t *testing.T) {
	key := `{"userId": {"S": "u1"}, "activityWindow": {"S": "x"}}`
	posts := s.assume(t, s.role(t, "PostsGuardFunction"))
	if !may(t, posts, "dynamodb", "get-item", "--table-name", table, "--key", key) {
		t.Error("the role of posts-guard can't get an item")
	}
	for _, args := range [][]string{{"scan"}, {"put-item", "--item", key}, {"delete-table"}, {"describe-table"}} {
		if may(t, posts, append([]string{"dynamodb", args[0], "--table-name", table}, args[1:]...)...) {
			t.Errorf("the role of posts-guard allows %s", args[0])
		}
	}
	if may(t, posts, "lambda", "invoke", "--function-name", "cleanup", "--payload", "{}", os.DevNull) {
		t.Error("the role of posts-guard allows running cleanup")
	}
	cleanup := s.assume(t, s.role(t, "CleanupFunction"))
	if !may(t, cleanup, "dynamodb", "scan", "--table-name", table) {
		t.Error("the role of cleanup can't scan")
	}
	if may(t, cleanup, "dynamodb", "delete-item", "--table-name", table, "--key", key) {
		t.Error("the role of cleanup allows DeleteItem, want only PartiQLDelete")
	}
}

// allowBatches adds a permission to the role of cleanup. MiniStack checks
// dynamodb:BatchExecuteStatement for a batch of PartiQL, an action that the real
// IAM doesn't have. AWS checks PartiQLDelete instead. The template allows that
// action, and rolesAllowWhatFunctionsDo compares it.
func (s *stack) allowBatches(t *testing.T) {
	t.Helper()
	run(t, nil, "aws", "iam", "put-role-policy", "--role-name", s.ids["CleanupFunctionRole"], "--policy-name", emulatorsOwn,
		"--policy-document", `{"Version": "2012-10-17", "Statement": [
			{"Effect": "Allow", "Action": "dynamodb:BatchExecuteStatement", "Resource": "*"}]}`)
}

// emulatorsOwn is the name of the policy that only the emulator needs.
const emulatorsOwn = "emulator"

// role returns the ARN of a function's role.
func (s *stack) role(t *testing.T, function string) string {
	t.Helper()
	var out struct{ Configuration struct{ Role string } }
	s.aws(t, &out, "lambda", "get-function", "--function-name", s.ids[function])
	return out.Configuration.Role
}

const backend = "arn:aws:iam::" + account + ":role/backend"

// backendMayInvokeOnlyGuards creates the role of a backend, which has the stack's
// managed policy, and tries what it allows.
func (s *stack) backendMayInvokeOnlyGuards(t *testing.T) {
	trust := `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole",
		"Principal": {"AWS": "arn:aws:iam::` + account + `:root"}}]}`
	s.aws(t, nil, "iam", "create-role", "--role-name", "backend", "--assume-role-policy-document", trust)
	run(t, nil, "aws", "iam", "attach-role-policy", "--role-name", "backend", "--policy-arn", s.ids["InvokePolicy"])
	role := s.assume(t, backend)
	for _, g := range cricket.All {
		if !may(t, role, "lambda", "invoke", "--function-name", g.Name, "--payload", event(user+"3", g.Activities[0].Name), os.DevNull) {
			t.Errorf("a backend can't invoke %s", g.Name)
		}
	}
	for _, function := range []string{"cleanup", "delayed-jobs"} {
		if may(t, role, "lambda", "invoke", "--function-name", function, "--payload", "{}", os.DevNull) {
			t.Errorf("a backend can invoke %s", function)
		}
	}
	if may(t, role, "dynamodb", "scan", "--table-name", table) {
		t.Error("a backend can scan the table")
	}
}

// urlsNeedSignedRequests expects that only UrlPrincipal can call a guard by URL,
// and only with a signed request.
func (s *stack) urlsNeedSignedRequests(t *testing.T) {
	who := s.assume(t, backend)
	for _, g := range cricket.All {
		var out struct{ AuthType, FunctionUrl string }
		s.aws(t, &out, "lambda", "get-function-url-config", "--function-name", g.Name)
		if out.AuthType != "AWS_IAM" {
			t.Errorf("the URL of %s has the AuthType %s, want AWS_IAM", g.Name, out.AuthType)
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
			t.Errorf("%s has a URL, want none", function)
		}
	}
}

// rolesAllowWhatFunctionsDo compares the inline policies of each role with the
// requests that its function made in all steps. Both must be equal.
func (s *stack) rolesAllowWhatFunctionsDo(t *testing.T) {
	asked := s.recorder.by()
	for id, name := range s.ids {
		if !strings.HasSuffix(id, "Function") {
			continue
		}
		role := s.role(t, id)
		key := accessKey(fmt.Sprintf("arn:aws:lambda:us-east-1:%s:function:%s", account, name), role)
		done := asked[key]
		delete(asked, key)
		if name == "cleanup" { // Lambda itself does this, see failedCleanupGoesToTheQueue
			done = append(done, "sqs:SendMessage on "+queueARN(s.ids["CleanupDeadLetterQueue"]))
		}
		testkit.Same(t, name+": actions that are allowed, and those that were requested", s.allowed(t, role), done)
	}
	for key, done := range asked {
		t.Errorf("the access key %s belongs to no function and requested %v", key, done)
	}
}

// allowed returns the actions in a role's inline policies, each with its resource.
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
					Action           any // one, or a list
				}
			}
		}
		s.aws(t, &out, "iam", "get-role-policy", "--role-name", role, "--policy-name", name)
		for _, statement := range out.PolicyDocument.Statement {
			if statement.Effect != "Allow" { // what nobody may do: TestNoRoleThatDecidesWritesTheSettings
				continue
			}
			for action := range strings.FieldsSeq(strings.Trim(fmt.Sprint(statement.Action), "[]")) {
				all = append(all, action+" on "+statement.Resource)
			}
		}
	}
	slices.Sort(all)
	return all
}
