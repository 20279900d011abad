package scaffold

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/cric-talk/guards/internal/limits"
)

//go:embed template.tmpl activities.tmpl
var files embed.FS

var texts = template.Must(template.New("").Funcs(template.FuncMap{
	"seconds": seconds, "listed": listed, "subjects": subjects, "tuples": tuples,
	"windows":   has(func(a listing) bool { return seconds(a.Activity) > 0 }), // that the lists name
	"subjected": has(func(a listing) bool { return len(a.Subjects) > 0 }),
	"held":      has(func(a listing) bool { return a.Hold }),
	"queued": func(guards []described) bool { // one puts jobs on the delayed queue
		return slices.ContainsFunc(guards, func(g described) bool { return g.DelayedQueue })
	},
	"ready": func(guards []described) bool { return guards[0].Ready }, // nothing is built
}).ParseFS(files, "*.tmpl"))

// has returns a func that reports whether an activity of guards is so.
func has(is func(listing) bool) func([]described) bool {
	return func(guards []described) bool { return slices.ContainsFunc(listed(guards), is) }
}

// A document is a file that follows from the guards. One with parts has other text
// too: each part lies between two lines that name it, such as "# begin generated:
// outputs" and "# end generated: outputs".
type document struct {
	file, what string
	parts      []string // none: the whole file is generated
	optional   bool     // the file need not have the markers of its parts
	inGo       bool     // only a project in Go has it
}

var documents = []document{
	{templateFile, "the functions, the table, alarms and outputs", []string{"metadata", "parameters", "conditions", "globals", "resources", "outputs"}, false, false},
	{"README.md", "the table of limits", []string{"limits"}, true, false},
	{"docs/limits.md", "the table of limits", []string{"limits"}, true, false},
	{"activities/activities.go", "the list of activities for Go", nil, false, true},
	{"activities/activities.json", "the list of activities for other languages", nil, false, false},
	{"activities/activities.py", "the list of activities for Python", nil, false, false},
	{"activities/activities.ts", "the list of activities for TypeScript", nil, false, false},
}

// A Change is one file with its new text.
type Change struct {
	File string // its path in the project, with slashes
	What string // what the new text has, for people
	New  bool   // the file does not exist yet
	Gone bool   // the file is removed, because its guard is; then After is empty

	Before, After string
}

// Stale returns a change for each file of a folder that does not match the guards: documents,
// missing functions, and functions whose guard is gone. It returns an error for a guard whose
// name the template can't have, and for a function that does not fit the guards. It writes
// nothing. A project that is not in Go, whose page is a file of JSON, has no programs of its own.
func Stale(folder fs.FS, guards limits.Guards, inGo bool) (changes []Change, err error) {
	for _, g := range guards {
		if err := validName(g.Name); err != nil {
			return nil, err
		}
	}
	changed, _, err := withExtra(folder, guards, inGo)
	if err != nil {
		return nil, err
	}
	for _, d := range documents {
		if d.inGo && !inGo {
			continue
		}
		c, err := d.change(folder, guards, inGo, changed)
		if err != nil {
			return nil, err
		}
		if c.After != c.Before {
			changes = append(changes, c)
		}
	}
	if !inGo {
		return changes, nil
	}
	if c, err := withValidation(folder); err != nil {
		return nil, err
	} else if c.File != "" {
		changes = append(changes, c)
	}
	if c, err := withAgent(folder); err != nil {
		return nil, err
	} else if c.File != "" {
		changes = append(changes, c)
	}
	functions, err := missing(folder, functionsOf(guards))
	return append(changes, functions...), err
}

