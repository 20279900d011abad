package awscheck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

// check returns a check that ends with this error.
func check(name string, err error) Check {
	return Check{Name: name, Run: func(context.Context, *Stack) (Figures, error) { return Figures{"n": 1}, err }}
}

func TestTheStatusOfACheck(t *testing.T) {
	far, long := check("far", nil), check("long", nil)
	far.AWSOnly, long.Long = "no emulator does it", true
	checks := []Check{check("right", nil), check("wrong", errors.New("it is 3, want 2")), check("slow", skipped("too slow")), far, long}
	for _, tt := range []struct {
		name, endpoint string
		long           bool
		want           []string
	}{
		{"on AWS", "", false, []string{
			"right passed", "wrong failed it is 3, want 2", "slow skipped too slow", "far passed", "long skipped it takes half an hour: run it with LONG=1",
		}},
		{"on an emulator, with LONG=1", "http://localhost", true, []string{
			"right passed", "wrong failed it is 3, want 2", "slow skipped too slow", "far skipped no emulator does it", "long passed",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, r := range runChecks(t.Context(), checks, &Stack{Endpoint: tt.endpoint}, tt.long, io.Discard) {
				got = append(got, strings.TrimSpace(r.Name+" "+string(r.Status)+" "+r.Reason))
			}
			testkit.Same(t, "results", tt.want, got)
		})
	}
}

// testRun returns a run of these checks. It notes when something is removed, and whether the context still lives then.
func testRun(t *testing.T, checks ...Check) (r run, removed *[]error) {
	t.Helper()
	removed = new([]error)
	return run{
		deploy: func(context.Context) error { return nil },
		remove: func(ctx context.Context) []string { *removed = append(*removed, ctx.Err()); return nil },
		checks: checks, stack: &Stack{Region: "eu-west-1"}, log: io.Discard,
	}, removed
}

func TestAnInterruptedRunRemovesWhatItCreated(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	during := Check{Name: "during", Run: func(ctx context.Context, _ *Stack) (Figures, error) {
		interrupt()
		return nil, ctx.Err()
	}}
	r, removed := testRun(t, check("before", nil), during, check("after", nil))
	report := r.run(ctx)
	var got []string
	for _, c := range report.Checks {
		got = append(got, c.Name+" "+string(c.Status)+" "+c.Reason)
	}
	const interrupted = "skipped the run was interrupted"
	want := []string{"before passed ", "during " + interrupted, "after " + interrupted}
	testkit.Same(t, "checks", want, got)
	if len(*removed) != 1 || (*removed)[0] != nil || report.exit() != exitInterrupted {
		t.Errorf("removed %v, exit %d, want one removal whose context lives, and 130", *removed, report.exit())
	}
}

func TestAFailedDeployIsRemovedToo(t *testing.T) {
	r, removed := testRun(t, check("never", nil))
	r.deploy = func(context.Context) error { return errors.New("no permission") }
	report := r.run(t.Context())
	if len(*removed) != 1 || len(report.Checks) != 0 || report.Error != "no permission" || report.exit() != exitAWS {
		t.Errorf("removed %d times, %+v, exit %d, want one removal, no check, and 3", len(*removed), report, report.exit())
	}
}

func TestKeepRemovesNothing(t *testing.T) {
	r, removed := testRun(t, check("right", nil))
	r.keep = true
	if report := r.run(t.Context()); len(*removed) != 0 || report.exit() != exitPassed {
		t.Errorf("removed %d times, exit %d, want none and 0", len(*removed), report.exit())
	}
}

func TestWhatIsLeftIsReported(t *testing.T) {
	r, _ := testRun(t, check("wrong", errors.New("3")))
	r.remove = func(context.Context) []string { return []string{"the table check-1f9c03: in use"} }
	var out, errs bytes.Buffer
	if status := write(r.run(t.Context()), options{json: true}, &out, &errs); status != exitAWS || !strings.Contains(errs.String(), "-remove") {
		t.Errorf("exit %d, and %q, want 3 and how to remove the rest", status, errs.String())
	}
	var report Report
	if err := json.Unmarshal(out.Bytes(), &report); err != nil || len(report.Left) != 1 || report.Checks[0].Status != Failed {
		t.Errorf("%v, %+v, want one thing that is left and a failed check", err, report)
	}
}

func TestOnlyYesCreatesSomething(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, "YES\n": true, "n\n": false, "\n": false, "": false, "yesterday\n": false} {
		if got := agrees(t.Context(), "Create? ", false, strings.NewReader(answer), io.Discard); got != want {
			t.Errorf("%q: %v, want %v", answer, got, want)
		}
	}
	if !agrees(t.Context(), "Create? ", true, strings.NewReader(""), io.Discard) {
		t.Error("-yes was not enough")
	}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	silent, keyboard := io.Pipe()
	defer keyboard.Close() //nolint:errcheck // it ends the goroutine that still reads
	if agrees(ctx, "Create? ", false, silent, io.Discard) {
		t.Error("Ctrl-C was a yes")
	}
}

func TestArguments(t *testing.T) {
	for _, tt := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"-help"}, exitPassed, "exit status: 0"},
		{[]string{"-wrong"}, exitUsage, "-wrong"},
		{[]string{"all"}, exitUsage, `the arguments are ["all"], want none`},
		{[]string{"-remove", "*"}, exitUsage, "want the six digits"},
	} {
		var out, errs bytes.Buffer
		if status := Main(t.Context(), tt.args, strings.NewReader(""), &out, &errs); status != tt.status || !strings.Contains(errs.String(), tt.says) || out.Len() > 0 {
			t.Errorf("%q: status %d, %q, want %d and %q", tt.args, status, errs.String(), tt.status, tt.says)
		}
	}
}

// Each check measures a statement of the page, and the page promises no other check.
func TestThePageNamesEachCheck(t *testing.T) {
	page := testkit.Must(os.ReadFile("../../docs/unmeasured.md"))(t)
	var want, got []string
	for _, c := range Checks {
		want = append(want, c.Name)
	}
	for _, found := range regexp.MustCompile("(?m)^\\|.*\\| `([a-z-]+)`[^|`]*\\|$").FindAllStringSubmatch(string(page), -1) {
		got = append(got, found[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	testkit.Same(t, "checks in docs/unmeasured.md", want, slices.Compact(got))
}
