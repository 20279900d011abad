// Package awscheck measures on a real AWS account what the documents of this project state about AWS. It deploys a stack of
// its own and a second one with probes, runs each [Check], reports the results as JSON, and removes both stacks.
//
// docs/unmeasured.md lists the statements, and which check measures each.
package awscheck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Check measures statements of the documents on the deployed stacks.
type Check struct {
	Name    string
	AWSOnly string // why an emulator can't run it; empty: an emulator can
	Long    bool   // it takes half an hour, so it runs only on demand
	Beside  bool   // it may run while others run: neither its figures nor theirs suffer
	Run     func(context.Context, *Stack) (Figures, error)
}

// Figures are what a check measured, by name. A name ends in the figure's unit, such as Millis or MB. A count has none.
type Figures map[string]float64

// Checks lists all checks. Those that are Beside run first.
var Checks = []Check{
	{Name: "settings", Beside: true, Run: settings, AWSOnly: "the emulator's CloudFormation sets neither time to live nor recovery nor RecursiveLoop"},
	{Name: "roles", Beside: true, Run: roles},
	{Name: "denied-write", Beside: true, Run: deniedWrite, AWSOnly: "the emulator does not know the condition dynamodb:LeadingKeys"},
	{Name: "jobs", Beside: true, Run: jobs},
	{Name: "circles", Beside: true, Run: circles, AWSOnly: "the emulator does not detect a loop through a queue"},
	{Name: "snapstart", Beside: true, Run: snapStart, AWSOnly: "the emulator starts no extension, and restores no snapshot"},
	{Name: "conflicts", Run: conflicts},
	{Name: "latency", Run: latency},
	{Name: "cold-start", Run: coldStart, AWSOnly: "the emulator does not report the time of a start"},
	{Name: "agent", Run: agent, AWSOnly: "the emulator starts no extension"},
	{Name: "throttled-key", Run: throttledKey, AWSOnly: "the emulator never throttles an item"},
	{Name: "alarms", Long: true, Run: alarms, AWSOnly: "the emulator throttles nothing that could ring an alarm"},
}

// A skipped is the error of a check that could not measure its statements. It tells why.
type skipped string

func (s skipped) Error() string { return string(s) }

// runChecks runs checks and returns the result of each, in their order. After ctx ends, it starts no further check.
func runChecks(ctx context.Context, checks []Check, s *Stack, long bool, progress io.Writer) []Result {
	results := make([]Result, len(checks))
	run := func(i int) {
		results[i] = runCheck(ctx, checks[i], s, long)
		_, _ = fmt.Fprintf(progress, "aws-check: %s\n", results[i])
	}
	var wg sync.WaitGroup
	for i, c := range checks {
		if c.Beside {
			wg.Go(func() { run(i) })
		}
	}
	wg.Wait()
	for i, c := range checks {
		if !c.Beside {
			run(i)
		}
	}
	return results
}

func runCheck(ctx context.Context, c Check, s *Stack, long bool) Result {
	r := Result{Name: c.Name, Status: Passed}
	var err error
	switch {
	case ctx.Err() != nil:
	case c.Long && !long:
		err = skipped("it takes half an hour: run it with LONG=1")
	case c.AWSOnly != "" && s.Endpoint != "":
		err = skipped(c.AWSOnly)
	default:
		began := time.Now()
		r.Figures, err = c.Run(ctx, s)
		r.Seconds = round(time.Since(began).Seconds())
	}
	if ctx.Err() != nil {
		err = skipped("the run was interrupted")
	}
	if why, skip := errors.AsType[skipped](err); skip {
		r.Status, r.Reason = Skipped, string(why)
	} else if err != nil {
		r.Status, r.Reason = Failed, err.Error()
	}
	return r
}

// A Report is the result of a run. It names no account.
type Report struct {
	Date     time.Time `json:"date"`
	Commit   string    `json:"commit"` // as git describe prints it; "-dirty" at its end: with changes
	Region   string    `json:"region"`
	Endpoint string    `json:"endpoint,omitempty"` // an emulator's; its figures say nothing about AWS
	Long     bool      `json:"long"`
	Seconds  float64   `json:"seconds"`         // of the whole run, with both stacks' creation and removal
	Error    string    `json:"error,omitempty"` // why no check ran
	Checks   []Result  `json:"checks"`
	Left     []string  `json:"left,omitempty"` // all that the run failed to remove

	interrupted bool
}

// A Result is the result of one check.
type Result struct {
	Name    string  `json:"name"`
	Status  Status  `json:"status"`
	Reason  string  `json:"reason,omitempty"` // why it failed or was skipped
	Figures Figures `json:"figures,omitempty"`
	Seconds float64 `json:"seconds"`
}

// A Status is how a check ended.
type Status string

// The statuses. A check fails if a statement is wrong, and is skipped if nothing could be measured.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	Skipped Status = "skipped"
)

// Exit statuses.
const (
	exitPassed      = 0
	exitFailed      = 1   // a statement is wrong
	exitUsage       = 2   // wrong arguments
	exitAWS         = 3   // AWS can't be reached, or something could not be created or removed
	exitInterrupted = 130 // Ctrl-C, or a person answered no
)

func (r Result) String() string {
	parts := []string{fmt.Sprintf("%-14s%-8s", r.Name, r.Status)}
	for _, name := range slices.Sorted(maps.Keys(r.Figures)) {
		parts = append(parts, fmt.Sprintf("%s=%v", name, r.Figures[name]))
	}
	if r.Reason != "" {
		parts = append(parts, "("+r.Reason+")")
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

// exit returns the exit status of a run.
func (r Report) exit() int {
	switch {
	case r.interrupted:
		return exitInterrupted
	case r.Error != "" || len(r.Left) > 0:
		return exitAWS
	case slices.ContainsFunc(r.Checks, func(c Result) bool { return c.Status == Failed }):
		return exitFailed
	}
	return exitPassed
}

// writeJSON writes the report for programs, and writeText for a person.
func (r Report) writeJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

func (r Report) writeText(w io.Writer) error {
	lines := []string{fmt.Sprintf("%s at commit %s, %s, in %.0f s", r.Date.Format(time.RFC3339), r.Commit, r.Region, r.Seconds)}
	if r.Endpoint != "" {
		lines = append(lines, "This is an emulator, so no figure is one of AWS: "+r.Endpoint)
	}
	for _, c := range r.Checks {
		lines = append(lines, c.String())
	}
	if r.Error != "" {
		lines = append(lines, "error: "+r.Error)
	}
	for _, left := range r.Left {
		lines = append(lines, "left: "+left)
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// round keeps two decimals.
func round(x float64) float64 { return math.Round(x*100) / 100 }

// quantile returns the value below which the part q of all values lies. Without values, it is 0.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return round(sorted[min(len(sorted)-1, int(q*float64(len(sorted))))])
}
