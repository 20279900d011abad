package awscheck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// A Stack is what a run creates: the stack of template.yaml, and beside it the stack of probe.yaml. All names contain its ID.
// The programs sam and aws create, describe and remove them.
type Stack struct {
	ID       string // such as 1f9c03
	Region   string
	Endpoint string // an emulator's, or empty
	Log      io.Writer

	template string   // what sam build has written
	bucket   string   // an S3 bucket for the programs; empty: SAM's own
	settings []string // further parameters of the stack
	config   aws.Config
	lambda   *lambda.Client
	dynamo   *dynamodb.Client
	sqs      *sqs.Client
	ids      map[string]string // physical ids of both stacks' resources, by their names in the templates
	parallel int               // how many calls may be under way
}

const probeTemplate = "tools/awscheck/probe.yaml"

func newStack(cfg aws.Config, id string, log io.Writer) *Stack {
	s := &Stack{
		ID: id, Region: cfg.Region, Endpoint: aws.ToString(cfg.BaseEndpoint), Log: log, config: cfg, template: ".aws-sam/build/template.yaml",
		lambda: lambda.NewFromConfig(cfg), dynamo: dynamodb.NewFromConfig(cfg), sqs: sqs.NewFromConfig(cfg),
	}
	if s.Endpoint != "" { // of scripts/with-aws, for which make emulated has built the stack
		s.template, s.bucket, s.settings = ".cache/sam-build/template.yaml", "artifacts", []string{"DecisionTimeout=5s"}
	}
	return s
}

func (s *Stack) name() string  { return "guards-check-" + s.ID }
func (s *Stack) probe() string { return s.name() + "-probe" }
func (s *Stack) table() string { return "check-" + s.ID }

// deploy creates both stacks.
func (s *Stack) deploy(ctx context.Context, long bool) error {
	parameters := append([]string{
		"NamePrefix=check-" + s.ID + "-", "TableName=" + s.table(), "DeletionProtection=false", "CleanupConcurrency=0",
		"Dashboard=false", fmt.Sprintf("Alarms=%v", long), "SystemLogLevel=INFO", "LogRetentionDays=1",
		"OnOutage=deny", // then no instance decides alone, so exactly the limit gets through
	}, s.settings...)
	if err := s.sam(ctx, s.name(), s.template, parameters); err != nil {
		return err
	}
	guard, err := s.lambda.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{
		FunctionName: aws.String(s.ids["PostsGuardFunction"]),
	})
	if err != nil {
		return err
	}
	return s.sam(ctx, s.probe(), probeTemplate, []string{
		"Prefix=check-" + s.ID, "TableName=" + s.table(), "GuardRole=" + *guard.Role,
		"LimiterPolicy=" + s.ids["LimiterPolicy"], "InvokePolicy=" + s.ids["InvokePolicy"], "AgentLayer=" + s.ids["AgentLayerX86"],
	})
}

// sam deploys a template and learns the ids of its resources. No section of samconfig.toml is for these stacks.
func (s *Stack) sam(ctx context.Context, name, template string, parameters []string) error {
	_, _ = fmt.Fprintf(s.Log, "aws-check: creating the stack %s\n", name)
	args := []string{
		"deploy", "--config-env", "aws-check", "--template-file", template, "--stack-name", name, "--region", s.Region,
		"--capabilities", "CAPABILITY_IAM", "--no-confirm-changeset", "--no-progressbar", "--s3-prefix", name,
	}
	if s.bucket == "" {
		args = append(args, "--resolve-s3")
	} else {
		args = append(args, "--s3-bucket", s.bucket)
	}
	if _, err := program(ctx, "sam", append(append(args, "--parameter-overrides"), parameters...)...); err != nil {
		return err
	}
	var out struct {
		StackResources []struct{ LogicalResourceId, PhysicalResourceId, ResourceType string }
	}
	if err := s.aws(ctx, &out, "cloudformation", "describe-stack-resources", "--stack-name", name); err != nil {
		return err
	}
	if s.ids == nil {
		s.ids = map[string]string{}
	}
	for _, r := range out.StackResources {
		if r.ResourceType == "AWS::Lambda::LayerVersion" { // SAM adds a hash to its name
			r.LogicalResourceId = r.LogicalResourceId[:len(r.LogicalResourceId)-10]
		}
		s.ids[r.LogicalResourceId] = r.PhysicalResourceId
	}
	return nil
}

