// Package pagefile reads a page of limits from JSON, for projects that have no Go:
//
//	{
//	  "$schema": "https://github.com/cric-talk/guards/schema/page.schema.json",
//	  "guards": [
//	    {
//	      "name": "photos-guard",
//	      "message": "Too many requests. Please try again later.",
//	      "activities": [
//	        {"name": "upload_photo", "limit": "5/1m", "tiers": {"premium": "30/1m"}},
//	        {"name": "view_photo", "unlimited": true}
//	      ]
//	    }
//	  ]
//	}
//
// The names are those of the fields of package guards, with a small first letter.
package pagefile

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/cric-talk/guards"
)

// Name is what the file of a page is called.
const Name = "limits.json"

// A document is the whole file.
type document struct {
	Schema string `json:"$schema"` // for editors; any text
	Guards []guards.Guard
}

// Read returns the guards of a page. The file's name stands in mistakes only.
//
// The error has all mistakes, joined by [errors.Join], each with its line: those of the form, or
// if there is none, those that [guards.Validate] finds. The form is strict: an unknown or
// repeated name, a null, a wrong type and a comment are mistakes.
func Read(file string, text []byte) ([]guards.Guard, error) {
	r := reader{file: file, lines: map[string]int{}}
	top, err := parse(text)
	if err != nil {
		r.wrong(err.line, "", "%s", err.what)
		return nil, r.err()
	}
	var d document
	if top.kind != '{' {
		r.wrong(top.line, "", `the page is %s, want an object such as {"guards": [...]}`, kinds[top.kind])
		return nil, r.err()
	}
	r.object(top, reflect.ValueOf(&d).Elem(), "")
	if len(r.mistakes) == 0 && len(d.Guards) == 0 {
		r.wrong(top.line, "", "guards is missing or empty, want at least one guard")
	}
	if len(r.mistakes) == 0 {
		r.validate(d.Guards)
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return d.Guards, nil
}

// A reader is a page and the mistakes that were found so far.
type reader struct {
	file     string
	mistakes []mistake
	lines    map[string]int // what a mistake of guards.Validate begins with, and the line of the guard or activity
}

// A mistake is a text and its line, from 1 on; 0: not known.
type mistake struct {
	line int
	what string
}

// wrong adds a mistake. Where is the guard, the activity and the subject, such as: a-guard, activity "b".
func (r *reader) wrong(line int, where, format string, args ...any) {
	if where != "" {
		where += ": "
	}
	r.mistakes = append(r.mistakes, mistake{line, where + fmt.Sprintf(format, args...)})
}

// err returns the mistakes in the order of their lines.
func (r *reader) err() error {
	slices.SortStableFunc(r.mistakes, func(a, b mistake) int { return a.line - b.line })
	var all []error
	for _, m := range r.mistakes {
		at := r.file
		if m.line > 0 {
			at += ":" + strconv.Itoa(m.line)
		}
		all = append(all, fmt.Errorf("%s: %s", at, m.what))
	}
	return errors.Join(all...)
}

// validate adds what [guards.Validate] finds.
func (r *reader) validate(page []guards.Guard) {
	err := guards.Validate(page)
	if err == nil {
		return
	}
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	for _, err := range all {
		longest, line := "", 0
		for begins, of := range r.lines {
			if len(begins) > len(longest) && strings.HasPrefix(err.Error(), begins) {
				longest, line = begins, of
			}
		}
		r.wrong(line, "", "%v", err)
	}
}

// know notes the line of a guard or an activity for the mistakes of guards.Validate.
func (r *reader) know(line int, begins ...string) {
	for _, b := range begins {
		r.lines[b] = line
	}
}
