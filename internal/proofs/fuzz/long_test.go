package fuzz_test

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/proofs/findings"
	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/testkit"
)

// targets are the fuzz targets of the project. Parts is how many of a hundred
// executions a target gets. Slow targets get few.
var targets = []struct {
	folder, name, what, holds string
	parts                     int
}{
	{"internal/input", "FuzzDecode", "any bytes as an event", "refused, or read as encoding/json reads it", 27},
	{"internal/pagefile", "FuzzRead", "any bytes as a page in JSON", "mistakes, or a valid page as encoding/json reads it", 2},
	{"internal/policy", "FuzzParse", "any text of a limit", "refused, or the same limit again from its own text", 1},
	{"internal/workbench/replay/traffic", "FuzzReader", "any file of recorded traffic", "each line that is read is a request that a guard accepts", 1},
	{"internal/ratelimit/dynamostore", "FuzzKey", "two users, activities and times", "different requests have different keys", 25},
	{"internal/live", "FuzzDocument", "any settings document", "limits that share a count with the code's; no user id in the log", 12},
	{"internal/proofs/fuzz", "FuzzEvent", "any event about a user, to a whole guard", "no request to the table if it is invalid; no user id in logs, metrics and errors", 6},
	{"internal/proofs/fuzz", "FuzzSubject", "any event about a room, to a whole guard, also over HTTP and in an outage", "no request to the table if it is invalid; no id of the room in logs, metrics, errors and answers", 4},
	{"internal/proofs/fuzz", "FuzzHTTP", "any body over HTTP, to a whole guard", "answered like the body alone", 5},
	{"internal/proofs/fuzz", "FuzzEnvelope", "any HTTP event, to a whole guard", "an answer in JSON, or invalid and no request to the table", 6},
	{"internal/proofs/fuzz", "FuzzKeys", "any two addresses or names, to IPKey and AccountKey of the client", "a valid user id, the same for the same network or name alone; or an ErrValidation", 3},
	{"internal/workbench/invokeapi", "FuzzServer", "any HTTP request, to the Invoke API", "a function gets each byte of the body, or valid JSON, or nothing", 2},
	{"internal/agentd", "FuzzHandler", "any HTTP request, to the agent", "what reaches a guard is a POST of JSON with the token, and of no browser", 2},
	{"internal/ratelimit/dynamostore", "FuzzStoredItem", "any stored item, to a whole decision", "at most two requests, three for a release; figures in their ranges", 4},
}

// executions is how often make prove runs the targets, all together.
const executions = 10_000_000

// No target is missing in the list, and none is only there.
func TestEachTargetIsListed(t *testing.T) {
	var listed, found []string
	parts := 0
	for _, target := range targets {
		parts += target.parts
		listed = append(listed, target.folder+" "+target.name)
	}
	target := regexp.MustCompile(`(?m)^func (Fuzz\w+)\(f \*testing\.F\)`)
	for name, content := range testkit.Files(t) {
		for _, match := range target.FindAllSubmatch(content, -1) {
			found = append(found, path.Dir(name)+" "+string(match[1]))
		}
	}
	slices.Sort(listed)
	slices.Sort(found)
	if diff := cmp.Diff(found, listed); diff != "" || parts != 100 {
		t.Errorf("%d parts, want 100 (-code +list):\n%s", parts, diff)
	}
}

// A long run finds no input that breaks a target. It takes minutes, so it runs
// only under make fuzz, for FUZZ_TIME each, and make prove.
func TestALongRunFindsNothing(t *testing.T) {
	prove.Explain(t, "fuzz")
	seconds := os.Getenv("FUZZ_TIME")
	if !prove.Long() && seconds == "" {
		t.Skip("make fuzz runs this test")
	}
	result := findings.Result{Tables: []findings.Table{{Title: "Each fuzz target", Head: []string{"target", "input", "what holds for each", "executions", "corpus"}}}}
	total := 0
	for _, target := range targets {
		length := seconds
		if length == "" {
			length = strconv.Itoa(executions/100*target.parts) + "x"
		}
		done, corpus := fuzz(t, target.folder, target.name, length)
		total += done
		row := []string{target.name, target.what, target.holds, strconv.Itoa(done), strconv.Itoa(corpus)}
		prove.Progress("%s", strings.Join(row, "  "))
		result.Tables[0].Rows = append(result.Tables[0].Rows, row)
	}
	if prove.Long() && total < executions {
		t.Errorf("%d executions, want at least %d", total, executions)
	}
	result.Figures = []findings.Figure{
		{What: "executions", Value: strconv.Itoa(total)},
		{What: "inputs that panic, or break what must hold", Value: "0"}, // each one ends this test
	}
	prove.Save(t, "fuzz", result)
}

// progress is a line of go test -fuzz.
var progress = regexp.MustCompile(`execs: (\d+) .*new interesting: \d+ \(total: (\d+)\)`)

// fuzz runs a target. It returns how many inputs it tried, and how many of them
// the corpus holds then. Any input that breaks the target fails the test.
func fuzz(t *testing.T, folder, name, length string) (executions, corpus int) {
	t.Helper()
	var out bytes.Buffer
	err := findings.Run(t.Context(), "../../..", &out, []string{"PROVE="}, "go", "test", "-run=^$", "-fuzz=^"+name+"$", "-fuzztime="+length, "./"+folder)
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, &out)
	}
	lines := progress.FindAllStringSubmatch(out.String(), -1)
	if len(lines) == 0 {
		t.Fatalf("%s says nothing about its executions:\n%s", name, &out)
	}
	last := lines[len(lines)-1]
	if _, err := fmt.Sscan(last[1]+" "+last[2], &executions, &corpus); err != nil {
		t.Fatal(err)
	}
	return executions, corpus
}
