// Package scaffold adds guards and activities to a checkout of this project, and
// finds what a guard lacks in template.yaml.
//
// It reads the limits from the text of internal/limits/limits.go, because the
// program that runs may be older than the checkout. All new texts are made and
// checked before the first file is written.
package scaffold

import (
	"cmp"
	"fmt"

	"github.com/cric-talk/guards/internal/limits"
)

// The files that every checkout has. A guard's own files are beside them.
const (
	limitsFile   = "limits/limits.go"
	promisesFile = "limits/limits_test.go"
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
	var g limits.Guard
	var variable, what, text string
	var err error
	if r.New {
		g = limits.Guard{Name: r.Guard, Message: c.source.message(), Activities: []limits.Activity{r.Activity}}
		if variable, err = c.variable(g.Name); err != nil {
			return nil, err
		}
		what = fmt.Sprintf("the guard %s with %s: %s", variable, r.Activity.Name, r.Activity.Limit)
		text, err = c.source.withGuard(variable, g)
	} else {
		g, _ = c.guard(r.Guard)
		what = fmt.Sprintf("%s of %s: %s", r.Activity.Name, g.Name, r.Activity.Limit)
		text, err = c.source.withActivity(g.Name, r.Activity)
	}
	if err != nil {
		return nil, err
	}
	after, err := parse(text)
	if err != nil {
		return nil, err
	}
	e := &edits{checkout: c}
	err = cmp.Or(e.replace(limitsFile, what, text), e.promise(g, r.Activity))
	if r.New {
		err = cmp.Or(err, e.function(g, variable), e.template(g, after))
	} else {
		err = cmp.Or(err, e.roleFits(g, r.Activity))
	}
	if err = cmp.Or(err, e.documents(r, after), e.clients(after)); err != nil {
		return nil, err
	}
	return e.changes, nil
}

// edits collects changes.
type edits struct {
	checkout *Checkout
	changes  []Change
}

// replace adds the change of a file that exists. It adds nothing if the text
// stays the same.
func (e *edits) replace(file, what, text string) error {
	before, err := e.checkout.read(file)
	if err == nil && before != text {
		e.changes = append(e.changes, Change{File: file, What: what, Before: before, After: text})
	}
	return err
}

// create adds a file that does not exist yet.
func (e *edits) create(file, what, text string) error {
	if e.checkout.exists(file) {
		return fmt.Errorf("%s exists already", file)
	}
	e.changes = append(e.changes, Change{File: file, What: what, New: true, After: text})
	return nil
}
