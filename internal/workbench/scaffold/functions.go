package scaffold

import (
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/cric-talk/guards/internal/limits"
)

// A function is a folder in functions/: a program of one call, and a sample event.
type function struct {
	name, does string // what it does, after its name
	from       string // the package whose function it calls, below Module
	call       string // of that package, in Go
	event      string
}

// Module is the module that every project requires. It is a project, too.
const Module = "github.com/cric-talk/guards"

// functionsOf returns the functions of a project with these guards.
func functionsOf(guards limits.Guards) (all []function) {
	for _, g := range guards {
		f := function{g.Name, "decides its activities in limits.go", "function", "", sample(g.Activities[0])}
		if g.DelayedQueue {
			f.from = "function/jobs"
		}
		f.call = fmt.Sprintf("%s.Start(limits.All, %q)", path.Base(f.from), g.Name)
		all = append(all, f)
	}
	all = append(all, function{"cleanup", "deletes what has expired", "function", "function.StartCleanup(limits.All)", `{"dryRun": true}`})
	if g, ok := guards.Queued(); ok {
		all = append(all, function{
			"delayed-jobs", "passes the jobs of the delayed queue on at their time", "function/jobs", "jobs.StartDelayedJobs(limits.All)",
			fmt.Sprintf(jobEvent, g.Activities[slices.IndexFunc(g.Activities, func(a limits.Activity) bool { return a.Limit.Queues() })].Name),
		})
	}
	return all
}

// Options returns the options with which guards check names the subjects of an activity,
// each after a space. The ids are such as room1.
func Options(a limits.Activity) (options string) {
	for _, s := range a.Subjects {
		options += fmt.Sprintf(" --subject %s=%[1]s1", s.Name)
	}
	return options
}

// sample returns an event about an activity. The ids of its subjects are as in Options.
func sample(a limits.Activity) string {
	event := fmt.Sprintf(`{"userId": "u1", "activity": %q`, a.Name)
	var subjects []string
	for _, s := range a.Subjects {
		subjects = append(subjects, fmt.Sprintf(`%q: "%s1"`, s.Name, s.Name))
	}
	if subjects != nil {
		event += `, "subjects": {` + strings.Join(subjects, ", ") + "}"
	}
	return event + "}"
}

const (
	functionText = `// The Lambda function %s %s.
package main

import (
	"%s"
	"%s/limits"
)

func main() { %s }
`
	jobEvent = `{"Records": [{
  "messageId": "059f36b4-87a3-44ab-83d2-661975830a7d",
  "body": "{\"userId\":\"g1\",\"activity\":\"%s\",\"requestId\":\"r1\",\"readyAt\":1700000010000,\"enqueued\":1,\"job\":{\"member\":\"m1\"}}",
  "eventSource": "aws:sqs"
}]}`
)

var moduleLine = regexp.MustCompile(`(?m)^module (\S+)`)

// missing returns the files of functions that a folder does not have. It returns an
// error if a function's program starts something else, or if it is none of these.
func missing(folder fs.FS, functions []function) (changes []Change, err error) {
	mod, err := fs.ReadFile(folder, "go.mod")
	module := moduleLine.FindSubmatch(mod)
	if err != nil {
		return nil, err
	}
	if module == nil {
		return nil, errors.New("go.mod names no module")
	}
	add := func(file, what, text string) {
		changes = append(changes, Change{File: file, What: what, New: true, After: text})
	}
	for _, f := range functions {
		file := path.Join("functions", f.name, "main.go")
		switch text, err := fs.ReadFile(folder, file); {
		case errors.Is(err, fs.ErrNotExist):
			text, err := format.Source(fmt.Appendf(nil, functionText, f.name, f.does, path.Join(Module, f.from), module[1], f.call))
			if err != nil {
				return nil, err
			}
			add(file, "the function", string(text))
		case err != nil:
			return nil, err
		case !strings.Contains(string(text), f.call) || !strings.Contains(string(text), `"`+path.Join(Module, f.from)+`"`):
			return nil, fmt.Errorf("%s does not call %s of %s/%s: write the call, or delete the file and run go run ./cmd/guards generate", file, f.call, Module, f.from)
		}
		if file := path.Join("functions", f.name, "event.json"); !exists(folder, file) {
			add(file, "a sample event", f.event+"\n")
		}
	}
	programs, err := fs.Glob(folder, "functions/*/main.go")
	for _, file := range programs {
		name := path.Base(path.Dir(file))
		if !slices.ContainsFunc(functions, func(f function) bool { return f.name == name }) {
			advice := "delete the folder"
			if validName(name) == nil {
				advice = fmt.Sprintf("give a guard the Name %q, or %s", name, advice)
			}
			return nil, fmt.Errorf("functions/%s is the function of no guard in %s: %s", name, limitsFile, advice)
		}
	}
	return changes, err
}

// NeedModules reports whether changes import packages that no function of the project
// imported before: those of the queue.
func NeedModules(changes []Change) bool {
	return slices.ContainsFunc(changes, func(c Change) bool { return c.New && c.File == "functions/delayed-jobs/main.go" })
}

func exists(folder fs.FS, file string) bool {
	_, err := fs.Stat(folder, file)
	return err == nil
}
