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
	"github.com/cric-talk/guards/internal/policy"
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

// Options returns the options that name the subjects of an activity for guards check,
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

// moduleOf returns the path of a folder's module.
func moduleOf(folder fs.FS) (string, error) {
	mod, err := fs.ReadFile(folder, "go.mod")
	if err != nil {
		return "", err
	}
	module := moduleLine.FindSubmatch(mod)
	if module == nil {
		return "", errors.New("go.mod names no module")
	}
	return string(module[1]), nil
}

// whatOfFunction describes the files of a function's folder.
var whatOfFunction = map[string]string{"main.go": "the function", "event.json": "a sample event"}

// missing returns the files of functions that a folder does not have, and the removal of those
// that it should not have. It returns an error if a function's program starts something else.
func missing(folder fs.FS, functions []function) (changes []Change, err error) {
	module, err := moduleOf(folder)
	if err != nil {
		return nil, err
	}
	add := func(file, text string) {
		changes = append(changes, Change{File: file, What: whatOfFunction[path.Base(file)], New: true, After: text})
	}
	for _, f := range functions {
		file := path.Join("functions", f.name, "main.go")
		switch text, err := fs.ReadFile(folder, file); {
		case errors.Is(err, fs.ErrNotExist):
			text, err := f.program(module)
			if err != nil {
				return nil, err
			}
			add(file, text)
		case err != nil:
			return nil, err
		case !strings.Contains(string(text), f.call) || !strings.Contains(string(text), `"`+path.Join(Module, f.from)+`"`):
			return nil, fmt.Errorf("%s does not call %s of %s/%s: write the call, or delete the file and run go run ./cmd/guards generate", file, f.call, Module, f.from)
		}
		if file := path.Join("functions", f.name, "event.json"); !exists(folder, file) {
			add(file, f.event+"\n")
		}
	}
	gone, err := gone(folder, module, functions)
	return append(changes, gone...), err
}

// program returns the main.go of a function.
func (f function) program(module string) (string, error) {
	text, err := format.Source(fmt.Appendf(nil, functionText, f.name, f.does, path.Join(Module, f.from), module, f.call))
	return string(text), err
}

// gone returns the removal of each function's folder whose guard is gone. It returns an error
// for a folder if somebody has changed or added a file there.
func gone(folder fs.FS, module string, functions []function) (changes []Change, err error) {
	programs, err := fs.Glob(folder, "functions/*/main.go")
	for _, file := range programs {
		dir := path.Dir(file)
		name := path.Base(dir)
		if slices.ContainsFunc(functions, func(f function) bool { return f.name == name }) {
			continue
		}
		removals, err := removals(folder, dir, module)
		if err != nil {
			return nil, err
		}
		if removals == nil {
			advice := "delete the folder"
			if validName(name) == nil {
				advice = fmt.Sprintf("give a guard the Name %q, or %s", name, advice)
			}
			return nil, fmt.Errorf("functions/%s is the function of no guard in %s, and somebody changed it: %s", name, limitsFile, advice)
		}
		changes = append(changes, removals...)
	}
	return changes, err
}

// removals returns the removal of each file of a function's folder. It returns none if a file
// is not as the generator writes it for a function of this name.
func removals(folder fs.FS, dir, module string) (changes []Change, err error) {
	files, err := fs.ReadDir(folder, dir)
	for _, file := range files {
		c := Change{File: path.Join(dir, file.Name()), What: whatOfFunction[file.Name()], Gone: true}
		if c.What == "" {
			return nil, nil
		}
		text, err := fs.ReadFile(folder, c.File)
		if err != nil {
			return nil, err
		}
		c.Before = string(text)
		if generated, err := isGenerated(path.Base(dir), module, c); err != nil || !generated {
			return nil, err
		}
		changes = append(changes, c)
	}
	return changes, err
}

// isGenerated reports whether the generator writes this text for a function of this name and
// for some activity.
func isGenerated(name, module string, c Change) (bool, error) {
	if path.Base(c.File) == "event.json" {
		return anyEvent.MatchString(c.Before), nil
	}
	a := limits.Activity{Limit: policy.Must("reservoir 1/1s ahead 1s")}
	for _, queue := range []bool{false, true} {
		for _, f := range functionsOf(limits.Guards{{Name: name, DelayedQueue: queue, Activities: []limits.Activity{a}}}) {
			if text, err := f.program(module); f.name == name && text == c.Before || err != nil {
				return true, err
			}
		}
	}
	return false, nil
}

// anyEvent matches each sample event of a function that a project need not have.
var anyEvent = regexp.MustCompile(`^(?:\{"userId": "u1", "activity": "[a-z_]+"(?:, "subjects": \{"[a-z": ,1]+\})?\}|` +
	strings.Replace(regexp.QuoteMeta(jobEvent), "%s", "[a-z_]+", 1) + `)\n$`)

// NeedModules reports whether changes import packages that no function of the project
// imported before: the queue's packages.
func NeedModules(changes []Change) bool {
	return slices.ContainsFunc(changes, func(c Change) bool { return c.New && c.File == "functions/delayed-jobs/main.go" })
}

func exists(folder fs.FS, file string) bool {
	_, err := fs.Stat(folder, file)
	return err == nil
}
