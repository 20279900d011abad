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
	"strconv"
	"strings"

	"github.com/cric-talk/guards/internal/limits"
)

// A Request describes what to add: an activity, and perhaps the guard for it.
type Request struct {
	Guard    string          // the guard of the activity
	New      bool            // the guard does not exist yet
	Activity limits.Activity // its limit is valid
}

// Add returns the changes that a request needs. It writes nothing.
//
// The generated files follow from the program's guards and the addition, as a
// program that is built afterwards would write them. So Add refuses a project
// whose files are stale before the addition: the program may be older than
// limits.go.
func (p *Project) Add(r Request) ([]Change, error) {
	if err := p.check(r); err != nil {
		return nil, err
	}
	stale, err := p.Stale()
	if err == nil && len(stale) > 0 {
		err = fmt.Errorf("%s does not follow from the limits of this program: run go run ./cmd/guards generate, then go run ./cmd/guards new", stale[0].File)
	}
	if err != nil {
		return nil, err
	}
	page, err1 := parse(p.root.FS(), limitsFile)
	promises, err2 := parse(p.root.FS(), promisesFile)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	guards := slices.Clone(p.guards)
	var e edits
	g, _ := guards.Named(r.Guard)
	g.Activities = append(slices.Clone(g.Activities), r.Activity)
	if r.New {
		_, queued := guards.Queued()
		g.DelayedQueue = r.Activity.Limit.Queues() && !queued
		g.Name, g.Message = r.Guard, cmp.Or(literal(page.value("tooMany")), tooMany)
		guards = append(guards, g)
		e.add(p.withGuard(page, g))
	} else {
		guards[slices.IndexFunc(guards, func(other limits.Guard) bool { return other.Name == g.Name })] = g
		e.add(page.withActivity(g.Name, r.Activity))
	}
	e.add(promises.withPromise(g, r.Activity))
	e.add(p.changelog(r))
	if e.err != nil {
		return nil, e.err
	}
	stale, err = Stale(p.root.FS(), guards)
	return append(e.changes, stale...), err
}

// edits collects changes and errors.
type edits struct {
	changes []Change
	err     error
}

func (e *edits) add(c Change, err error) {
	if e.err = errors.Join(e.err, err); c.File != "" {
		e.changes = append(e.changes, c)
	}
}

var (
	// guardName is the form of a guard's name. The Makefile makes the folder's name
	// from the one in the template, so each word has two characters or more.
	guardName = regexp.MustCompile(`^([a-z][a-z0-9]+-)+guard$`)
)

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
		return fmt.Errorf("%s is already an activity of %s; to change its limit, edit %s and %s", r.Activity.Name, other.Name, limitsFile, promisesFile)
	}
	_, exists := p.guards.Named(r.Guard)
	switch {
	case r.New && exists:
		return fmt.Errorf("%s exists already; to add an activity to it, write: guards new --guard %[1]s %s LIMIT", r.Guard, r.Activity.Name)
	case !r.New && !exists:
		return fmt.Errorf("there is no guard %q", r.Guard)
	}
	if err := validName(r.Guard); err != nil {
		return err
	}
	return limits.Guard{Name: r.Guard, Message: "m", Activities: []limits.Activity{r.Activity}}.Validate()
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
	list := s.activities(guard)
	if list == nil {
		return Change{}, fmt.Errorf("%s has no guard with the Name %q and a list of Activities", s.name, guard)
	}
	return s.change(fmt.Sprintf("%s of %s: %s", a.Name, guard, limitsOf(a)), s.element(list, line(a)))
}

