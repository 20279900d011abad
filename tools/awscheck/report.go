package awscheck

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

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
