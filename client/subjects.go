package client

import (
	"fmt"
	"strings"

	"github.com/cric-talk/guards"
)

// wrongSubjects returns what is wrong with the subjects of a request; "" if they are
// right. A reset may leave them out, because it clears the user alone. The message
// never shows what the app sent, because that could be an id.
func (a *Activity) wrongSubjects(op guards.Op, given map[string]string) string {
	known := 0
	for _, s := range a.Subjects {
		name, optional := strings.CutSuffix(s, "?")
		_, ok := given[name]
		switch {
		case ok:
			known++
		case !optional && op != guards.Reset:
			return fmt.Sprintf("subjects has no %s: the activity %q needs %s", name, a.Name, a.subjectNames())
		}
	}
	switch {
	case len(given) == known:
		return ""
	case len(a.Subjects) == 0:
		return fmt.Sprintf("subjects does not go with the activity %q: the list has none for it. Write the list again with guards generate if it is old.", a.Name)
	}
	return fmt.Sprintf("subjects has an unknown name: the activity %q has %s", a.Name, a.subjectNames())
}

// subjectNames returns the names for messages, such as "room, tenant (optional)".
func (a *Activity) subjectNames() string {
	return strings.ReplaceAll(strings.Join(a.Subjects, ", "), "?", " (optional)")
}

// anySubjects returns the subjects that a request must have, all with one id; nil if
// there are none.
func (a *Activity) anySubjects(id string) (subjects map[string]string) {
	for _, s := range a.Subjects {
		if strings.HasSuffix(s, "?") {
			continue
		}
		if subjects == nil {
			subjects = map[string]string{}
		}
		subjects[s] = id
	}
	return subjects
}