// remove deletes all that deploy creates, whether it is there or not. It returns what it could not delete, and why.
func (s *Stack) remove(ctx context.Context) (left []string) {
	note := func(what string, err error) {
		if err != nil {
			left = append(left, what+": "+err.Error())
		}
	}
	for _, name := range []string{s.probe(), s.name()} {
		_, _ = fmt.Fprintf(s.Log, "aws-check: removing the stack %s\n", name)
		err := s.aws(ctx, nil, "cloudformation", "delete-stack", "--stack-name", name)
		if err == nil {
			err = s.aws(ctx, nil, "cloudformation", "wait", "stack-delete-complete", "--stack-name", name)
		}
		note("the stack "+name, err)
	}
	note("the table "+s.table(), s.removeTable(ctx))
	for _, layer := range []string{"-agent-arm64", "-agent-x86"} {
		note("the layer "+s.name()+layer, s.removeLayer(ctx, s.name()+layer))
	}
	bucket := s.bucket
	if bucket == "" {
		var out struct {
			StackResourceDetail struct{ PhysicalResourceId string }
		}
		err := s.aws(ctx, &out, "cloudformation", "describe-stack-resource", "--stack-name", "aws-sam-cli-managed-default",
			"--logical-resource-id", "SamCliSourceBucket")
		if bucket = out.StackResourceDetail.PhysicalResourceId; err != nil {
			return left // SAM has made no bucket, so nothing is in it
		}
	}
	for _, name := range []string{s.probe(), s.name()} {
		_, err := program(ctx, "aws", "s3", "rm", "--recursive", "--quiet", "--region", s.Region, "s3://"+bucket+"/"+name+"/")
		note("programs in the bucket "+bucket, err)
	}
	return left
}

// removeTable deletes the table, which outlives its stack.
func (s *Stack) removeTable(ctx context.Context) error {
	table := aws.String(s.table())
	var err error
	for range 12 { // a table that is being created or changed can't be deleted
		_, err = s.dynamo.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: table})
		if _, gone := errors.AsType[*types.ResourceNotFoundException](err); gone || err == nil {
			return nil
		}
		if _, busy := errors.AsType[*types.ResourceInUseException](err); !busy { // perhaps it is protected
			_, _ = s.dynamo.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: table, DeletionProtectionEnabled: aws.Bool(false)})
		}
		if !sleep(ctx, 5*time.Second) {
			break
		}
	}
	return err
}

// removeLayer deletes all versions of a layer, which outlive their stack.
func (s *Stack) removeLayer(ctx context.Context, name string) error {
	out, err := s.lambda.ListLayerVersions(ctx, &lambda.ListLayerVersionsInput{LayerName: &name})
	if err != nil {
		return err
	}
	for _, v := range out.LayerVersions {
		if _, err := s.lambda.DeleteLayerVersion(ctx, &lambda.DeleteLayerVersionInput{LayerName: &name, VersionNumber: &v.Version}); err != nil {
			return err
		}
	}
	return nil
}

// aws runs the AWS CLI and decodes what it prints into out, unless out is nil.
func (s *Stack) aws(ctx context.Context, out any, args ...string) error {
	printed, err := program(ctx, "aws", append(args, "--region", s.Region, "--output", "json")...)
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(printed, out)
}

// program runs a program and returns what it prints. Its error ends with the last lines of what the program printed.
func program(ctx context.Context, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &errs, 5*time.Second
	if err := cmd.Run(); err != nil {
		lines := strings.Split(strings.TrimSpace(out.String()+errs.String()), "\n")
		return nil, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args[:min(2, len(args))], " "), err, strings.Join(lines[max(0, len(lines)-5):], "; "))
	}
	return out.Bytes(), nil
}

// sleep waits, and reports whether ctx goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// until calls is every second until it returns true. what is for the error message.
func until(ctx context.Context, most time.Duration, what string, is func() (bool, error)) error {
	for end := time.Now().Add(most); ; {
		done, err := is()
		if err != nil || done {
			return err
		}
		if time.Now().After(end) || !sleep(ctx, time.Second) {
			return fmt.Errorf("not within %v: %s", most, what)
		}
	}
}
