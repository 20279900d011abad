package deployment_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/cric-talk/guards/internal/testkit"
)

// A stack is the deployed stack. AWS's own programs create it and call it.
type stack struct {
	cfg      aws.Config        // has the deployer's credentials
	ids      map[string]string // the physical id of each resource, by its name in the template
	recorder *recorder
}

// deploy creates or updates the stack with SAM and reads the ids of its resources.
func (s *stack) deploy(t *testing.T, parameters ...string) {
	t.Helper()
	overrides := append([]string{"--config-env", "local", "--parameter-overrides"}, parameters...)
	run(t, nil, "sam", append([]string{"deploy"}, overrides...)...)
	var out struct {
		StackResources []struct{ LogicalResourceId, PhysicalResourceId string }
	}
	s.aws(t, &out, "cloudformation", "describe-stack-resources", "--stack-name", "guards")
	s.ids = map[string]string{}
	for _, r := range out.StackResources {
		s.ids[r.LogicalResourceId] = r.PhysicalResourceId
	}
}

// aws runs the AWS CLI with the deployer's credentials. It decodes what the CLI
// prints into out, unless out is nil.
func (s *stack) aws(t *testing.T, out any, args ...string) {
	t.Helper()
	printed := run(t, nil, "aws", append(args, "--output", "json")...)
	if out == nil {
		return
	}
	if err := json.Unmarshal([]byte(printed), out); err != nil {
		t.Fatalf("aws %v: %v\n%s", args, err, printed)
	}
}

// answer is the answer of a guard, or the error of a function.
type answer struct {
	Allowed                            bool
	Reason, Message                    string
	Limit, ActivityCount, Granted      int64
	ErrorType, ErrorMessage, RequestID string
}

// invoke invokes a function with the SDK, which is faster than the AWS CLI.
func (s *stack) invoke(t *testing.T, function, payload string) (a answer) {
	t.Helper()
	out, err := lambda.NewFromConfig(s.cfg).Invoke(t.Context(), &lambda.InvokeInput{FunctionName: &function, Payload: []byte(payload)})
	if err == nil {
		err = json.Unmarshal(out.Payload, &a)
	}
	if err != nil {
		t.Errorf("%s: %v", function, err)
	}
	return a
}

// run runs a program and returns what it prints. env is added to the test's
// environment. If the program fails, the test ends.
func run(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	stdout, stderr, err := attempt(t, env, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, stdout, stderr)
	}
	return stdout
}

// attempt is like run, but returns an error if the program fails.
func attempt(t *testing.T, env []string, name string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = "../../.."
	cmd.Env = append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = 5 * time.Second
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// assume returns credentials for a role.
func (s *stack) assume(t *testing.T, roleARN string) aws.Credentials {
	t.Helper()
	var out struct {
		Credentials struct{ AccessKeyId, SecretAccessKey, SessionToken string }
	}
	s.aws(t, &out, "sts", "assume-role", "--role-arn", roleARN, "--role-session-name", "test")
	c := out.Credentials
	return aws.Credentials{AccessKeyID: c.AccessKeyId, SecretAccessKey: c.SecretAccessKey, SessionToken: c.SessionToken}
}

// may reports whether the credentials allow the request that the AWS CLI makes
// with args. Any other failure ends the test.
func may(t *testing.T, who aws.Credentials, args ...string) bool {
	t.Helper()
	env := []string{"AWS_ACCESS_KEY_ID=" + who.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + who.SecretAccessKey, "AWS_SESSION_TOKEN=" + who.SessionToken}
	stdout, stderr, err := attempt(t, env, "aws", args...)
	if err != nil && !strings.Contains(stderr, "AccessDenied") {
		t.Fatalf("aws %s: %v\n%s%s", strings.Join(args, " "), err, stdout, stderr)
	}
	return err == nil
}

// until waits until is returns true. what describes that for the error message.
func until(t *testing.T, most time.Duration, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(most); !is(); time.Sleep(500 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", most, what)
		}
	}
}

// post sends a POST request to a function's URL and returns the status. It signs
// the request if who has keys. It connects to the emulator whatever the URL's host
// is.
func post(t *testing.T, to, body string, who aws.Credentials) (status int) {
	t.Helper()
	to = strings.Replace(to, "https://", "http://", 1) // the emulator has no certificate for AWS's domain
	req := testkit.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader(body)))(t)
	if who.HasKeys() {
		hash := sha256.Sum256([]byte(body))
		testkit.OK(t, v4.NewSigner().SignHTTP(t.Context(), who, req, hex.EncodeToString(hash[:]), "lambda", "us-east-1", time.Now()))
	}
	emulator := strings.TrimPrefix(os.Getenv("AWS_ENDPOINT_URL"), "http://")
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, emulator)
	}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport, Timeout: 30 * time.Second}).Do(req)
	testkit.OK(t, err)
	_ = resp.Body.Close()
	return resp.StatusCode
}
