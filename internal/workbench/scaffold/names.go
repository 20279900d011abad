package scaffold

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"regexp"
	"strings"

	"github.com/cric-talk/guards/internal/limits"
)

// suffix ends the name of each guard. The template's rules rely on it.
const suffix = "-guard"

// guardName is the form of a guard's name. The Makefile makes the folder's name
// from the one in the template, so each word has two characters or more.
var guardName = regexp.MustCompile(`^([a-z][a-z0-9]+-)+guard$`)

// longestName leaves room for the template's NamePrefix of 21 characters. A
// function's name has at most 64.
const longestName = 64 - 21

// check refuses a request that does not fit the checkout.
func (c *Checkout) check(r Request) error {
	for _, other := range c.Guards() {
		if _, taken := other.Activity(r.Activity.Name); taken {
			return fmt.Errorf("%s is already an activity of %s; to change its limit, edit %s", r.Activity.Name, other.Name, limitsFile)
		}
	}
	_, exists := c.guard(r.Guard)
	switch {
	case r.New && exists:
		return fmt.Errorf("%s exists already; to add an activity to it, write: guards new --guard %[1]s %s LIMIT", r.Guard, r.Activity.Name)
	case r.New && len(r.Guard) > longestName:
		return fmt.Errorf("guard's name has %d characters, want at most %d", len(r.Guard), longestName)
	case r.New && !guardName.MatchString(r.Guard):
		return fmt.Errorf("guard is %q, want words of at least two characters, a to z and 0 to 9, that end in %s, such as photos%[2]s", r.Guard, suffix)
	case !r.New && !exists:
		return fmt.Errorf("there is no guard %q", r.Guard)
	}
	alone := limits.Guard{Name: r.Guard, Message: "m", Activities: []limits.Activity{r.Activity}}
	return alone.Validate()
}

// onlyQueues reports whether all limits of a guard are reservoirs. These can't
// be reset, so the guard deletes nothing.
func onlyQueues(g limits.Guard) bool {
	for _, a := range g.Activities {
		if !a.Unlimited && !a.Limit.Queues() {
			return false
		}
	}
	return true
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

// variable returns a name for the guard's variable in package limits: Photos
// for photos-guard, or PhotosGuard if Photos is taken.
func (c *Checkout) variable(guard string) (string, error) {
	taken := map[string]bool{}
	files, err := fs.Glob(c.root.FS(), "limits/*.go")
	if err != nil {
		return "", err
	}
	for _, name := range files {
		text, err := c.read(name)
		if err != nil {
			return "", err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return "", err
		}
		for _, d := range file.Decls {
			declared(d, taken)
		}
	}
	long := LogicalID(guard)
	for _, name := range []string{strings.TrimSuffix(long, "Guard"), long} {
		if !taken[name] {
			return name, nil
		}
	}
	return "", fmt.Errorf("package limits has a %s already; choose another name for the guard", long)
}

// declared adds the names that a declaration declares.
func declared(d ast.Decl, names map[string]bool) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		names[d.Name.Name] = true
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				names[s.Name.Name] = true
			case *ast.ValueSpec:
				for _, n := range s.Names {
					names[n.Name] = true
				}
			}
		}
	}
}
