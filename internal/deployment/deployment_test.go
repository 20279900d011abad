// Package deployment_test proves the stack as it is deployed: template.yaml,
// built and deployed by SAM, on an emulator of AWS that enforces IAM and runs
// the real binaries. make deployment runs it.
package deployment_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/cric-talk/guards/internal/delayed/sqsqueue"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/live/dynamolive"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
)

const (
	table = "rateLimit"
	user  = "canary-user-" // which no log may have
)

// Its steps build on one another, in this order.
func TestTheStackAsDeployed(t *testing.T) {
	if os.Getenv("RECORDER_ADDRESS") == "" {
		t.Skip("make deployment runs it, on an emulator")
	}
	s := &stack{cfg: configuration(t), recorder: record(t)}
	// A second would do on AWS, which does not start all of it on one small machine.
	parameters := []string{`CleanupSchedule="rate(1 minute)"`, "DecisionTimeout=5s"}
	s.deploy(t, parameters...)
	s.allowBatches(t)
	s.put(t, user+"long-gone", time.Now().Add(-time.Hour))
	s.invoke(t, "posts-guard", event(user+"0", "update_post")) // which looks for live limits, and again after 30 s

	for _, step := range []struct {
		name string
		run  func(*stack, *testing.T)
	}{
		{"EveryGuardRefusesOverItsLimit", (*stack).everyGuardRefuses},
		{"AGuardsRoleCanNotScan", (*stack).aGuardsRoleCanNotScan},
		{"ABackendMayInvokeGuardsAlone", (*stack).aBackendMayInvokeGuardsAlone},
		{"JobsWaitAndGetThrough", (*stack).jobsWaitAndGetThrough},
		{"ALiveLimitActs", (*stack).aLiveLimitActs},
		{"CleanupErasesAUser", (*stack).cleanupErasesAUser},
		{"ACleanupThatFailsIsKept", (*stack).aCleanupThatFailsIsKept},
		{"TheScheduleRunsCleanup", (*stack).theScheduleRunsCleanup},
		{"LogsAreOneGroupWithoutUserIds", (*stack).logsAreOneGroup},
		{"RolesAllowWhatIsDoneAndNoMore", (*stack).rolesAllowWhatIsDone},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(s, t) }) {
			t.FailNow()
		}
	}

	t.Run("AnUpdateActs", func(t *testing.T) {
		// Every parameter that a condition hangs on.
		s.deploy(t, append(parameters, "Mode=shadow", "MaxWriteUnitsPerSecond=1000", "MaxReadUnitsPerSecond=1000", "GuardConcurrency=5",
			"AlarmTopicArn=arn:aws:sns:us-east-1:"+account+":alarms", "UrlPrincipal="+backend)...)
		s.invoke(t, "posts-guard", `{"userId": "`+user+`2", "activity": "create_post", "count": 10}`)
		if a := s.invoke(t, "posts-guard", event(user+"2", "create_post")); !a.Allowed || a.Reason != "shadow" {
			t.Errorf("over the limit in shadow: %+v", a)
		}
	})
	t.Run("UrlsAreSigned", s.urlsAreSigned)
	t.Run("TheTableOutlivesTheStack", func(t *testing.T) {
		s.put(t, user+"kept", time.Now().Add(time.Hour))
		run(t, nil, "sam", "delete", "--config-env", "local", "--no-prompts", "--region", "us-east-1", "--stack-name", "guards")
		if _, _, err := attempt(t, nil, "aws", "lambda", "get-function", "--function-name", "posts-guard"); err == nil {
			t.Error("posts-guard is still there")
		}
		if !s.has(t, user+"kept") {
			t.Error("the table's items are gone")
		}
	})
}

func event(user, activity string) string {
	return fmt.Sprintf(`{"userId": %q, "activity": %q}`, user, activity)
}

func (s *stack) everyGuardRefuses(t *testing.T) {
	for _, g := range limits.All {
		activity := g.Activities[0]
		if _, ok := activity.Limit.(ratelimit.Reservoir); ok {
			continue // jobsWaitAndGetThrough
		}
		limit, _ := activity.Limit.Quota()
		full := fmt.Sprintf(`{"userId": %q, "activity": %q, "count": %d}`, user+"1", activity.Name, limit)
		var first, refused answer
		for range 2 { // a window may end in between
			first = s.invoke(t, g.Name, full)
			if refused = s.invoke(t, g.Name, event(user+"1", activity.Name)); !refused.Allowed {
				break
			}
		}
		if refused.Allowed || refused.Reason != "limited" || refused.Message != g.Message || refused.ActivityCount != limit {
			t.Errorf("%s after %d at once: %+v, then %+v, want it refused", g.Name, limit, first, refused)
		}
		for _, op := range []string{"status", "reset"} {
			a := s.ask(t, g.Name, fmt.Sprintf(`{"userId": %q, "activity": %q, "op": %q}`, user+"1", activity.Name, op))
			if a.ErrorType != "" || a.Allowed != (op == "reset") {
				t.Errorf("%s, %s: %+v", g.Name, op, a)
			}
		}
	}
}

