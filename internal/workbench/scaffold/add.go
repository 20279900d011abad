package scaffold

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/pagefile"
)

// A Request describes what to add: an activity, and perhaps the guard for it.
type Request struct {
	Guard    string // the guard of the activity
	New      bool   // the guard does not exist yet
	Activity guards.Activity
}

// Add returns the new activity and the changes that it needs. It writes nothing.
//
// The generated files follow from the program's guards and the addition, as a
// program that is built afterwards would write them. So Add refuses a project
// whose files are stale before the addition: the program may be older than
// limits.go.
func (p *Project) Add(r Request) (a limits.Activity, changes []Change, err error) {
	if err := p.check(r); err != nil {
		return a, nil, err
	}
	if p.file != "" {
		return p.addToFile(r)
	}
	stale, err := p.Stale()
	if err == nil && len(stale) > 0 {
		err = fmt.Errorf("%s does not follow from the limits of this program: run go run ./cmd/guards generate, then go run ./cmd/guards new", stale[0].File)
	}
	if err != nil {
		return a, nil, err
	}
	file, err := parse(p.root.FS(), limitsFile)
	if err != nil {
		return a, nil, err
	}
	page := slices.Clone(p.page)
	i := slices.IndexFunc(page, func(g guards.Guard) bool { return g.Name == r.Guard })
	if r.New {
		i = len(page)
		page = append(page, guards.Guard{Name: r.Guard, Message: cmp.Or(literal(file.value("tooMany")), tooMany)})
	}
	page[i].Activities = append(slices.Clone(page[i].Activities), r.Activity)
	all, err := limits.Link(page)
	if err != nil {
		return a, nil, err
	}
	g := all[i]
	a = g.Activities[len(g.Activities)-1]
	if _, queued := all.Queued(); r.New && !queued {
		g.DelayedQueue = a.Limit.Queues()
		all[i] = g
	}
	var c Change
	if r.New {
		c, err = p.withGuard(file, g)
	} else {
		c, err = file.withActivity(g.Name, a)
	}
	if err != nil {
		return a, nil, err
	}
	changes, err = p.following(c, g, a, all)
	return a, changes, err
}

// following returns the change of a page, which adds an activity of g, and all that follows.
func (p *Project) following(c Change, g limits.Guard, a limits.Activity, all limits.Guards) ([]Change, error) {
	changes := []Change{c}
	log, err := p.changelog(g, a)
	if err != nil {
		return nil, err
	}
	if log.File != "" {
		changes = append(changes, log)
	}
	stale, err := Stale(p.root.FS(), all, p.file == "")
	return append(changes, stale...), err
}

// guardName is the form of a guard's name. The Makefile makes the folder's name
// from the one in the template, so each word has two characters or more.
var guardName = regexp.MustCompile(`^([a-z][a-z0-9]+-)+guard$`)

// validName refuses a name that the template or the Makefile can't have.
func validName(guard string) error {
	const longest = 64 - 21 // a function's name has at most 64 characters, and the template's NamePrefix 21
	if len(guard) > longest {
		return fmt.Errorf("guard's name has %d characters, want at most %d", len(guard), longest)
	}
	if !guardName.MatchString(guard) {
		return fmt.Errorf("guard is %q, want words of at least two characters, a to z and 0 to 9, that end in -guard, such as photos-guard", guard)
	}
	return nil
}

// check refuses a request that does not fit the guards.
func (p *Project) check(r Request) error {
	if other, _, taken := p.guards.Activity(r.Activity.Name); taken {
		return fmt.Errorf("%s is already an activity of %s; to change its limit, edit %s", r.Activity.Name, other.Name, cmp.Or(p.file, limitsFile))
	}
	_, exists := p.guards.Named(r.Guard)
	switch {
	case r.New && exists:
		return fmt.Errorf("%s exists already; to add an activity to it, write: guards new --guard %[1]s %s LIMIT", r.Guard, r.Activity.Name)
	case !r.New && !exists:
		return fmt.Errorf("there is no guard %q", r.Guard)
	}
	return validName(r.Guard)
}

