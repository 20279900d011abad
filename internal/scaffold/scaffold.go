// Package scaffold adds guards and activities to a checkout of this project, and
// finds what a guard lacks in template.yaml.
//
// It reads the limits from the text of internal/limits/limits.go, because the
// program that runs may be older than the checkout. All new texts are made and
// checked before the first file is written.
package scaffold

import (
	"fmt"

	"github.com/cric-talk/guards/internal/limits"
)

// The files that every checkout has. A guard's own files are beside them.
const (
	limitsFile   = "internal/limits/limits.go"
	promisesFile = "internal/limits/limits_test.go"
	templateFile = "template.yaml"
	changelog    = "CHANGELOG.md"
)

// A Request describes what to add: one activity, and perhaps the guard that
// decides it.
type Request struct {
	Guard    string          // the guard of the activity
	New      bool            // the guard does not exist yet
	Activity limits.Activity // its limit is valid
}

// A Change is one file with its new text.
type Change struct {
	File string // its path in the checkout, with slashes
	What string // what the new text adds, for people
	New  bool   // the file does not exist yet

	Before, After string
}

// Add returns the changes that a request needs. It writes nothing.
func (c *Checkout) Add(r Request) ([]Change, error) {
	if err := c.check(r); err != nil {
		return nil, err
	}
	e := &edits{checkout: c}
	var after *source
	if r.New {
		g := limits.Guard{Name: r.Guard, Message: c.source.message(), Activities: []limits.Activity{r.Activity}}
		variable, err := c.variable(g.Name)
		if err != nil {
			return nil, err
		}
		text, err := c.source.withGuard(variable, g)
		e.replace(limitsFile, fmt.Sprintf("the guard %s with %s: %s", variable, r.Activity.Name, r.Activity.Limit), text, err)
		after = e.parsed(text)
		e.promise(g, r.Activity)
		e.function(g, variable)
		e.template(g, after)
	} else {
		g, _ := c.guard(r.Guard)
		text, err := c.source.withActivity(g.Name, r.Activity)
		e.replace(limitsFile, fmt.Sprintf("%s of %s: %s", r.Activity.Name, g.Name, r.Activity.Limit), text, err)
		after = e.parsed(text)
		e.promise(g, r.Activity)
		e.roleFits(g, r.Activity)
	}
	e.documents(r, after)
	e.clients(after)
	if e.err != nil {
		return nil, e.err
	}
	return e.changes, nil
}

// edits collects changes. After the first error, it collects no more.
type edits struct {
	checkout *Checkout
	changes  []Change
	err      error
}

// replace adds the change of a file that exists. It adds nothing if the text
// stays the same.
func (e *edits) replace(file, what, text string, err error) {
	if e.err == nil {
		e.err = err
	}
	if e.err != nil {
		return
	}
	before, err := e.checkout.read(file)
	if e.err = err; err == nil && before != text {
		e.changes = append(e.changes, Change{File: file, What: what, Before: before, After: text})
	}
}

// create adds a file that does not exist yet.
func (e *edits) create(file, what, text string) {
	if e.err != nil {
		return
	}
	if e.checkout.exists(file) {
		e.err = fmt.Errorf("%s exists already", file)
		return
	}
	e.changes = append(e.changes, Change{File: file, What: what, New: true, After: text})
}

// parsed reads a new text of limits.go. It returns an empty source if there is
// an error.
func (e *edits) parsed(text string) *source {
	if e.err != nil {
		return new(source)
	}
	s, err := parse(text)
	if err != nil {
		e.err = err
		return new(source)
	}
	return s
}
