package rules_test

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/workbench/scaffold"
	app "github.com/cric-talk/guards/limits"
)

// allowedActions lists all that the role of a function that is no guard may do, and on which resource of the template.
var allowedActions = map[string][]string{
	"delayed-jobs": slices.Concat(on("Table", "dynamodb:UpdateItem", "dynamodb:GetItem"),
		on("DelayedQueue", "sqs:SendMessage"), on("ReadyQueue", "sqs:SendMessage")),
	// GetItem and UpdateItem remove the grants of an erased user.
	"cleanup": on("Table", "dynamodb:Scan", "dynamodb:Query", "dynamodb:PartiQLDelete", "dynamodb:GetItem", "dynamodb:UpdateItem"),
}

// guardActions lists all that the role of a guard may do. A reservoir has no reset, so a guard with reservoirs only deletes
// nothing.
func guardActions(g limits.Guard) []string {
	actions := on("Table", "dynamodb:UpdateItem", "dynamodb:GetItem")
	if slices.ContainsFunc(g.Activities, func(a limits.Activity) bool { return !a.Unlimited && !a.Limit.Queues() }) {
		actions = append(actions, on("Table", "dynamodb:DeleteItem")...)
	}
	if g.DelayedQueue {
		actions = append(actions, on("DelayedQueue", "sqs:SendMessage")...)
	}
	return actions
}

// on returns each action together with its resource.
func on(resource string, actions ...string) (list []string) {
	for _, action := range actions {
		list = append(list, action+" on "+resource+".Arn")
	}
	return list
}

func TestEachRoleAllowsExactlyTheListedActions(t *testing.T) {
	functions := template(t).functions()
	for _, folder := range folders(t) {
		want, listed := allowedActions[folder]
		if g, ok := limits.Guards(app.All).Named(folder); ok {
			want, listed = guardActions(g), true
		}
		if !listed {
			t.Errorf("functions/%s is missing from allowedActions in this test", folder)
			continue
		}
		var got []string
		for _, policy := range functions[scaffold.LogicalID(folder)+"Function"].Properties.Policies {
			if len(policy.Statement) == 0 {
				t.Errorf("functions/%s: a policy is not an inline statement", folder)
			}
			for _, s := range policy.Statement {
				resource, ok := s.Resource.(string)
				if s.Effect != "Allow" || !ok || !strings.HasSuffix(resource, ".Arn") {
					t.Errorf("functions/%s: %s %v on %v, want Allow on one !GetAtt X.Arn", folder, s.Effect, s.Action, s.Resource)
				}
				got = append(got, on(strings.TrimSuffix(resource, ".Arn"), s.Action...)...)
			}
		}
		if diff := gocmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got))); diff != "" {
			t.Errorf("functions/%s: IAM actions in template.yaml. If you mean them, change allowedActions in this test (-want +got):\n%s", folder, diff)
		}
	}
}

// A guard has the settings of Globals, except for its name, its policy and the queue of a guard with places.
func TestGuardsHaveTheSettingsOfGlobals(t *testing.T) {
	functions := template(t).functions()
	for _, g := range app.All {
		id := scaffold.LogicalID(g.Name) + "Function"
		if own := functions[id].Properties; own.Timeout != 0 || len(own.Environment.Variables) > 0 && !g.DelayedQueue {
			t.Errorf("%s in template.yaml has a Timeout of %d s and the variables %v of its own: remove them", id, own.Timeout, own.Environment.Variables)
		}
	}
}

func TestTemplateAndMakefileUseTheSameArchitecture(t *testing.T) {
	goarch := regexp.MustCompile(`(?m)^GOARCH_LAMBDA \?= (\w+)$`).FindStringSubmatch(read(t, "project.mk"))
	if goarch == nil {
		t.Fatal("project.mk has no line GOARCH_LAMBDA ?= ...")
	}
	want := []string{map[string]string{"arm64": "arm64", "amd64": "x86_64"}[goarch[1]]}
	tmpl := template(t)
	if got := tmpl.Globals.Function.Architectures; !slices.Equal(got, want) {
		t.Errorf("Architectures in template.yaml are %v, want %v because GOARCH_LAMBDA is %s", got, want, goarch[1])
	}
	for id, f := range tmpl.functions() {
		if f.Properties.Architectures != nil {
			t.Errorf("%s has its own Architectures; make builds every function for GOARCH_LAMBDA", id)
		}
	}
}

func TestCleanupRunsEvery5MinutesAndEndsBeforeTheNextRun(t *testing.T) {
	tmpl := template(t)
	if got := tmpl.Parameters["CleanupSchedule"].Default; got != "rate(5 minutes)" {
		t.Errorf("the default of CleanupSchedule is %q, want rate(5 minutes)", got)
	}
	function := tmpl.functions()["CleanupFunction"].Properties
	if got := function.Timeout; got < 1 || got > 5*60 {
		t.Errorf("the Timeout of cleanup is %d s, want 1 to 300: a run must end before the next one starts", got)
	}
	var schedules []string
	for _, event := range function.Events {
		schedules = append(schedules, event.Type+" "+event.Properties.ScheduleExpression)
	}
	if !slices.Equal(schedules, []string{"ScheduleV2 CleanupSchedule"}) {
		t.Errorf("the events of cleanup are %q, want one ScheduleV2 with !Ref CleanupSchedule", schedules)
	}
}

