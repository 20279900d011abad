package scaffold

import (
	"cmp"
	"errors"
	"fmt"
	"go/format"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/workbench/lists"
)

// promise adds a line to the table of promised limits.
func (e *edits) promise(g limits.Guard, a limits.Activity) error {
	text, err := e.checkout.read(promisesFile)
	if err != nil {
		return err
	}
	// The table is not a map of known types, so only its own form is read.
	start := strings.Index(text, "\nvar promised = ")
	end := strings.Index(text[max(0, start):], "\n}\n\n")
	if start < 0 || end < 0 {
		return fmt.Errorf("%s has no table named promised", promisesFile)
	}
	file, err := declarations(promisesFile, text)
	if err != nil {
		return err
	}
	tiers := "nil"
	if len(a.Tiers) > 0 {
		tiers = "map[string]string{" + pairs(a.Tiers, "%q") + "}"
	}
	at := start + end + 1
	row := fmt.Sprintf("\t{%q, %s, %q, %q, %s, \"\"},\n", g.Name, file.name(g.Message), a.Name, a.Limit.String(), tiers)
	formatted, err := format.Source([]byte(text[:at] + row + text[at:]))
	if err != nil {
		return err
	}
	return e.replace(promisesFile, "the promise "+a.Name+": "+a.Limit.String(), string(formatted))
}

const functionText = `%spackage main

import (
	"os"

	"%[2]s/internal/lambdafn"
	"%[2]s/limits"
)

func main() { os.Exit(lambdafn.Guard(limits.All, %[3]q)) }
`

// function adds the function's folder.
func (e *edits) function(g limits.Guard, variable string) error {
	comment := fmt.Sprintf("The Lambda function %s decides its activities in limits.go.", g.Name)
	folder := path.Join("functions", g.Name)
	return cmp.Or(
		e.create(folder+"/main.go", "the function", fmt.Sprintf(functionText, wrapped(comment), e.checkout.module, g.Name)),
		e.create(folder+"/event.json", "a sample event", fmt.Sprintf("{\"userId\": \"u1\", \"activity\": %q}\n", g.Activities[0].Name)),
	)
}

// wrapped returns a text as a comment with lines of at most 80 characters.
func wrapped(text string) string {
	var b strings.Builder
	width := 0
	for word := range strings.FieldsSeq(text) {
		if width == 0 || width+1+len(word) > 80 {
			b.WriteString("\n//")
			width = len("//")
		}
		b.WriteString(" " + word)
		width += 1 + len(word)
	}
	return strings.TrimPrefix(b.String(), "\n") + "\n"
}

// template adds the guard's pieces to the template.
func (e *edits) template(g limits.Guard, after *source) error {
	before, err := e.checkout.read(templateFile)
	if err != nil {
		return err
	}
	text, err := withTemplate(before, after.guards[:len(after.guards)-1], g)
	if err != nil {
		return err
	}
	what := "the function, its policy, URL, alarms, dashboard line and output; the policy for backends"
	return cmp.Or(e.replace(templateFile, what, text), complete(text, g))
}

// roleFits checks that the role of a guard allows what one more activity needs.
func (e *edits) roleFits(g limits.Guard, a limits.Activity) error {
	text, err := e.checkout.read(templateFile)
	if err != nil {
		return err
	}
	g.Activities = append(slices.Clone(g.Activities), a)
	return complete(text, g)
}

// complete checks that a template has all pieces of a guard.
func complete(text string, g limits.Guard) error {
	missing, err := Missing(text, limits.Guards{g})
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("the template needs a change by hand first: %s", strings.Join(missing, "; "))
	}
	return err
}

// documents replaces the table of limits, and adds an entry to the changelog.
func (e *edits) documents(r Request, after *source) error {
	old := lists.Markdown(e.checkout.Guards())
	file, text := e.checkout.withText(old)
	if file == "" {
		return errors.New("neither README.md nor a document of docs has the table of guards limits --markdown; put it there first")
	}
	table := strings.Replace(text, old, lists.Markdown(after.guards), 1)
	entry := fmt.Sprintf("- **`%s`** is a new activity of `%s`. Its limit is `%s`.\n", r.Activity.Name, r.Guard, r.Activity.Limit)
	if r.New {
		entry = fmt.Sprintf("- **`%s`** is a new guard. Its activity is `%s`, with the limit `%s`.\n", r.Guard, r.Activity.Name, r.Activity.Limit)
	}
	text, err := e.checkout.read(changelog)
	return cmp.Or(err, e.replace(file, "the table of limits", table), e.replace(changelog, "an entry under Added", withEntry(text, entry)))
}

// withText returns the first document that contains a text.
func (c *Checkout) withText(part string) (file, text string) {
	files := []string{"README.md"}
	if entries, err := c.root.Open("docs"); err == nil {
		names, _ := entries.Readdirnames(-1)
		_ = entries.Close()
		for _, name := range names {
			if path.Ext(name) == ".md" {
				files = append(files, "docs/"+name)
			}
		}
	}
	for _, file := range files {
		if text, err := c.read(file); err == nil && strings.Contains(text, part) {
			return file, text
		}
	}
	return "", ""
}

var (
	unreleased = regexp.MustCompile(`(?m)^## Unreleased\n`)
	nextPart   = regexp.MustCompile(`(?m)^## `)
	added      = regexp.MustCompile(`(?m)^### Added\n\n`)
)

// withEntry returns the changelog with one more entry under Added of the
// unreleased part, which begins above the last release if it is missing.
func withEntry(text, entry string) string {
	head := unreleased.FindStringIndex(text)
	if head == nil {
		at := len(text)
		if next := nextPart.FindStringIndex(text); next != nil {
			at = next[0]
		}
		text = strings.TrimRight(text[:at], "\n") + "\n\n## Unreleased\n\n" + text[at:]
		head = unreleased.FindStringIndex(text)
	}
	end := len(text)
	if next := nextPart.FindStringIndex(text[head[1]:]); next != nil {
		end = head[1] + next[0]
	}
	if at := added.FindStringIndex(text[head[1]:end]); at != nil {
		return text[:head[1]+at[1]] + entry + text[head[1]+at[1]:]
	}
	return text[:head[1]] + "\n### Added\n\n" + entry + text[head[1]:]
}

// clients replaces the lists of the clients.
func (e *edits) clients(after *source) error {
	files, err := lists.Clients(after.guards)
	for _, file := range slices.Sorted(maps.Keys(files)) {
		err = cmp.Or(err, e.replace(file, "the client's list of activities", string(files[file])))
	}
	return err
}