// change returns the document as it is in a folder and as it must be. Both are the
// same if the project does not have its parts. Changed are the parts that an extra file
// changed.
func (d document) change(folder fs.FS, guards limits.Guards, inGo bool, changed map[string]string) (Change, error) {
	before, err := fs.ReadFile(folder, d.file)
	c := Change{File: d.file, What: d.what, New: errors.Is(err, fs.ErrNotExist), Before: string(before), After: string(before)}
	if err != nil && !c.New {
		return c, err
	}
	if d.parts == nil {
		c.After = text(d.file, guards, inGo)
	}
	if c.New || d.optional && !strings.Contains(c.Before, "begin generated: ") {
		return c, nil
	}
	for _, part := range d.parts {
		lines, ok := changed[part]
		if !ok {
			lines = text(part, guards, inGo)
		}
		if c.After, err = fill(c.After, part, lines); err != nil {
			return c, fmt.Errorf("%s %w", d.file, err)
		}
	}
	if d.file == templateFile && changed != nil {
		if err := yaml.Unmarshal([]byte(c.After), new(map[string]any)); err != nil {
			return c, fmt.Errorf("%s with %s is no valid YAML: %w", d.file, extraFile, err)
		}
	}
	return c, nil
}

// fill returns a text with other lines between the two lines that name a part.
func fill(text, part, lines string) (string, error) {
	begin, end := "begin generated: "+part, "end generated: "+part
	between := regexp.MustCompile(`(.*` + begin + `\b.*\n)(?s:.*?)(.*` + end + `\b)`).FindStringSubmatchIndex(text)
	if between == nil || strings.Count(text, begin) != 1 || strings.Count(text, end) != 1 {
		return "", fmt.Errorf("has no single pair of lines with %q and %q: put the two around the place", begin, end)
	}
	return text[:between[3]] + lines + text[between[4]:], nil
}

// text returns a part or a file of guards. The functions of a project in Go are built from its
// sources. Those of another project are programs that are ready.
func text(name string, guards limits.Guards, inGo bool) string {
	if name == "limits" {
		return "\n" + Markdown(guards) + "\n" // some readers of Markdown want the empty lines
	}
	all := make([]described, len(guards))
	for i, g := range guards {
		all[i] = described{g, LogicalID(g.Name), false, !inGo}
		if g.Description == "" {
			all[i].Description = "Limits how often one user does " + g.Activities[0].Name + "."
		}
		for _, a := range g.Activities {
			all[i].Deletes = all[i].Deletes || !a.Unlimited && !a.Limit.Queues()
		}
	}
	var b strings.Builder
	if err := texts.ExecuteTemplate(&b, name, all); err != nil {
		panic(err) // a mistake in a .tmpl file
	}
	return b.String()
}

// described is a guard for the texts.
type described struct {
	limits.Guard
	ID      string // see [LogicalID]
	Deletes bool   // an activity can be reset, which no reservoir can
	Ready   bool   // its function is a program that exists and reads GUARD_NAME
}

// LogicalID returns a function's name in the template without its suffix
// Function: PhotosGuard for photos-guard. The Makefile's rule build-%Function maps
// it back.
func LogicalID(guard string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(guard, "-") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// seconds returns [limits.Activity.Window] in whole seconds, rounded up as in the
// RateLimit-Policy header.
func seconds(a limits.Activity) int64 { return int64((a.Window() + time.Second - 1) / time.Second) }

// subjects returns the names of an activity's subjects, quoted and in their order, such
// as "room", "tenant?". An event may leave out one with a question mark.
func subjects(a limits.Activity) string {
	var names []string
	for _, s := range a.Subjects {
		if s.Optional {
			s.Name += "?"
		}
		names = append(names, strconv.Quote(s.Name))
	}
	return strings.Join(names, ", ")
}

// tuples returns the type of an activity in the list for Python: one form or more, but only
// those that these guards need.
func tuples(guards []described) string {
	forms := []string{"tuple[str, int | None]"}
	form := func(held, subjected bool, text string) {
		if has(func(a listing) bool { return a.Hold == held && (len(a.Subjects) > 0) == subjected })(guards) {
			forms = append(forms, text)
		}
	}
	form(true, false, "tuple[str, int | None, bool]")
	form(false, true, "tuple[str, None, tuple[str, ...]]")
	form(true, true, "tuple[str, None, tuple[str, ...], bool]")
	return strings.Join(forms, " | ")
}

// A listing is an activity with the name of its guard.
type listing struct {
	limits.Activity
	Guard string
}

// listed returns the activities of all guards in one list.
func listed(guards []described) (all []listing) {
	for _, g := range guards {
		for _, a := range g.Activities {
			all = append(all, listing{a, g.Name})
		}
	}
	return all
}
