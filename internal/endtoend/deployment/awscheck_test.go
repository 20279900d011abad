package deployment_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/tools/awscheck"
)

// checked are the checks of make aws-check, and the figures or the reason that each has on the emulator.
var checked = map[string]string{
	"roles":         "passed: calls",
	"jobs":          "passed: jobs lateMaxMillis lateMinMillis lateP50Millis",
	"conflicts":     "passed: create_postAllowed create_postUnavailable ingestAllowed ingestUnavailable pinAllowed pinUnavailable",
	"latency":       "passed: callP50Millis callP99Millis calls",
	"settings":      "skipped: the emulator's CloudFormation sets neither time to live nor recovery nor RecursiveLoop",
	"denied-write":  "skipped: the emulator does not know the condition dynamodb:LeadingKeys",
	"circles":       "skipped: the emulator does not detect a loop through a queue",
	"snapstart":     "skipped: the emulator starts no extension, and restores no snapshot",
	"cold-start":    "skipped: the emulator does not report the time of a start",
	"agent":         "skipped: the emulator starts no extension",
	"throttled-key": "skipped: the emulator never throttles an item",
	"alarms":        "skipped: it takes half an hour: run it with LONG=1",
}

// awsCheck starts make aws-check's program, which creates its stacks on the emulator. It writes its progress to errs.
func awsCheck(t *testing.T, program string, errs io.Writer, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, append(args, "-yes")...)
	cmd.Dir, cmd.Stderr = "../../..", errs
	return cmd
}

func TestTheChecksOfAWSRunOnTheEmulator(t *testing.T) {
	if os.Getenv("RECORDER_ADDRESS") == "" {
		t.Skip("make deployment runs this test on an emulator")
	}
	record(t) // functions send their requests there
	dir := t.TempDir()
	program, file := filepath.Join(dir, "aws-check"), filepath.Join(dir, "result.json")
	run(t, nil, "go", "build", "-o", program, "./tools/awscheck/run")

	t.Run("to the end", func(t *testing.T) {
		var errs bytes.Buffer
		if out, err := awsCheck(t, program, &errs, "-out", file).Output(); err != nil {
			t.Fatalf("%v\n%s%s", err, out, &errs)
		}
		text := testkit.Must(os.ReadFile(file))(t)
		var report awscheck.Report
		if err := json.Unmarshal(text, &report); err != nil || report.Endpoint == "" || report.Commit == "" || report.Region != "us-east-1" || report.Long {
			t.Errorf("%v, %s", err, text)
		}
		got := map[string]string{}
		for _, c := range report.Checks {
			got[c.Name] = string(c.Status) + ": " + c.Reason + names(c.Figures)
		}
		testkit.Same(t, "checks", checked, got)
		leavesNothing(t, errs.String())
	})

	t.Run("until Ctrl-C", func(t *testing.T) {
		progress, errs, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd := awsCheck(t, program, errs)
		testkit.OK(t, cmd.Start())
		_ = errs.Close() // the program has it, too
		said := ""
		for buffer := make([]byte, 1024); ; {
			n, err := progress.Read(buffer)
			if err != nil {
				break
			}
			before := strings.Count(said, "creating")
			if said += string(buffer[:n]); before < 2 && strings.Count(said, "creating") == 2 { // the first stack is there
				_ = cmd.Process.Signal(syscall.SIGINT)
			}
		}
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
			t.Errorf("%v, want the status 130\n%s", err, said)
		}
		leavesNothing(t, said)
	})
}

// names returns the names of figures, sorted.
func names(f awscheck.Figures) string {
	var all []string
	for _, found := range regexp.MustCompile(`(\w+):`).FindAllStringSubmatch(fmt.Sprint(f), -1) { // a map is printed sorted
		all = append(all, found[1])
	}
	return strings.Join(all, " ")
}

// leavesNothing expects that nothing is there whose name has the number of this run.
func leavesNothing(t *testing.T, said string) {
	t.Helper()
	id := regexp.MustCompile(`guards-check-([0-9a-f]{6})`).FindStringSubmatch(said)
	if id == nil {
		t.Fatalf("no stack was named:\n%s", said)
	}
	for _, list := range [][]string{
		{"cloudformation", "list-stacks", "--query", "StackSummaries[?StackStatus!='DELETE_COMPLETE'].StackName"},
		{"lambda", "list-functions", "--query", "Functions[].FunctionName"},
		{"lambda", "list-layers", "--query", "Layers[].LayerName"},
		{"dynamodb", "list-tables"},
		{"iam", "list-roles", "--query", "Roles[].RoleName"},
		{"iam", "list-policies", "--scope", "Local", "--query", "Policies[].PolicyName"},
		{"logs", "describe-log-groups", "--query", "logGroups[].logGroupName"},
		{"s3api", "list-objects-v2", "--bucket", "artifacts", "--query", "Contents[].Key"},
	} {
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Second) { // a function that ends can still write a line
			left := run(t, nil, "aws", append(list, "--output", "text")...)
			if !strings.Contains(left, id[1]) {
				break
			}
			if time.Now().After(end) {
				t.Errorf("%s is left:\n%s", list[1], left)
				break
			}
		}
	}
}
