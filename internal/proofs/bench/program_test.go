//go:build unix

package bench_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	. "github.com/cric-talk/guards/internal/proofs/bench"
)

// A job is to ask once for each of some users, with several callers at the same
// time. If a limit counts, each user's is 2 in a minute.
type job struct {
	Prefix  string `json:"prefix"` // of the users' ids
	Users   int    `json:"users"`
	Callers int    `json:"callers"` // 1 for app.mjs and app.py
}

// An outcome is what became of a job.
type outcome struct {
	Allowed int     `json:"allowed"`
	Wall    float64 `json:"us"`  // microseconds in all
	CPU     float64 `json:"cpu"` // microseconds of the program in all
}

// A running program has a process of its own. It reads a job as JSON from each line, and prints the
// outcome as a line of JSON.
//
// With the variable ONLY, it reads nothing. It ends once it has made its client ("start"), or once
// it has then asked for one user ("call").
type running struct {
	ask  func(job) outcome
	pid  int
	stop func()
}

// launch starts a program. It ends with the test, if not before.
func launch(t *testing.T, command ...string) running {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = environment(t)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var problems strings.Builder
	cmd.Stderr = &problems
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	t.Cleanup(stop)
	lines := bufio.NewReader(out)
	ask := func(j job) (o outcome) {
		line, err := json.Marshal(j)
		if err == nil {
			_, err = fmt.Fprintf(in, "%s\n", line)
		}
		if err == nil {
			line, err = lines.ReadBytes('\n')
		}
		if err == nil {
			err = json.Unmarshal(line, &o)
		}
		if err != nil {
			_, _ = io.Copy(io.Discard, lines) // until the program ends
			t.Fatalf("%s: %v: %s", cmd, err, problems.String())
		}
		return o
	}
	return running{ask, cmd.Process.Pid, stop}
}

// environment returns the variables of a program: credentials and a region that are made up, and
// no file of the person who measures.
func environment(t *testing.T) []string {
	t.Helper()
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "AWS_EC2_METADATA_DISABLED=true",
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_SESSION_TOKEN=test",
		"AWS_REGION=eu-west-1", "AWS_DEFAULT_REGION=eu-west-1",
	}
}

// A turn is a job that a program does once in each round.
type turn struct {
	name           string
	ask            func(job) outcome
	users, callers int
}

// inTurns lets programs do their jobs, one after the other, in each of some rounds. All users are
// new, with ids that begin with a prefix. The result has the rounds of each program, and what a
// decision took in each round.
func inTurns(t *testing.T, prefix string, rounds int, turns []turn) [][]Cost {
	t.Helper()
	costs := make([][]Cost, len(turns))
	for round := range rounds {
		for i, p := range turns {
			got := p.ask(job{fmt.Sprint(prefix, round), p.users, p.callers})
			if got.Allowed != p.users {
				t.Fatalf("%s: %d of %d allowed", p.name, got.Allowed, p.users)
			}
			each := float64(p.users)
			costs[i] = append(costs[i], Cost{CPU: got.CPU / each, Wall: got.Wall / each})
		}
	}
	return costs
}
