// Package guards_test holds the repository's own rules: what no compiler and no linter sees.
package guards_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/cleanup"
	"github.com/cric-talk/guards/internal/delayed"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/table"
)

// What each function may do to what, and nothing else to anything else.
var (
	guardActions   = on("Table", "dynamodb:UpdateItem", "dynamodb:GetItem", "dynamodb:DeleteItem")
	allowedActions = map[string][]string{
		"posts-guard":        guardActions,
		"comments-guard":     guardActions,
		"rooms-guard":        guardActions,
		"room-message-guard": guardActions,
		"pins-guard":         guardActions,
		"chat-guard":         guardActions,
		"ingest-guard":       guardActions,
		"jobs-guard":         slices.Concat(on("Table", "dynamodb:UpdateItem", "dynamodb:GetItem"), on("DelayedQueue", "sqs:SendMessage")),
		"delayed-jobs": slices.Concat(on("Table", "dynamodb:UpdateItem", "dynamodb:GetItem"),
			on("DelayedQueue", "sqs:SendMessage"), on("ReadyQueue", "sqs:SendMessage")),
		// GetItem and UpdateItem for the grants of a user who is erased.
		"cleanup": on("Table", "dynamodb:Scan", "dynamodb:Query", "dynamodb:PartiQLDelete", "dynamodb:GetItem", "dynamodb:UpdateItem"),
	}
)

func on(resource string, actions ...string) (list []string) {
	for _, action := range actions {
		list = append(list, action+" on "+resource+".Arn")
	}
	return list
}

func TestEveryFunctionFolderStandsInTheTemplateAndBack(t *testing.T) {
	inTemplate := map[string]bool{}
	for id := range template(t).functions() {
		inTemplate[id] = true
	}
	for _, folder := range folders(t) {
		id := logicalID(folder)
		if !inTemplate[id] {
			t.Errorf("functions/%s has no function %s in template.yaml", folder, id)
		}
		delete(inTemplate, id)
	}
	for id := range inTemplate {
		t.Errorf("%s in template.yaml has no folder under functions/ that maps to it", id)
	}
}

