// Package findings is the report of proofs and measurements. It has results with
// figures, goals, tables and charts, the files beside a page that they are saved in, and the
// two pages about them. Package prove has the parts of docs/reliability.md, and
// package bench the parts of docs/performance.md.
package findings

import (
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Result is what a proof or a measurement found.
type Result struct {
	Seed    uint64   `json:"seed,omitempty"` // 0: there are no random numbers
	Figures []Figure `json:"figures,omitempty"`
	Tables  []Table  `json:"tables,omitempty"`
	Goals   []Goal   `json:"goals,omitempty"`
	Charts  []Chart  `json:"charts,omitempty"`
}

// A Figure is one line of a result, such as {"states", "1204511"}, which is shown
// as 1,204,511.
type Figure struct {
	What  string `json:"what"`
	Value string `json:"value"`
}

// A Saved result also tells when and how it was found.
type Saved struct {
	Date    string `json:"date"`             // as 2006-01-02
	Commit  string `json:"commit,omitempty"` // short; with a + if the checkout had changes
	Command string `json:"command"`          // finds the figures again
	Machine string `json:"machine"`
	Took    string `json:"took"`
	Sources string `json:"sources,omitempty"` // a hash of the code, if old figures would mislead

	Result
}

// leaf is an object or a list without others in it, as [json.MarshalIndent] writes it.
var leaf = regexp.MustCompile(`[\[{]\n(?:\t+"[^\n]*[^\[{\n]\n)+\t+[\]}]`)

// JSON returns s as JSON for readers: each figure and each row of a table is one line.
func (s Saved) JSON() ([]byte, error) {
	content, err := json.MarshalIndent(s, "", "\t")
	oneLine := func(b []byte) []byte { return regexp.MustCompile(`\n\t*`).ReplaceAll(b, []byte(" ")) }
	return append(leaf.ReplaceAllFunc(content, oneLine), '\n'), err
}

// start is when the process started.
var start = time.Now()

// New returns r with today's date, this machine, and the time since the process
// started. Command is what finds the figures again.
func New(r Result, command string) Saved {
	return Saved{
		Result: r, Date: time.Now().UTC().Format(time.DateOnly), Commit: commit(), Command: command, Machine: machine(),
		Took: time.Since(start).Round(time.Second).String(),
	}
}

// commit returns the checkout's commit, or nothing outside of Git.
func commit() string {
	id, err := exec.Command("git", "describe", "--always", "--exclude=*", "--dirty=+").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// machine describes this machine in a few words.
func machine() string {
	cores := "1 core"
	if n := runtime.NumCPU(); n != 1 {
		cores = fmt.Sprintf("%d cores", n)
	}
	return runtime.GOOS + "/" + runtime.GOARCH + ", " + cores + ", " + runtime.Version()
}

// Counts returns a table with a row for each number, in the order of their names.
func Counts[K ~string](title, head string, numbers map[K]int) Table {
	t := Table{Title: title, Head: []string{head, "number"}}
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		t.Rows = append(t.Rows, []string{string(name), strconv.Itoa(numbers[name])})
	}
	return t
}
