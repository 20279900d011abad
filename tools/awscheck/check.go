// Package awscheck measures on a real AWS account what the documents of this project state about AWS. It deploys a stack of
// its own and a second one with probes, runs each [Check], reports the results as JSON, and removes both stacks.
//
// docs/unmeasured.md lists the statements, and which check measures each.
package awscheck

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	r := Result{Name: c.Name, Status: Skipped}
	switch {
	case ctx.Err() != nil:
		r.Reason = interrupted
		return r
	case c.Long && !long:
		r.Reason = "it takes half an hour: run it with LONG=1"
		return r
	case c.AWSOnly != "" && s.Endpoint != "":
		r.Reason = c.AWSOnly
		return r
	}
	began := time.Now()
	figures, err := c.Run(ctx, s)
	r.Figures, r.Seconds = figures, round(time.Since(began).Seconds())
	why, skip := errors.AsType[skipped](err)
	switch {
	case ctx.Err() != nil:
		r.Reason = interrupted
	case skip:
		r.Reason = string(why)
	case err != nil:
		r.Status, r.Reason = Failed, err.Error()
	default:
		r.Status = Passed
	}
	return r
}

const interrupted = "the run was interrupted"
