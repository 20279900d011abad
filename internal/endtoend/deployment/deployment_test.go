// Package deployment_test tests the stack as it is deployed. SAM builds template.yaml and deploys it to an AWS emulator, which
// enforces IAM and runs the real binaries. make deployment runs these tests.
package deployment_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

const (
	table = "rateLimit"
	user  = "canary-user-" // begins each user id of these tests; no log may contain it
)

// The steps build on one another and run in this order.
func TestDeployedStackKeepsItsPromises(t *testing.T) {
	if os.Getenv("RECORDER_ADDRESS") == "" {
		t.Skip("make deployment runs this test on an emulator")
	}
	t.Parallel()                                                  // with TestAProjectWithoutGoIsDeployed, which has an emulator of its own
	cfg := testkit.Must(config.LoadDefaultConfig(t.Context()))(t) // the deployer's, from the environment
	s := &stack{cfg: cfg, recorder: record(t)}
	// One second is enough on AWS. Here one small machine starts all functions, which takes longer.
	parameters := []string{`CleanupSchedule="rate(1 minute)"`, "DecisionTimeout=5s"}
	s.deploy(t, parameters...)
	s.allowBatches(t)
	s.put(t, user+"long-gone", time.Now().Add(-time.Hour))
	s.invoke(t, "posts-guard", event(user+"0", "update_post")) // it reads the live limits now, and again after 30 s

	for _, step := range []struct {
		name string
		run  func(*stack, *testing.T)
	}{
		{"each guard refuses over its limit", (*stack).everyGuardRefuses},
		{"the role of a guard can not scan", (*stack).guardRoleCanNotScan},
		{"a backend may invoke only guards", (*stack).backendMayInvokeOnlyGuards},
		{"delayed jobs reach the ready queue", (*stack).delayedJobsReachTheReadyQueue},
		{"a live limit takes effect", (*stack).liveLimitTakesEffect},
		{"cleanup erases a user", (*stack).cleanupErasesAUser},
		{"a failed cleanup goes to the dead-letter queue", (*stack).failedCleanupGoesToTheQueue},
		{"the schedule runs cleanup", (*stack).theScheduleRunsCleanup},
		{"all logs are in one group without user ids", (*stack).logsAreOneGroup},
		{"roles allow what functions do and no more", (*stack).rolesAllowWhatFunctionsDo},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(s, t) }) {
			t.FailNow()
		}
	}

	t.Run("an update of the stack takes effect", func(t *testing.T) {
		// These parameters turn on every condition of the template.
		s.deploy(t, append(parameters, "Mode=shadow", "MaxWriteUnitsPerSecond=1000", "MaxReadUnitsPerSecond=1000", "GuardConcurrency=5",
			"AlarmTopicArn=arn:aws:sns:us-east-1:"+account+":alarms", "UrlPrincipal="+backend)...)
		s.invoke(t, "posts-guard", `{"userId": "`+user+`2", "activity": "create_post", "count": 10}`)
		if a := s.invoke(t, "posts-guard", event(user+"2", "create_post")); !a.Allowed || a.Reason != "shadow" {
			t.Errorf("over the limit in shadow mode: %+v, want it allowed with the reason shadow", a)
		}
	})
	t.Run("URLs need signed requests", s.urlsNeedSignedRequests)
	t.Run("the table outlives the stack", func(t *testing.T) {
		s.put(t, user+"kept", time.Now().Add(time.Hour))
		run(t, nil, "sam", "delete", "--config-env", "local", "--no-prompts", "--region", "us-east-1", "--stack-name", "guards")
		if _, _, err := attempt(t, nil, "aws", "lambda", "get-function", "--function-name", "posts-guard"); err == nil {
			t.Error("posts-guard still exists")
		}
		if !s.has(t, user+"kept") {
			t.Error("the table's items are gone")
		}
	})
}

// event returns an event for one action.
func event(user, activity string) string {
	return fmt.Sprintf(`{"userId": %q, "activity": %q}`, user, activity)
}

// everyGuardRefuses uses up each limit and expects that the next action is refused.
func (s *stack) everyGuardRefuses(t *testing.T) {
	for _, g := range cricket.All {
		activity := g.Activities[0]
		if activity.Limit.Queues() {
			continue // see delayedJobsReachTheReadyQueue
		}
		limit := activity.Limit.Max()
		full := fmt.Sprintf(`{"userId": %q, "activity": %q, "count": %d}`, user+"1", activity.Name, limit)
		op := func(name string) answer {
			return s.invoke(t, g.Name, fmt.Sprintf(`{"userId": %q, "activity": %q, "op": %q}`, user+"1", activity.Name, name))
		}
		var first, refused, status answer
		for range 2 { // a window may end between the calls
			first = s.invoke(t, g.Name, full)
			refused = s.invoke(t, g.Name, event(user+"1", activity.Name))
			if status = op("status"); !refused.Allowed && !status.Allowed {
				break
			}
		}
		if refused.Allowed || refused.Reason != "limited" || refused.Message != g.Message || refused.ActivityCount != limit {
			t.Errorf("%s after %d actions at once: %+v, then %+v, want the second refused", g.Name, limit, first, refused)
		}
		if status.ErrorType != "" || status.Allowed {
			t.Errorf("%s, op status: %+v", g.Name, status)
		}
		if reset := op("reset"); reset.ErrorType != "" || !reset.Allowed {
			t.Errorf("%s, op reset: %+v", g.Name, reset)
		}
	}
}

// liveLimitTakesEffect sets a limit and waits, because an instance reads the live limits every 30 s. The operator's commands
// find the emulator by the usual variables of AWS's SDKs.
func (s *stack) liveLimitTakesEffect(t *testing.T) {
	guards := filepath.Join(t.TempDir(), "guards")
	run(t, nil, "go", "build", "-o", guards, "./cmd/guards")
	run(t, nil, guards, "limits", "set", "create_post", "3/1m", "--why", "test")
	run(t, nil, guards, "grant", "--user", user+"vip", "--role", "admin", "--until", time.Now().Add(48*time.Hour).Format(time.DateOnly), "--reason", "test")
	until(t, 45*time.Second, "posts-guard applies the limit of 3 a minute", func() bool {
		return s.invoke(t, "posts-guard", event(user+"4", "create_post")).Limit == 3
	})
	if a := s.invoke(t, "posts-guard", event(user+"vip", "create_post")); a.Reason != "bypassed" {
		t.Errorf("a user with a granted role: %+v, want the reason bypassed", a)
	}
}

// logsAreOneGroup expects lines of several functions, and no user id, in one group.
func (s *stack) logsAreOneGroup(t *testing.T) {
	var out struct{ Events []struct{ Message string } }
	s.aws(t, &out, "logs", "filter-log-events", "--log-group-name", s.ids["LogGroup"])
	var log strings.Builder
	for _, e := range out.Events {
		log.WriteString(e.Message + "\n")
	}
	if strings.Contains(log.String(), user) {
		t.Error("the log contains a user id")
	}
	for _, want := range []string{`"Guard":"posts-guard"`, `"Guard":"jobs-guard"`, `"Finished":1`, `"NearLimit":1`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%d lines of log don't contain %s", len(out.Events), want)
		}
	}
}