// withGuard returns limits.go with one more guard.
func (p *Project) withGuard(page *source, g limits.Guard) (Change, error) {
	variable, err := p.variable(g.Name)
	if err != nil {
		return Change{}, err
	}
	list, _ := page.value("All").(*ast.CompositeLit)
	if list == nil || len(list.Elts) == 0 {
		return Change{}, fmt.Errorf("%s has no list All of variables", limitsFile)
	}
	last, _ := list.Elts[len(list.Elts)-1].(*ast.Ident)
	if last == nil || page.value(last.Name) == nil {
		return Change{}, fmt.Errorf("%s: the last guard of All is no variable of this file", limitsFile)
	}
	a, keyword := g.Activities[0], ""
	if !page.grouped(last.Name) {
		keyword = "var "
	}
	return page.change(fmt.Sprintf("the guard %s with %s: %s", variable, a.Name, limitsOf(a)),
		insertion{page.endOfLine(page.value(last.Name).End()), fmt.Sprintf("\n%s%s = %s", keyword, variable, value(page.named(g.Message), g))},
		page.element(list, variable))
}

// value returns a guard with one activity as limits.go writes it. Message is the
// constant or the quoted text.
func value(message string, g limits.Guard) string {
	queue := ""
	if g.DelayedQueue {
		queue = "DelayedQueue: true,\n"
	}
	return fmt.Sprintf("guards.Guard{\nName: %q,\nMessage: %s,\n%sActivities: []guards.Activity{\n%s,\n},\n}", g.Name, message, queue, line(g.Activities[0]))
}

// withActivity returns limits.go with one more activity of a guard.
func (s *source) withActivity(guard string, a limits.Activity) (Change, error) {
	for _, lit := range all[*ast.CompositeLit](s) {
		if list, ok := field(lit, "Activities").(*ast.CompositeLit); ok && literal(field(lit, "Name")) == guard {
			return s.change(fmt.Sprintf("%s of %s: %s", a.Name, guard, limitsOf(a)), s.element(list, line(a)))
		}
	}
	return Change{}, fmt.Errorf("%s has no guard with the Name %q and a list of Activities", s.name, guard)
}

// line returns an activity as limits.go writes it.
func line(a limits.Activity) string {
	text := fmt.Sprintf("{Name: %q, Limit: %q", a.Name, a.Limit.String())
	if len(a.Tiers) > 0 {
		var tiers []string
		for _, name := range slices.Sorted(maps.Keys(a.Tiers)) {
			tiers = append(tiers, fmt.Sprintf("%q: %q", name, a.Tiers[name]))
		}
		text += ", Tiers: guards.Tiers{" + strings.Join(tiers, ", ") + "}"
	}
	if len(a.Subjects) > 0 {
		var subjects []string
		for _, s := range a.Subjects {
			one := fmt.Sprintf("{Name: %q, Limit: %q", s.Name, s.Limit.String())
			if s.Optional {
				one += ", Optional: true"
			}
			subjects = append(subjects, one+"}")
		}
		text += ", Subjects: []guards.Subject{" + strings.Join(subjects, ", ") + "}"
	}
	if a.Group != "" {
		text += fmt.Sprintf(", Group: %q", a.Group)
	}
	if a.Hold {
		text += ", Hold: true"
	}
	return text + "}"
}

// variable returns a name for the guard's variable in package limits: Photos
// for photos-guard, or PhotosGuard if the package uses Photos.
func (p *Project) variable(guard string) (string, error) {
	files, err := sources(p.root.FS())
	if err != nil {
		return "", err
	}
	used := map[string]bool{}
	for _, s := range files {
		for _, id := range all[*ast.Ident](s) {
			used[id.Name] = true
		}
	}
	name := freeName(guard, used)
	if name == "" {
		return "", fmt.Errorf("package limits has a %s already; choose another name for the guard", LogicalID(guard))
	}
	return name, nil
}