func TestDelayedQueueFitsItsFunction(t *testing.T) {
	tmpl := template(t)
	worker := tmpl.functions()["DelayedJobsFunction"].Properties
	queue := tmpl.Resources["DelayedQueue"].Properties
	timeout := cmp.Or(worker.Timeout, tmpl.Globals.Function.Timeout)
	visibility, _ := queue.VisibilityTimeout.(uint64)
	hidden := int(visibility)
	if hidden < 6*timeout || timeout < 1 {
		t.Errorf("the VisibilityTimeout of DelayedQueue is %d s, want at least 6 times the function's Timeout of %d s, as Lambda's documentation recommends", hidden, timeout)
	}
	if to := queue.RedrivePolicy; to.Target != "DelayedDeadLetterQueue.Arn" || to.MaxReceiveCount < 5 {
		t.Errorf("the RedrivePolicy of DelayedQueue is %+v, want the dead-letter queue after at least 5 receives", to)
	}
	// delayed-jobs.md: a consumer remembers a job for half an hour. A second copy can fail until its last receive and then get
	// the last place ahead.
	ahead := app.Jobs.Activities[0].Limit.Rates()[0].Ahead
	if last := ahead + time.Duration(queue.RedrivePolicy.MaxReceiveCount*hidden)*time.Second; last > 30*time.Minute {
		t.Errorf("a second copy of a job can come %v later, want at most half an hour", last)
	}
	dead := tmpl.Resources["DelayedDeadLetterQueue"].Properties
	if dead.MessageRetentionPeriod <= queue.MessageRetentionPeriod || queue.MessageRetentionPeriod == 0 {
		t.Errorf("DelayedQueue keeps messages for %d s and its dead-letter queue for %d s, want longer: SQS counts from when a message was first sent", queue.MessageRetentionPeriod, dead.MessageRetentionPeriod)
	}
	for id, r := range tmpl.Resources {
		if r.Type == "AWS::SQS::Queue" && !r.Properties.SqsManagedSseEnabled {
			t.Errorf("%s is not encrypted", id)
		}
	}
	for name, e := range worker.Events {
		if p := e.Properties; e.Type != "SQS" || p.Queue != "DelayedQueue.Arn" || !slices.Equal(p.FunctionResponseTypes, []string{"ReportBatchItemFailures"}) {
			t.Errorf("event %s of delayed-jobs is %+v, want DelayedQueue with ReportBatchItemFailures", name, e)
		}
	}
	if len(worker.Events) != 1 {
		t.Errorf("delayed-jobs has %d events, want 1", len(worker.Events))
	}
	for id, want := range map[string]map[string]string{
		"JobsGuardFunction":   {"DELAYED_QUEUE_URL": "DelayedQueue"},
		"DelayedJobsFunction": {"DELAYED_QUEUE_URL": "DelayedQueue", "READY_QUEUE_URL": "ReadyQueue"},
	} {
		if diff := gocmp.Diff(want, tmpl.functions()[id].Properties.Environment.Variables); diff != "" {
			t.Errorf("variables of %s (-want +got):\n%s", id, diff)
		}
	}
}

// serverless holds the parts of template.yaml that the rules check. A value with !Ref, !Sub or !GetAtt reads as the string
// after the tag.
type serverless struct {
	Parameters map[string]struct {
		Default string `yaml:"Default"`
	} `yaml:"Parameters"`
	Globals struct {
		Function properties `yaml:"Function"`
	} `yaml:"Globals"`
	Resources map[string]resource `yaml:"Resources"`
}

type resource struct {
	Type       string     `yaml:"Type"`
	Properties properties `yaml:"Properties"`
}

type properties struct {
	Architectures []string `yaml:"Architectures"`
	Timeout       int      `yaml:"Timeout"` // seconds
	Environment   struct {
		Variables map[string]string `yaml:"Variables"`
	} `yaml:"Environment"`
	Policies []struct {
		Statement []struct {
			Effect   string   `yaml:"Effect"`
			Action   []string `yaml:"Action"`
			Resource any      `yaml:"Resource"`
		} `yaml:"Statement"`
	} `yaml:"Policies"`
	Events map[string]struct {
		Type       string `yaml:"Type"`
		Properties struct {
			ScheduleExpression    string   `yaml:"ScheduleExpression"`
			Queue                 string   `yaml:"Queue"`
			FunctionResponseTypes []string `yaml:"FunctionResponseTypes"`
		} `yaml:"Properties"`
	} `yaml:"Events"`

	// These belong to a queue. Times are in seconds.
	VisibilityTimeout      any  `yaml:"VisibilityTimeout"` // a number, or a parameter
	MessageRetentionPeriod int  `yaml:"MessageRetentionPeriod"`
	SqsManagedSseEnabled   bool `yaml:"SqsManagedSseEnabled"`
	RedrivePolicy          struct {
		Target          string `yaml:"deadLetterTargetArn"`
		MaxReceiveCount int    `yaml:"maxReceiveCount"`
	} `yaml:"RedrivePolicy"`
}

func (s serverless) functions() map[string]resource {
	functions := map[string]resource{}
	for id, r := range s.Resources {
		if r.Type == "AWS::Serverless::Function" {
			functions[id] = r
		}
	}
	return functions
}

func template(t *testing.T) serverless {
	t.Helper()
	var s serverless
	if err := yaml.Unmarshal([]byte(read(t, "template.yaml")), &s); err != nil {
		t.Fatal("template.yaml: ", err)
	}
	return s
}
