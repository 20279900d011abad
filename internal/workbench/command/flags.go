package command

import (
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/table"
)

// Commands name whose items they show or change by a key: the id of a user, or the key
// of a subject (see [limits.SubjectID]).

// subjects are the ids of subjects by their names, as --subject NAME=ID gives them.
type subjects map[string]string

// Decode implements kong.MapperValue. Kong's own maps keep the last of two ids in
// silence.
func (s *subjects) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("NAME=ID", &text); err != nil {
		return err
	}
	name, id, _ := strings.Cut(text, "=")
	switch {
	case name == "" || id == "":
		return input.Invalid("the value", input.Show(text), "a name and an id, such as room=r42")
	case input.CheckUserID(id) != nil:
		return input.Invalid("the id of "+input.Show(name), input.Show(id), "1 to 128 characters, each ! to ~")
	case (*s)[name] != "":
		return input.Invalid(input.Show(name), "given twice", "one id")
	}
	if *s == nil {
		*s = subjects{}
	}
	(*s)[name] = id
	return nil
}

// of returns an error if these are not the subjects of an activity. It names the option.
func (s subjects) of(a limits.Activity) error {
	for _, subject := range a.Subjects {
		if s[subject.Name] == "" && !subject.Optional {
			problem := "has no " + subject.Name + ", which " + a.Name + " needs: give --subject " + subject.Name + "=ID"
			return &input.ValidationError{Field: "--subject", Problem: problem}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if err := hasSubject(a, name); err != nil {
			return err
		}
	}
	return nil
}

// ownerFlags names the user or the subject whose items a command shows or changes.
type ownerFlags struct {
	User    string   `required:"" xor:"whose" placeholder:"ID" help:"The user."`
	Subject subjects `required:"" xor:"whose" placeholder:"NAME=ID" help:"Instead of a user: a subject, such as room=r42."`
}

// key returns the key of the user or the subject.
func (f ownerFlags) key() (string, error) {
	if len(f.Subject) > 1 {
		return "", input.Invalid("--subject", "given twice", "one subject")
	}
	for name, id := range f.Subject {
		return limits.SubjectID(name, id), nil
	}
	return f.User, input.CheckUserID(f.User)
}

// keyIn returns the key of a user, or of a subject that an activity has.
func (f ownerFlags) keyIn(a limits.Activity) (string, error) {
	key, err := f.key()
	if err == nil {
		err = hasSubject(a, subjectOf(key))
	}
	return key, err
}

// hasSubject returns an error unless an activity has the subject with this name. An empty
// name means users.
func hasSubject(a limits.Activity, name string) error {
	if a.Has(name) {
		return nil
	}
	return unknown("--subject", name, subjectNames(limits.Guards{{Activities: []limits.Activity{a}}}), "subject of "+a.Name)
}

// keyInOne returns the key of a user, or of a subject that an activity of the project has.
func (f ownerFlags) keyInOne(guards limits.Guards) (string, error) {
	key, err := f.key()
	if name := subjectOf(key); err == nil && name != "" {
		err = unknown("--subject", name, subjectNames(guards), "subject of an activity")
	}
	return key, err
}

// subjectNames returns the names of all subjects of the guards, sorted.
func subjectNames(guards limits.Guards) (names []string) {
	for _, a := range guards.All {
		for _, s := range a.Subjects {
			names = append(names, s.Name)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// subjectOf returns the name of the subject with this key; empty: it is a user's key.
func subjectOf(key string) string { return limits.SubjectName(key) }

// shown returns the user or the subject with this key as people type it: u1, or
// room=r42.
func shown(key string) string {
	if name, id, ok := limits.SubjectOf(key); ok {
		return name + "=" + id
	}
	return key
}

// option returns the option that names the user or the subject with this key.
func option(key string) string {
	if subjectOf(key) != "" {
		return "--subject " + shown(key)
	}
	return "--user " + key
}

// owners returns how many users and subjects there are, for people: 2 users, or 2 users
// and 4 subjects (room 3, tenant 1).
func owners(users int64, subjects table.Subjects) string {
	text := plural(users, "user")
	if len(subjects) == 0 {
		return text
	}
	var each []string
	total := int64(0)
	for _, name := range slices.Sorted(maps.Keys(subjects)) {
		each = append(each, name+" "+grouped(subjects[name]))
		total += subjects[name]
	}
	return text + " and " + plural(total, "subject") + " (" + strings.Join(each, ", ") + ")"
}

// An owner names a user or a subject in JSON.
type owner struct {
	UserID  string            `json:"userId,omitzero"`
	Subject map[string]string `json:"subject,omitempty"`
}

// ownerOf returns the user or the subject with this key.
func ownerOf(key string) owner {
	if name, id, ok := limits.SubjectOf(key); ok {
		return owner{Subject: map[string]string{name: id}}
	}
	return owner{UserID: key}
}

// key is the reverse of ownerOf.
func (w owner) key() string {
	for name, id := range w.Subject {
		return limits.SubjectID(name, id)
	}
	return w.UserID
}

// A subject is one of an activity with its limit, in JSON.
type subject struct {
	Name     string       `json:"name"`
	Policy   string       `json:"policy"` // as of an activity
	Limit    int64        `json:"limit"`
	WindowMs int64        `json:"windowMs"`
	Tiers    limits.Tiers `json:"tiers,omitempty"`
	Optional bool         `json:"optional,omitzero"`
}

// subjectsOf returns the subjects of an activity with their limits.
func subjectsOf(a limits.Activity) (all []subject) {
	for _, s := range a.Subjects {
		quota := s.Limit.Quota()
		all = append(all, subject{s.Name, s.Limit.String(), quota.Limit, quota.Window.Milliseconds(), s.Tiers, s.Optional})
	}
	return all
}

// numbers are the numbers of a caller for limits with a max, by the names of the limits, as
// --limit gives them. An empty name is the user's only limit.
type numbers map[string]int64

// Decode implements kong.MapperValue.
func (n *numbers) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("NUMBER", &text); err != nil {
		return err
	}
	equals := strings.LastIndex(text, "=") // -1: there is no name
	name, number := text[:max(0, equals)], text[equals+1:]
	value, ok := input.Number(number)
	if !ok {
		err := input.Invalid("the value", input.Show(text), "a whole number from 0 to 1000000, or one for a limit by its name, such as tenant=500")
		if _, wrong := policy.Parse(number); wrong == nil {
			return hint{err, "a limit's text goes to guards limits set, or to guards replay to try it"}
		}
		return err
	}
	if _, twice := (*n)[name]; twice {
		return input.Invalid(input.Show(text), "given beside another number", "one for each limit")
	}
	if *n == nil {
		*n = numbers{}
	}
	(*n)[name] = value
	return nil
}

// check returns an error for a number that no limit of users, or of the subject, takes.
func (n numbers) check(guards limits.Guards, subject string) error {
	var names []string
	for _, a := range guards.All {
		names = append(names, a.WithMax(subject)...)
	}
	for name := range n {
		if err := unknown("--limit", name, names, "limit with a max"); err != nil && (name != "" || subject != "" || names == nil) {
			return err
		}
	}
	return nil
}

// These explain a max.
const (
	byText  = "max: figures are by each text's own number; a caller can give another, up to max"
	upToMax = "max: a caller can give any number up to max; a live limit with a lower max lowers that for everybody"
)