func TestEachFunctionMayDoExactlyWhatIsListed(t *testing.T) {
	functions := template(t).functions()
	for _, folder := range folders(t) {
		want, listed := allowedActions[folder]
		if !listed {
			t.Errorf("functions/%s is not in allowedActions of this test", folder)
			continue
		}
		var got []string
		for _, policy := range functions[logicalID(folder)].Properties.Policies {
			if len(policy.Statement) == 0 {
				t.Errorf("functions/%s: a policy that is no inline statement", folder)
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
			t.Errorf("functions/%s: IAM actions in template.yaml (-want +got):\n%s", folder, diff)
		}
	}
}

func TestTemplateAndMakefileNameOneArchitecture(t *testing.T) {
	goarch := regexp.MustCompile(`(?m)^GOARCH_LAMBDA \?= (\w+)$`).FindStringSubmatch(read(t, "Makefile"))
	if goarch == nil {
		t.Fatal("Makefile has no line GOARCH_LAMBDA ?= ...")
	}
	want := []string{map[string]string{"arm64": "arm64", "amd64": "x86_64"}[goarch[1]]}
	tmpl := template(t)
	if got := tmpl.Globals.Function.Architectures; !slices.Equal(got, want) {
		t.Errorf("template.yaml's Architectures are %v, want %v as GOARCH_LAMBDA is %s", got, want, goarch[1])
	}
	for id, f := range tmpl.functions() {
		if f.Properties.Architectures != nil {
			t.Errorf("%s has Architectures of its own; make builds all for GOARCH_LAMBDA", id)
		}
	}
}

// internal/lambdatest builds for the machine it runs on, and otherwise as make does.
func TestLambdatestBuildsAsMakeDoes(t *testing.T) {
	makes := regexp.MustCompile(`(?s)\ncompile = (\w+=\d) .*? go build (.*?) -o `).FindStringSubmatch(read(t, "Makefile"))
	builds := read(t, "internal/lambdatest/build.go")
	tests := regexp.MustCompile(`"go", "build", (.*), "-o"`).FindStringSubmatch(builds)
	if makes == nil || tests == nil {
		t.Fatal("the Makefile's compile = ... or build.go's exec.Command no longer reads as this test expects")
	}
	want := strings.Join(strings.Fields(strings.NewReplacer("\\\n", "", `"`, "").Replace(makes[2])), " ")
	got := strings.ReplaceAll(strings.Trim(tests[1], `"`), `", "`, " ")
	if got != want {
		t.Errorf("internal/lambdatest builds with %s, want %s as the Makefile", got, want)
	}
	if !strings.Contains(builds, `"`+makes[1]+`"`) {
		t.Errorf("internal/lambdatest builds without %s", makes[1])
	}
}

func TestCleanupRunsEvery5MinutesAndIsOverByThen(t *testing.T) {
	tmpl := template(t)
	if got := tmpl.Parameters["CleanupSchedule"].Default; got != "rate(5 minutes)" {
		t.Errorf("CleanupSchedule is %q by default, want rate(5 minutes)", got)
	}
	function := tmpl.functions()["CleanupFunction"].Properties
	if got := function.Timeout; got < 1 || got > 5*60 {
		t.Errorf("cleanup's Timeout is %d s, want 1 to 300: no longer than its schedule", got)
	}
	var schedules []string
	for _, event := range function.Events {
		schedules = append(schedules, event.Type+" "+event.Properties.ScheduleExpression)
	}
	if !slices.Equal(schedules, []string{"ScheduleV2 CleanupSchedule"}) {
		t.Errorf("cleanup's events are %q, want one ScheduleV2 of !Ref CleanupSchedule", schedules)
	}
}

func TestTheDelayedQueueSuitsItsFunction(t *testing.T) {
	tmpl := template(t)
	worker := tmpl.functions()["DelayedJobsFunction"].Properties
	queue := tmpl.Resources["DelayedQueue"].Properties
	timeout := cmp.Or(worker.Timeout, tmpl.Globals.Function.Timeout)
	if queue.VisibilityTimeout < 6*timeout || timeout < 1 {
		t.Errorf("DelayedQueue's VisibilityTimeout is %d s, want at least 6 times the function's %d s, as Lambda's documentation says", queue.VisibilityTimeout, timeout)
	}
	if to := queue.RedrivePolicy; to.Target != "DelayedDeadLetterQueue.Arn" || to.MaxReceiveCount < 5 {
		t.Errorf("DelayedQueue's RedrivePolicy is %+v, want the dead-letter queue after at least 5", to)
	}
	dead := tmpl.Resources["DelayedDeadLetterQueue"].Properties
	if dead.MessageRetentionPeriod <= queue.MessageRetentionPeriod || queue.MessageRetentionPeriod == 0 {
		t.Errorf("messages are kept for %d s and dead ones for %d s, which counts from when they were first sent", queue.MessageRetentionPeriod, dead.MessageRetentionPeriod)
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
		t.Errorf("delayed-jobs has %d events, want one", len(worker.Events))
	}
	for id, want := range map[string]map[string]string{
		"JobsGuardFunction":   {"DELAYED_QUEUE_URL": "DelayedQueue"},
		"DelayedJobsFunction": {"DELAYED_QUEUE_URL": "DelayedQueue", "READY_QUEUE_URL": "ReadyQueue"},
	} {
		if diff := gocmp.Diff(want, tmpl.functions()[id].Properties.Environment.Variables); diff != "" {
			t.Errorf("%s's variables (-want +got):\n%s", id, diff)
		}
	}
}

// SQS's client makes a binary larger and its start longer.
func TestOnlyFunctionsWithAQueueLinkSQS(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.ImportPath}} {{.Deps}}", "./functions/...", "./cmd/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "/aws-sdk-go-v2/service/sqs") {
			name, _, _ := strings.Cut(line, " ")
			got = append(got, path.Base(name))
		}
	}
	if want := []string{"delayed-jobs", "jobs-guard"}; !slices.Equal(got, want) {
		t.Errorf("%v link SQS's client, want %v alone", got, want)
	}
}

