// Package findings holds what measurements print, save and show: results with
// figures and tables, the files they are saved in, and the Markdown that shows
// them. Packages prove and bench use it.
package findings

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// A Result is what a proof or a measurement found.
type Result struct {
	Seed    uint64   `json:"seed,omitempty"` // 0: there are no random numbers
	Figures []Figure `json:"figures,omitempty"`
	Tables  []Table  `json:"tables,omitempty"`
}

// A Figure is one line of a result, such as {"states", "1204511"}, which is shown
// as 1,204,511.
type Figure struct {
	What  string `json:"what"`
	Value string `json:"value"`
}

// A Table is a part of a result that needs columns. Each row has as many cells
// as Head.
type Table struct {
	Title string     `json:"title"`
	Head  []string   `json:"head"`
	Rows  [][]string `json:"rows"`
}

// A Saved result also says when and how it was found.
type Saved struct {
	Result

	Date    string `json:"date"`             // as 2006-01-02
	Commit  string `json:"commit,omitempty"` // short; with a + if the checkout had changes
	Command string `json:"command"`          // finds the figures again
	Machine string `json:"machine"`
	Took    string `json:"took"`
	Sources string `json:"sources,omitempty"` // a hash of the code, if old figures would mislead
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

// Write saves v as JSON.
func Write(file string, v any) error {
	content, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(content, '\n'), 0o644)
}

// Read returns what Write has saved. The error is [io/fs.ErrNotExist] if there is no
// such file.
func Read[T any](file string) (v T, err error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return v, err
	}
	err = json.Unmarshal(content, &v)
	return v, err
}
