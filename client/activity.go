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