func TestSampleEventsAreWhatTheirFunctionsTake(t *testing.T) {
	handlers := map[string]interface {
		Invoke(context.Context, []byte) ([]byte, error)
	}{"cleanup": &cleanup.Cleanup{Table: dryTable{}}}
	for _, g := range limits.All {
		handlers[g.Name] = &guard.Guard{Rules: g, Limiter: &ratelimit.Limiter{Store: new(memstore.Store)}}
	}
	jobs := &guard.Guard{Rules: limits.Jobs, Limiter: &ratelimit.Limiter{Store: new(memstore.Store)}}
	handlers["delayed-jobs"] = &delayed.Worker{Guard: jobs, Delayed: anyQueue{}, Ready: anyQueue{}}
	for _, folder := range folders(t) {
		h, ok := handlers[folder]
		if !ok {
			t.Errorf("functions/%s is neither cleanup, delayed-jobs nor a guard of internal/limits", folder)
			continue
		}
		name := path.Join("functions", folder, "event.json")
		answer, err := h.Invoke(t.Context(), []byte(read(t, name)))
		if err != nil || bytes.Contains(answer, []byte("itemIdentifier")) { // a message that failed
			t.Errorf("%s: %s %v", name, answer, err)
		}
	}
}

type anyQueue struct{}

func (anyQueue) Send(context.Context, guard.Job, time.Duration) error { return nil }

// dryTable is cleaned by a dry run only: a sample is what people try first.
type dryTable struct{}

func (dryTable) Sweep(_ context.Context, s table.Sweep) (table.Swept, error) {
	if !s.DryRun {
		return table.Swept{}, &ratelimit.StoreError{What: "it is no dry run", Err: fs.ErrPermission}
	}
	return table.Swept{}, nil
}

func (d dryTable) Erase(ctx context.Context, _ string, s table.Sweep) (table.Swept, error) {
	return d.Sweep(ctx, s)
}

func TestGoFilesStaySmall(t *testing.T) {
	main := regexp.MustCompile(`^functions/[^/]+/main\.go$`)
	for name, content := range files(t) {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		most := 250
		if main.MatchString(name) {
			most = 39
		}
		if lines := bytes.Count(content, []byte("\n")); lines > most {
			t.Errorf("%s has %d lines, want at most %d", name, lines, most)
		}
	}
}

func TestNoFileNamesAPathOfOneMachine(t *testing.T) {
	local := regexp.MustCompile(`(?m)(^|[^\w.])/(root|home|work|Users)/.*$`)
	for name, content := range files(t) {
		if found := local.Find(content); found != nil {
			t.Errorf("%s names a path that exists on one machine only: %.80q", name, found)
		}
	}
}

func TestRelativeLinksInDocumentsExist(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s#]+)[^)]*\)`)
	for name, content := range files(t) {
		if path.Ext(name) != ".md" {
			continue
		}
		for _, found := range link.FindAllSubmatch(content, -1) {
			target := string(found[1])
			if strings.Contains(target, ":") { // https://, mailto:
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), target)); err != nil {
				t.Errorf("%s links to %s: %v", name, target, err)
			}
		}
	}
}

func TestEveryMakeTargetHasAHelpText(t *testing.T) {
	makefile := read(t, "Makefile")
	helped := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^([\w-]+):.* ## \S`).FindAllStringSubmatch(makefile, -1) {
		helped[found[1]] = true
	}
	for _, found := range regexp.MustCompile(`(?m)^\.PHONY: (.*)$`).FindAllStringSubmatch(makefile, -1) {
		for target := range strings.FieldsSeq(found[1]) {
			if !helped[target] {
				t.Errorf("make %s has no help: its rule wants a text after ##", target)
			}
			delete(helped, target)
		}
	}
	for target := range helped {
		t.Errorf("make %s is not .PHONY: a file of that name would hide it", target)
	}
}

// serverless is what the rules ask of template.yaml. !Ref, !Sub and !GetAtt read as the strings they stand before.
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

	// Of a queue, in seconds.
	VisibilityTimeout      int  `yaml:"VisibilityTimeout"`
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

// folders names each function: the folders under functions/.
func folders(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("functions")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// logicalID is posts-guard's PostsGuardFunction, as the Makefile's build-%Function maps it back.
func logicalID(folder string) string {
	var id strings.Builder
	for word := range strings.SplitSeq(folder, "-") {
		id.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return id.String() + "Function"
}

// files is every file that is in the repository or would be after git add.
func files(t *testing.T) map[string][]byte {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skip("only git knows which files are the project's, and git ls-files failed: ", err)
	}
	contents := map[string][]byte{}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		content, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) { // deleted, not yet committed
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		contents[name] = content
	}
	return contents
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
