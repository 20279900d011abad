package console

import (
	"maps"
	"slices"
	"strings"

	"github.com/cric-talk/guards/internal/limits"
)

// A part is what one item counts of a call: that of the user, or of a subject such as a
// room.
type part struct {
	key
	subject string // its name; empty: the user
}

// parts returns the parts of a call, the user first.
func (r request) parts() []part {
	all := []part{{key{r.UserID, r.Activity}, ""}}
	for _, name := range slices.Sorted(maps.Keys(r.Subjects)) {
		all = append(all, part{key{limits.SubjectID(name, r.Subjects[name]), r.Activity}, name})
	}
	return all
}

// subjectOf returns the subject that a limit of an answer is about; empty: the user. A
// limit of a subject is named room, or room.minute if the subject has several.
func (r request) subjectOf(limit string) string {
	name, _, _ := strings.Cut(limit, ".")
	if _, ok := r.Subjects[name]; ok {
		return name
	}
	return ""
}

// by names the subject that refused a call as the page shows it, such as room=r42. It is empty
// if nothing did, or the user's own limit.
func (c *call) by() string {
	name := c.subjectOf(c.LimitedBy)
	if c.Allowed || name == "" {
		return ""
	}
	return name + "=" + c.Subjects[name]
}

// of returns the answer to r with the figures of one part only. It returns false if the
// answer has none of it, as a refusal from memory has only those of the limit that refused.
func (a answer) of(r request, subject string) (answer, bool) {
	if len(r.Subjects) == 0 {
		return a, true
	}
	var own []figures
	for _, f := range a.Limits {
		if r.subjectOf(f.Name) != subject {
			continue
		}
		if f.Name = strings.TrimPrefix(strings.TrimPrefix(f.Name, subject), "."); f.Name == r.Activity && subject == "" {
			f.Name = "" // the user's only limit
		}
		own = append(own, f)
	}
	if len(own) == 0 {
		return a, false
	}
	if a.figures, a.Limits = own[0], own; len(own) == 1 && own[0].Name == "" {
		a.Limits = nil
	}
	return a, true
}

// gaveBack reports whether a release changed the count of its user.
func (c *call) gaveBack() bool {
	own, ok := c.of(c.request, "")
	return ok && own.Used < c.before
}

// whose returns the user and the subjects of a call as the page shows them.
func (r request) whose() (names []string) {
	for _, p := range r.parts() {
		names = append(names, p.shown())
	}
	return names
}

// shown returns the user or the subject of a key as the page shows it: u1, or room=r42.
func (k key) shown() string {
	if name, id, ok := limits.SubjectOf(k.user); ok {
		return name + "=" + id
	}
	return k.user
}
