package console

import (
	"maps"
	"slices"
	"strings"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/guard"
	"github.com/cric-talk/guards/internal/limits"
)

// A part is what one item counts of a call: the user's item, or the item of a subject
// such as a room.
type part struct {
	key
	subject string // its name; empty: the user
}

// partsOf returns the parts of a request, the user first.
func partsOf(r guards.Request) []part {
	all := []part{{key{r.UserID, r.Activity}, ""}}
	for _, name := range slices.Sorted(maps.Keys(r.Subjects)) {
		all = append(all, part{key{limits.SubjectID(name, r.Subjects[name]), r.Activity}, name})
	}
	return all
}

// subjectOf returns the subject that a limit of an answer is about; empty: the user. A
// limit of a subject is named room, or room.minute if the subject has several.
func subjectOf(r guards.Request, limit string) string {
	name, _, _ := strings.Cut(limit, ".")
	if _, ok := r.Subjects[name]; ok {
		return name
	}
	return ""
}

// by names the subject that refused a call as the page shows it, such as room=r42. It is empty
// if nothing did, or the user's own limit.
func (c *call) by() string {
	name := subjectOf(c.request, c.answer.LimitedBy)
	if c.answer.Allowed || name == "" {
		return ""
	}
	return name + "=" + c.request.Subjects[name]
}

// partOf returns the figures that the answer to r has of one part. There are none if
// the answer has none of it: a refusal from memory has only the figures of the limit
// that refused.
func partOf(d guards.Decision, r guards.Request, subject string) (own []guards.Figures) {
	if len(r.Subjects) == 0 {
		return guard.LimitsOf(d)
	}
	for _, f := range d.Limits {
		if subjectOf(r, f.Name) != subject {
			continue
		}
		if f.Name = strings.TrimPrefix(strings.TrimPrefix(f.Name, subject), "."); f.Name == r.Activity && subject == "" {
			f.Name = "" // the user's only limit
		}
		own = append(own, f)
	}
	return own
}

// usedIn returns what counts in all of these limits together.
func usedIn(all []guards.Figures) (n int64) {
	for _, f := range all {
		n += f.ActivityCount
	}
	return n
}

// gaveBack reports whether a release changed a count of its user.
func (c *call) gaveBack() bool {
	own := partOf(c.answer, c.request, "")
	return len(own) > 0 && usedIn(own) < c.before
}

// shown returns the user or the subject of a key as the page shows it: u1, or room=r42.
func (k key) shown() string {
	if name, id, ok := limits.SubjectOf(k.user); ok {
		return name + "=" + id
	}
	return k.user
}
