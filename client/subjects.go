package client

import (
	"fmt"
	"strings"
)

// A Subject is somebody or something besides the user in whose limit an activity
// counts, such as the room of a message.
type Subject struct {
	Name     string // such as "room"
	Optional bool   // whether a request may leave it out
}

// wrongSubjects returns what is wrong with the subjects of a request; "" if they are
// right. A reset may leave them out, because it clears the user alone. The message
// never shows what the app sent: it could be an id.
func (a *Activity) wrongSubjects(op string, given map[string]string) string {
	known := 0
	for _, s := range a.Subjects {
		_, ok := given[s.Name]
		if !ok && !s.Optional && op != "reset" {
			return fmt.Sprintf("subjects has no %s: the activity %q needs %s", s.Name, a.Name, a.subjectNames())
		}
		if ok {
			known++
		}
	}
	switch {
	case len(given) == known:
		return ""
	case len(a.Subjects) == 0:
		return fmt.Sprintf("subjects does not go with the activity %q: the list has none for it; write the list again with guards generate if it should", a.Name)
	}
	return fmt.Sprintf("subjects has an unknown name: the activity %q has %s", a.Name, a.subjectNames())
}

// subjectNames returns the names for messages, such as "room, tenant (optional)".
func (a *Activity) subjectNames() string {
	names := make([]string, len(a.Subjects))
	for i, s := range a.Subjects {
		if names[i] = s.Name; s.Optional {
			names[i] += " (optional)"
		}
	}
	return strings.Join(names, ", ")
}

// anySubjects returns the subjects that a request must have, all with one id; nil if
// there are none.
func (a *Activity) anySubjects(id string) (subjects map[string]string) {
	for _, s := range a.Subjects {
		if s.Optional {
			continue
		}
		if subjects == nil {
			subjects = map[string]string{}
		}
		subjects[s.Name] = id
	}
	return subjects
}