// ask invokes by the SDK, which is faster than the CLI.
func (s *stack) ask(t *testing.T, function, payload string) (a answer) {
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

// jobsWaitAndGetThrough sends 25 jobs at once: 10 may run, 10 in the next ten
// seconds and 5 after them, off the queue.
func (s *stack) jobsWaitAndGetThrough(t *testing.T) {
	var wg sync.WaitGroup
	answers := make([]answer, 25)
	slots := make(chan struct{}, 4)
	for i := range answers {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			answers[i] = s.ask(t, "jobs-guard", fmt.Sprintf(`{"userId": %q, "activity": "update_member_role", "job": {"n": %d}}`, user+"g1", i))
		})
	}
	wg.Wait()
	count := map[string]int{}
	for _, a := range answers {
		count[a.Reason]++
	}
	if count["ok"]+count["delayed"] != len(answers) || count["delayed"] < 5 {
		t.Fatalf("25 jobs at once: %v, want 10 ok in each window and the others delayed", count)
	}
	// One comes early, as SQS can't wait longer than 15 minutes, and has to go back; one comes late, and needs a new place.
	queue := sqsqueue.New(s.cfg, s.ids["DelayedQueue"])
	for n, at := range []time.Time{time.Now().Add(20 * time.Second), time.Now().Add(-time.Hour)} {
		job := guard.Job{UserID: user + "g2", Activity: "update_member_role", Enqueued: 1, Job: json.RawMessage(fmt.Sprint(n))}
		job.ReadyAt = at.Truncate(10 * time.Second).UnixMilli() // a window's beginning
		if err := queue.Send(t.Context(), job, 0); err != nil {
			t.Fatal(err)
		}
	}
	want := count["delayed"] + 2
	seen := map[string]bool{}
	until(t, time.Minute, fmt.Sprintf("%d jobs on the ready queue", want), func() bool {
		out, err := sqs.NewFromConfig(s.cfg).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: new(s.ids["ReadyQueue"]), MaxNumberOfMessages: 10, WaitTimeSeconds: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range out.Messages {
			seen[*m.Body] = true
		}
		return len(seen) >= want
	})
	if len(seen) != want {
		t.Errorf("%d jobs on the ready queue, want %d: %v", len(seen), want, seen)
	}
}

// An instance looks for live limits every 30 s. The operator's commands find the
// emulator by the variables that every SDK knows.
func (s *stack) aLiveLimitActs(t *testing.T) {
	guards := filepath.Join(t.TempDir(), "guards")
	run(t, nil, "go", "build", "-o", guards, "./cmd/guards")
	run(t, nil, guards, "limits", "set", "create_post", "3/1m", "--why", "test")
	run(t, nil, guards, "grant", "--user", user+"vip", "--role", "admin", "--until", time.Now().Add(48*time.Hour).Format(time.DateOnly), "--reason", "test")
	until(t, 45*time.Second, "posts-guard limits to 3 a minute", func() bool {
		return s.ask(t, "posts-guard", event(user+"4", "create_post")).Limit == 3
	})
	if a := s.ask(t, "posts-guard", event(user+"vip", "create_post")); a.Reason != "bypassed" {
		t.Errorf("a granted role: %+v", a)
	}
}

func (s *stack) cleanupErasesAUser(t *testing.T) {
	s.put(t, user+"vip", time.Now().Add(time.Hour))
	s.invoke(t, "cleanup", `{"userId": "`+user+`vip"}`)
	if s.has(t, user+"vip") {
		t.Error("an erased user's items are still there")
	}
	settings, _, err := live.Read(t.Context(), dynamolive.New(dynamostore.New(s.cfg, table).Table()))
	if err != nil || len(settings.Grants) != 0 || len(settings.Activities) != 1 {
		t.Errorf("after it the live limits are %+v, %v, want the grant gone and the limit kept", settings, err)
	}
}

// A run that fails is there for a person to see. Lambda itself sends it, by
// what SAM has added to cleanup's role.
func (s *stack) aCleanupThatFailsIsKept(t *testing.T) {
	run(t, nil, "aws", "lambda", "invoke", "--function-name", "cleanup", "--invocation-type", "Event", "--payload", `{"dryrun": 1}`, os.DevNull)
	until(t, 30*time.Second, "a message on CleanupDeadLetterQueue", func() bool {
		out, err := sqs.NewFromConfig(s.cfg).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: new(s.ids["CleanupDeadLetterQueue"])})
		if err != nil {
			t.Fatal(err)
		}
		return len(out.Messages) == 1
	})
}

func (s *stack) logsAreOneGroup(t *testing.T) {
	var out struct{ Events []struct{ Message string } }
	s.aws(t, &out, "logs", "filter-log-events", "--log-group-name", s.ids["LogGroup"])
	var log strings.Builder
	for _, e := range out.Events {
		log.WriteString(e.Message + "\n")
	}
	if strings.Contains(log.String(), user) {
		t.Error("a user's id in the log")
	}
	for _, want := range []string{`"Guard":"posts-guard"`, `"Guard":"jobs-guard"`, `"Finished":1`, `"NearLimit":1`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in %d lines of log", want, len(out.Events))
		}
	}
}

func (s *stack) theScheduleRunsCleanup(t *testing.T) {
	until(t, 90*time.Second, "what had expired is gone", func() bool { return !s.has(t, user+"long-gone") })
}

// put has the table hold something of a user's.
func (s *stack) put(t *testing.T, user string, expires time.Time) {
	t.Helper()
	_, err := dynamodb.NewFromConfig(s.cfg).PutItem(t.Context(), &dynamodb.PutItemInput{TableName: new(table), Item: map[string]types.AttributeValue{
		"userId":         &types.AttributeValueMemberS{Value: user},
		"activityWindow": &types.AttributeValueMemberS{Value: "create_post#1"},
		"expiresAt":      &types.AttributeValueMemberN{Value: fmt.Sprint(expires.Unix())},
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// has says whether the table holds something of a user's.
func (s *stack) has(t *testing.T, user string) bool {
	t.Helper()
	out, err := dynamodb.NewFromConfig(s.cfg).Query(t.Context(), &dynamodb.QueryInput{
		TableName: new(table), KeyConditionExpression: new("userId = :u"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":u": &types.AttributeValueMemberS{Value: user}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return len(out.Items) > 0
}
