package live

import "strings"

// A Target is what an override changes: an activity, the limit of one of its subjects, or one
// limit of a group, of users or of a subject.
type Target struct {
	Activity string // empty: a limit of Group
	Group    string
	Subject  string // empty: users
	Limit    string // of Group
}

// String returns the name of the override, such as write, write/room, content.writes or
// content.room.minute.
func (t Target) String() string {
	if t.Activity != "" {
		return strings.TrimSuffix(t.Activity+"/"+t.Subject, "/")
	}
	return t.Group + "." + strings.TrimPrefix(t.Subject+"."+t.Limit, ".")
}

// ParseTarget reads a name. For any text, String returns the same text, except for a subject
// without a name.
func ParseTarget(name string) (t Target) {
	group, limit, ok := strings.Cut(name, ".")
	if !ok {
		t.Activity, t.Subject, _ = strings.Cut(name, "/")
		return t
	}
	t.Group, t.Limit = group, limit
	if subject, limit, ok := strings.Cut(limit, "."); ok {
		t.Subject, t.Limit = subject, limit
	}
	return t
}
