package awscheck

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// settings compares what AWS reports of the stack with template.yaml. That time to live is on does not show that DynamoDB
// deletes anything, or when.
func settings(ctx context.Context, s *Stack) (Figures, error) {
	type setting struct{ asks, query, want string }
	table, jobs := " --table-name "+s.table(), " --function-name "+s.ids["DelayedJobsFunction"]
	all := []setting{
		{"dynamodb describe-time-to-live" + table, "TimeToLiveDescription.[TimeToLiveStatus, AttributeName]", "ENABLED expiresAt"},
		{"dynamodb describe-continuous-backups" + table, "ContinuousBackupsDescription.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus", "ENABLED"},
		{"dynamodb describe-table" + table, "Table.SSEDescription", "None"}, // AWS's own key, which needs no description
		{"lambda get-function-configuration" + jobs, "Runtime", "provided.al2023"},
		{"lambda get-function-recursion-config" + jobs, "RecursiveLoop", "Allow"},
	}
	var different []error
	compare := func(what, got, want string) {
		if got != want {
			different = append(different, fmt.Errorf("%s is %q, want %q", what, got, want))
		}
	}
	for _, one := range all {
		got, err := program(ctx, "aws", append(strings.Fields(one.asks), "--region", s.Region, "--output", "text", "--query", one.query)...)
		if err != nil {
			return nil, err
		}
		words := strings.Replace(string(got), "ENABLING", "ENABLED", 1) // DynamoDB can call time to live so for an hour
		compare(one.asks+": "+one.query, strings.Join(strings.Fields(words), " "), one.want)
	}
	queues := []string{"DelayedQueue", "ReadyQueue", "DelayedDeadLetterQueue", "CleanupDeadLetterQueue"}
	for _, queue := range queues { // version 1 of the AWS CLI finds no emulator of SQS
		out, err := s.sqs.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
			QueueUrl: aws.String(s.ids[queue]), AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameSqsManagedSseEnabled},
		})
		if err != nil {
			return nil, err
		}
		compare("the encryption of "+queue, out.Attributes["SqsManagedSseEnabled"], "true")
	}
	return Figures{"compared": float64(len(all) + len(queues))}, errors.Join(different...)
}

// A permission is a call that a probe makes with its role, and whether it must be denied.
type permission struct {
	probe, service, method string
	args                   map[string]any
	denied                 bool
}

// roles tries what each role needs and what it must not do.
func roles(ctx context.Context, s *Stack) (Figures, error) {
	table := map[string]any{"TableName": s.table()}
	get, put := s.item("roles", false), map[string]any{"TableName": s.table(), "Item": s.item("roles", false)["Key"]}
	invoke := func(function string) map[string]any {
		return map[string]any{"FunctionName": s.ids[function], "Payload": `{"userId": "roles", "activity": "create_post"}`}
	}
	var all []permission
	for _, probe := range []string{"GuardProbe", "AppProbe"} {
		all = append(all,
			permission{probe, "dynamodb", "get_item", get, false},
			permission{probe, "dynamodb", "update_item", s.item("roles", true), false},
			permission{probe, "dynamodb", "delete_item", get, false},
			permission{probe, "dynamodb", "put_item", put, true},
			permission{probe, "dynamodb", "scan", table, true},
			permission{probe, "dynamodb", "describe_table", table, true},
			permission{probe, "lambda", "invoke", invoke("CleanupFunction"), true},
		)
	}
	all = append(all,
		permission{"BackendProbe", "lambda", "invoke", invoke("PostsGuardFunction"), false},
		permission{"BackendProbe", "lambda", "invoke", invoke("CleanupFunction"), true},
		permission{"BackendProbe", "lambda", "invoke", invoke("DelayedJobsFunction"), true},
		permission{"BackendProbe", "dynamodb", "scan", table, true},
	)
	return s.verify(ctx, all)
}

// deniedWrite tries to write the live settings, which a guard and an app may only read.
func deniedWrite(ctx context.Context, s *Stack) (Figures, error) {
	var all []permission
	for _, probe := range []string{"GuardProbe", "AppProbe"} {
		all = append(all,
			permission{probe, "dynamodb", "get_item", s.item(" config", false), false},
			permission{probe, "dynamodb", "update_item", s.item(" config", true), true},
			permission{probe, "dynamodb", "delete_item", s.item(" config", false), true},
			permission{probe, "dynamodb", "update_item", s.item("denied-write", true), false},
		)
	}
	return s.verify(ctx, all)
}

// item returns the arguments of a call about an item of a user. With set, the call changes it.
func (s *Stack) item(user string, set bool) map[string]any {
	args := map[string]any{"TableName": s.table(), "Key": map[string]any{"userId": map[string]string{"S": user}, "activityWindow": map[string]string{"S": "aws-check"}}}
	if set {
		args["UpdateExpression"], args["ExpressionAttributeValues"] = "SET n = :n", map[string]any{":n": map[string]string{"N": "1"}}
	}
	return args
}

// verify makes each call, and returns an error for each that was not answered as its role should be.
func (s *Stack) verify(ctx context.Context, all []permission) (Figures, error) {
	var wrong []error
	denied := []string{"AccessDeniedException", "AccessDenied"}
	for _, t := range all {
		code, err := s.call(ctx, t.probe, t.service, t.method, t.args)
		switch {
		case err != nil:
			return nil, err
		case t.denied && !slices.Contains(denied, code):
			wrong = append(wrong, fmt.Errorf("%s: %s %s was answered %q, want it denied", t.probe, t.service, t.method, code))
		case !t.denied && code != "":
			wrong = append(wrong, fmt.Errorf("%s: %s %s was answered %s, want it done", t.probe, t.service, t.method, code))
		}
	}
	return Figures{"calls": float64(len(all))}, errors.Join(wrong...)
}
