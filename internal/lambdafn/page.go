package lambdafn

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/pagefile"
)

// GuardOfPage runs the guard that GUARD_NAME names, for a program that is the same for every
// project and reads a page of limits. Like Guard, it never returns.
func GuardOfPage() {
	page, g, err := OfPage()
	if err == nil && g.DelayedQueue {
		err = fmt.Errorf("%s has a DelayedQueue: its function needs the program jobs-guard", g.Name)
	}
	runGuard(page, g.Name, err)
}

// CleanupOfPage runs cleanup as GuardOfPage runs a guard. It ignores GUARD_NAME.
func CleanupOfPage() { runCleanup(pagefile.OfProgram()) }

// OfPage returns the page of the program, and the guard that GUARD_NAME names. The error has all
// mistakes. Then the guard has only a name, for the log.
func OfPage() ([]guards.Guard, guards.Guard, error) {
	page, err := pagefile.OfProgram()
	name := os.Getenv("GUARD_NAME")
	if name == "" {
		return nil, guards.Guard{Name: "guard"}, errors.Join(err, errors.New("GUARD_NAME is not set, want the name of a guard, such as photos-guard"))
	}
	if err != nil {
		return nil, guards.Guard{Name: name}, err
	}
	var names []string
	for _, g := range page {
		names = append(names, g.Name)
	}
	i := slices.Index(names, name)
	if i < 0 {
		return nil, guards.Guard{Name: name}, fmt.Errorf("GUARD_NAME is %q, want one of %s", name, strings.Join(names, ", "))
	}
	return page, page[i], nil
}
