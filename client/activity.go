package client

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// An Activity is something that users do.
type Activity struct {
	Name   string
	Guard  string        // the guard that decides it
	Window time.Duration // of its limit; 0 if it is unlimited, its windows differ in length, or it has several limits or subjects

	// Subjects are the names of the others whose limits the activity counts in, such as
	// room. A check names all of them, but may leave out one that ends with a question
	// mark, such as tenant?.
	Subjects []string

	// Hold tells that the receipts of its checks work for 15 minutes, and not only for 20 s.
	Hold bool
}

// Find returns an activity: one of Options.Activities, or one whose name has its
// guard, such as "photos-guard/upload_photo". With an agent and no list, each is found: only
// the agent knows it.
func (g *Guards) Find(name string) (Activity, bool) {
	a, _, ok := g.find(name)
	return a, ok
}

// find is Find. It also reports whether the list has the activity.
func (g *Guards) find(name string) (a Activity, listed, ok bool) {
	guard, own, named := strings.Cut(name, "/")
	if !named {
		own = name
	}
	for _, a := range g.options.Activities {
		if a.Name == own && (!named || a.Guard == guard) {
			return a, true, true
		}
	}
	if g.agent != nil && g.options.Activities == nil && !named {
		return Activity{Name: own}, false, own != ""
	}
	return Activity{Name: own, Guard: guard}, false, named && guard != "" && own != ""
}

// What to do if no guard is known.
const (
	nameGuard = `or name the guard: "GUARD/ACTIVITY"`
	passList  = "pass the list that guards generate writes (activities/activities.go) as the option Activities, " + nameGuard
)

// unknown returns the error about an activity that Find does not find.
func (g *Guards) unknown(activity string) *Error {
	var names []string
	for _, a := range g.options.Activities {
		names = append(names, a.Name)
	}
	advice := suggestion(activity, names)
	switch {
	case names == nil:
		advice = ": " + passList
	case advice == "":
		advice = ": write the list again with guards generate, " + nameGuard
	}
	return &Error{Kind: ErrValidation, Message: fmt.Sprintf("no guard is known for the activity %q%s", activity, advice)}
}

// checkList returns an error for a list that no guards can have.
func checkList(list []Activity) error {
	guards := map[string]string{} // by activity
	for i, a := range list {
		if a.Name == "" || a.Guard == "" || strings.Contains(a.Name+a.Guard, "/") || a.Window < 0 {
			return wrongOption("Activities[%d] is %+v, want a Name and a Guard without a slash, and no negative Window", i, a)
		}
		if other, twice := guards[a.Name]; twice {
			return wrongOption("Activities has %q twice, for %s and for %s", a.Name, other, a.Guard)
		}
		guards[a.Name] = a.Guard
		if slices.ContainsFunc(a.Subjects, func(s string) bool { return strings.TrimSuffix(s, "?") == "" }) {
			return wrongOption("Activities has a subject of %q without a name", a.Name)
		}
	}
	return nil
}

// suggestion returns a question for the message about an unknown name. It is
// empty if no known name is near.
func suggestion(misspelled string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	best := slices.MinFunc(names, func(a, b string) int { return distance(misspelled, a) - distance(misspelled, b) })
	if distance(misspelled, best) > len(best)/4 {
		return ""
	}
	return "; do you mean " + best + "?"
}

// distance returns how many edits turn a into b. An edit inserts, removes or
// changes one letter.
func distance(a, b string) int {
	d := make([]int, len(b)+1) // d[j] is the distance of a[:i] and b[:j]
	for j := range d {
		d[j] = j
	}
	for i := range len(a) {
		before := d[0] // of a[:i] and b[:j]
		d[0] = i + 1
		for j := range len(b) {
			edits := before
			if a[i] != b[j] {
				edits = 1 + min(before, d[j], d[j+1])
			}
			before, d[j+1] = d[j+1], edits
		}
	}
	return d[len(b)]
}