// freeName returns a name for the variable of a guard that is not used; empty: both
// are.
func freeName(guard string, used map[string]bool) string {
	long := LogicalID(guard)
	for _, name := range []string{strings.TrimSuffix(long, "Guard"), long} {
		if !used[name] {
			return name
		}
	}
	return ""
}

// changelog returns the changelog with an entry about the addition.
func (p *Project) changelog(g limits.Guard, a limits.Activity) (Change, error) {
	entry := fmt.Sprintf("- **`%s`** is a new activity of `%s`. Its limit is `%s`.", a.Name, g.Name, a.Limit)
	if len(g.Activities) == 1 {
		entry = fmt.Sprintf("- **`%s`** is a new guard. Its activity is `%s`, with the limit `%s`.", g.Name, a.Name, a.Limit)
	}
	if a.Group != "" {
		entry += fmt.Sprintf(" It counts in the group `%s`.", a.Group)
	}
	if len(a.Tiers) > 0 {
		entry += " Its tiers have other limits: " + Tiers(a, "`") + "."
	}
	if len(a.Subjects) > 0 {
		entry += " It counts for others, too: " + Subjects(a, "`") + "."
	}
	text, err := p.read(changelog)
	if errors.Is(err, fs.ErrNotExist) {
		return Change{}, nil
	}
	return Change{File: changelog, What: "an entry under Added", Before: text, After: withEntry(text, entry+"\n")}, err
}

// withEntry returns the changelog with one more entry under Added of the
// unreleased part, which begins above the last release if it is missing.
func withEntry(text, entry string) string {
	const unreleased, next, added = "\n## Unreleased\n", "\n## ", "\n### Added\n\n"
	if !strings.Contains(text, unreleased) {
		at := strings.Index(text+next, next)
		text = strings.TrimRight(text[:at], "\n") + "\n" + unreleased + text[at:]
	}
	head, rest, _ := strings.Cut(text, unreleased)
	end := strings.Index(rest+next, next)
	if at := strings.Index(rest[:end], added); at >= 0 {
		head, rest = head+unreleased+rest[:at], rest[at+len(added):]
	} else {
		head += unreleased
	}
	return head + added + entry + rest
}

// addToFile is Add for a page in JSON. The program has read the page, so no file can be older
// than it.
func (p *Project) addToFile(r Request) (a limits.Activity, changes []Change, err error) {
	before, err := p.read(p.file)
	if err != nil {
		return a, nil, err
	}
	c := Change{File: p.file, Before: before}
	if r.New {
		g := guards.Guard{Name: r.Guard, Message: tooMany, Activities: []guards.Activity{r.Activity}}
		if linked, err := limits.Link([]guards.Guard{g}); err == nil {
			_, queued := p.guards.Queued()
			g.DelayedQueue = !queued && linked[0].Activities[0].Limit.Queues()
		}
		c.After, err = pagefile.WithGuard(before, g)
	} else {
		c.After, err = pagefile.WithActivity(before, r.Guard, r.Activity)
	}
	if err != nil {
		return a, nil, fmt.Errorf("%s: %w", p.file, err)
	}
	page, err := pagefile.Read(p.file, []byte(c.After))
	if err != nil {
		return a, nil, err
	}
	all, err := limits.Link(page)
	if err != nil {
		return a, nil, err
	}
	g, a, _ := all.Activity(r.Activity.Name)
	c.What = fmt.Sprintf("%s of %s: %s", a.Name, g.Name, limitsOf(a))
	if r.New {
		c.What = fmt.Sprintf("the guard %s with %s: %s", g.Name, a.Name, limitsOf(a))
	}
	changes, err = p.following(c, g, a, all)
	return a, changes, err
}