// withPromise returns limits_test.go with one more row in its table of limits.
func (s *source) withPromise(g limits.Guard, a limits.Activity) (Change, error) {
	table, _ := s.value("promised").(*ast.CompositeLit)
	if table == nil {
		return Change{}, fmt.Errorf("%s has no table named promised", s.name)
	}
	unknown := ""
	switch {
	case a.Group != "" && lacks(table, "group") || a.Hold && lacks(table, "hold"):
		unknown = "groups and Hold"
	case len(a.Subjects) > 0 && lacks(table, "subjects"):
		unknown = "subjects"
	}
	if unknown != "" {
		return Change{}, fmt.Errorf("%s does not know %s: take the file of a project that guards init makes now, and put your rows into it", s.name, unknown)
	}
	return s.change("the promise "+a.Name+": "+limitsOf(a), s.element(table, promise(s.named(g.Message), g, a)))
}

// promise returns an activity as limits_test.go writes it. Message is as in value.
func promise(message string, g limits.Guard, a limits.Activity) string {
	text := fmt.Sprintf("{guard: %q, message: %s, activities: %q, limit: %q", g.Name, message, a.Name, a.Limit.String())
	if len(a.Tiers) > 0 {
		text += ", tiers: map[string]string{" + pairs(a.Tiers, "%q") + "}"
	}
	if len(a.Subjects) > 0 {
		var subjects []string
		for _, s := range a.Subjects {
			subjects = append(subjects, strconv.Quote(subjectText(s, "")))
		}
		text += ", subjects: []string{" + strings.Join(subjects, ", ") + "}"
	}
	return text + marks(a, "group", "hold") + "}"
}

// line returns an activity as limits.go writes it.
func line(a limits.Activity) string {
	text := fmt.Sprintf("{Name: %q, Limit: guards.Limit(%q)", a.Name, a.Limit.String())
	if len(a.Tiers) > 0 {
		text += ", Tiers: guards.Tiers{" + pairs(a.Tiers, "guards.Limit(%q)") + "}"
	}
	if len(a.Subjects) > 0 {
		var subjects []string
		for _, s := range a.Subjects {
			one := fmt.Sprintf("{Name: %q, Limit: guards.Limit(%q)", s.Name, s.Limit.String())
			if s.Optional {
				one += ", Optional: true"
			}
			subjects = append(subjects, one+"}")
		}
		text += ", Subjects: []guards.Subject{" + strings.Join(subjects, ", ") + "}"
	}
	return text + marks(a, "Group", "Hold") + "}"
}

// marks returns the group of an activity and that it holds, as fields with these names.
func marks(a limits.Activity, group, hold string) (text string) {
	if a.Group != "" {
		text = fmt.Sprintf(", %s: %q", group, a.Group)
	}
	if a.Hold {
		text += fmt.Sprintf(", %s: true", hold)
	}
	return text
}

// pairs returns the tiers as pairs of a map, each limit in a format.
func pairs(tiers limits.Tiers, format string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(tiers)) {
		all = append(all, strconv.Quote(name)+": "+fmt.Sprintf(format, tiers[name].String()))
	}
	return strings.Join(all, ", ")
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
func (p *Project) changelog(r Request) (Change, error) {
	entry := fmt.Sprintf("- **`%s`** is a new activity of `%s`. Its limit is `%s`.\n", r.Activity.Name, r.Guard, r.Activity.Limit)
	if r.New {
		entry = fmt.Sprintf("- **`%s`** is a new guard. Its activity is `%s`, with the limit `%s`.\n", r.Guard, r.Activity.Name, r.Activity.Limit)
	}
	if r.Activity.Group != "" {
		entry = strings.TrimSuffix(entry, "\n") + fmt.Sprintf(" It counts in the group `%s`.\n", r.Activity.Group)
	}
	if len(r.Activity.Tiers) > 0 {
		entry = strings.TrimSuffix(entry, "\n") + " Its tiers have other limits: " + Tiers(r.Activity, "`") + ".\n"
	}
	if len(r.Activity.Subjects) > 0 {
		entry = strings.TrimSuffix(entry, "\n") + " It counts for others, too: " + Subjects(r.Activity, "`") + ".\n"
	}
	text, err := p.read(changelog)
	if errors.Is(err, fs.ErrNotExist) {
		return Change{}, nil
	}
	return Change{File: changelog, What: "an entry under Added", Before: text, After: withEntry(text, entry)}, err
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
