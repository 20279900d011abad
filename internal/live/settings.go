// Package live lets operators change limits without a deploy.
//
// The [Settings] are one document: changed limits and modes of activities, and
// grants of a role or a tier to a user. They are kept in a [Table]. Operators
// change them with [Edit], which refuses a change that the code could not
// apply. Each instance of a guard has a [Follower], which applies a change
// within 30 s. [Limits.Terms] is the one place that works out what is in force.
//
// For example, one activity has other limits, and another one is not counted:
//
//	{"activities": {
//	    "create_post": {"limit": "20/1m", "tiers": {"premium": "40/1m"}},
//	    "add_comment": {"mode": "off"}
//	}}
package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
)

// Settings are the content of the document. The zero Settings change nothing.
// The methods that return other Settings leave these as they are.
type Settings struct {
	Activities map[string]Override `json:"activities,omitempty"` // by name: write, write/room, or content.writes, a limit of a group
	Grants     []Grant             `json:"grants,omitempty"`

	by Stamp // for what Set and Grant change; zero: it gets no stamp
}

// A Grant gives a user either a role or a tier, until a time.
type Grant struct {
	UserID string    `json:"userId"`
	Role   string    `json:"role,omitzero"`
	Tier   string    `json:"tier,omitzero"`
	Until  time.Time `json:"until"`
	Reason string    `json:"reason"`
	Set    Stamp     `json:"set,omitzero"`
}

// A Stamp tells who set a part of the settings, when and why. [Edit] writes it.
// The zero Stamp means that nobody knows, as after an edit by hand.
type Stamp struct {
	Of    string    `json:"of,omitzero"` // the limit or mode that was set; another one beside it was written by hand
	Since time.Time `json:"since,omitzero"`
	By    string    `json:"by,omitzero"`
	Why   string    `json:"why,omitzero"`
}

// With 200 grants that have the longest texts, the document takes about 150 KB.
const (
	mostGrants = 200
	mostBy     = 100 // bytes of the name of who makes a change
	mostWhy    = 200 // bytes of the reason of a change
)

// Parse reads a document that the code may be unable to apply. Its error has the type
// *DocumentError.
func Parse(document []byte) (s Settings, err error) {
	if err := json.Unmarshal(document, &s, json.RejectUnknownMembers(true)); err != nil {
		return Settings{}, &DocumentError{err}
	}
	return s, nil
}

// A DocumentError reports a document of live limits that Parse can't read, or a
// table whose item has an attribute of another type.
type DocumentError struct {
	Cause error // can quote the document, which contains user ids: not for a log
}

// Error implements error. Its text leaves the cause out.
func (e *DocumentError) Error() string {
	return "the document of the live limits has a wrong type or an unknown name"
}

// Document returns the settings as JSON, the form in which they are stored.
func (s Settings) Document() ([]byte, error) { return json.Marshal(s, json.Deterministic(true)) }

// Set changes the limit and the mode of what has this name in Activities. If tier is
// not empty, it changes the limit of that tier only. An empty limit or mode stays.
func (s Settings) Set(name, tier, limit, mode string) Settings {
	o := s.Activities[name].clone()
	if p, err := policy.Parse(limit); err == nil {
		limit = p.String() // Edit refuses a text that is not a limit
	}
	switch {
	case limit == "":
	case tier == "":
		o.Limit = limit
	default:
		o.Tiers[tier] = limit
	}
	o.Mode = cmp.Or(mode, o.Mode)
	by, known := s.by, !s.by.Since.IsZero()
	if known && limit != "" && limit != o.Set[tier].Of { // the same limit again is no change
		by.Of = limit
		o.Set[tier] = by
	}
	if known && mode != "" && mode != o.ModeSet.Of {
		by.Of = mode
		o.ModeSet = by
	}
	return s.with(name, o)
}

// Unset undoes what Set changed. If tier is not empty, it undoes only the change of
// that tier.
func (s Settings) Unset(name, tier string) (Settings, error) {
	o, ok := s.Activities[name]
	switch _, has := o.Tiers[tier]; {
	case ok && tier == "":
		return s.with(name, Override{}), nil
	case has:
		o = o.clone()
		delete(o.Tiers, tier)
		delete(o.Set, tier)
		return s.with(name, o), nil
	case tier != "":
		name += " for tier " + tier
	}
	return s, fmt.Errorf("%s has no live limit to undo", name)
}

// with returns the settings with another override under this name.
func (s Settings) with(name string, o Override) Settings {
	s.Activities = clone(s.Activities)
	s.Activities[name] = o
	if o.empty() {
		delete(s.Activities, name)
	}
	return s
}

// clone returns a copy of a map, which may be nil.
func clone[V any](m map[string]V) map[string]V {
	c := make(map[string]V, len(m)+1)
	maps.Copy(c, m)
	return c
}

// Grant adds g and removes grants that have ended. G replaces a grant of the same role,
// or of any tier, to the same user.
func (s Settings) Grant(g Grant, now time.Time) Settings {
	s.Grants = slices.DeleteFunc(slices.Clone(s.Grants), func(old Grant) bool {
		return !now.Before(old.Until) || old.UserID == g.UserID && old.Role == g.Role && (old.Tier == "") == (g.Tier == "")
	})
	g.Set = s.by
	s.Grants = append(s.Grants, g)
	return s
}

// Revoke drops all grants of a user, and returns how many there were.
func (s Settings) Revoke(userID string) (Settings, int) {
	before := len(s.Grants)
	s.Grants = slices.DeleteFunc(slices.Clone(s.Grants), func(g Grant) bool { return g.UserID == userID })
	return s, before - len(s.Grants)
}

// GrantsAt returns the grants that are in force at now. It never returns nil.
func (s Settings) GrantsAt(now time.Time) []Grant {
	return slices.DeleteFunc(append([]Grant{}, s.Grants...), func(g Grant) bool { return !g.inForce(now) })
}

// inForce reports whether a grant counts at now.
func (g Grant) inForce(now time.Time) bool { return now.Before(g.Until) }

// Validate returns an error that names what is wrong with g.
func (g Grant) Validate() error {
	id := g.UserID
	_, of, subject := limits.SubjectOf(id)
	if subject {
		id = of
	}
	if err := input.CheckUserID(id); err != nil {
		return err
	}
	switch {
	case subject && g.Role != "":
		return errors.New("a grant to a subject needs a tier, because roles are about users")
	case (g.Role == "") == (g.Tier == ""):
		return errors.New("a grant needs either a role or a tier")
	case g.Until.IsZero():
		return errors.New("a grant needs a time when it ends")
	case g.Reason == "" || len(g.Reason) > 200:
		return errors.New("a grant needs a reason of 1 to 200 characters")
	}
	return nil
}

// validate checks only what differs from before, so settings with a mistake somewhere
// else can still be edited.
func (s Settings) validate(before Settings, guards limits.Guards) error {
	for _, name := range slices.Sorted(maps.Keys(s.Activities)) {
		was, ok := before.Activities[name]
		changed := s.Activities[name].without(was)
		if ok && changed.empty() {
			continue
		}
		if _, problems := (Settings{Activities: map[string]Override{name: changed}}).Limits(guards, nil); len(problems) > 0 {
			return errors.Join(problems...)
		}
	}
	for _, g := range s.Grants {
		if slices.Contains(before.Grants, g) {
			continue
		}
		if err := g.Validate(); err != nil {
			return err
		}
	}
	if len(s.Grants) > max(mostGrants, len(before.Grants)) {
		return fmt.Errorf("there would be %d grants, want at most %d: revoke some first", len(s.Grants), mostGrants)
	}
	return nil
}

// A Table stores the settings document and its history.
type Table interface {
	// Settings returns the document and its version, which is at least 1. It
	// returns nil and 0 only if there is no document. A read that is not
	// consistent may return an older document.
	Settings(ctx context.Context, consistent bool) (document []byte, version int64, err error)

	// ChangeSettings replaces the document and adds c to the history, or does
	// neither. The new version is c.Version. If the document does not have the given
	// version (0: there is no document), the error is ErrConflict.
	ChangeSettings(ctx context.Context, version int64, document []byte, c Change) error

	// SettingsHistory returns all changes, the newest first.
	SettingsHistory(ctx context.Context) ([]Change, error)
}

// ErrConflict means that somebody else changed the settings at the same time.
var ErrConflict = errors.New("somebody else changed the live limits at the same time: check them and try again")

// A Change records who changed what, when and why. It never names a user.
type Change struct {
	Version int64     `json:"version"`
	At      time.Time `json:"at"`
	By      string    `json:"by"`
	What    string    `json:"what"` // in words, of a change that has no Op, because older code made it
	Why     string    `json:"why,omitzero"`

	Op       string    `json:"op,omitzero"`       // set, unset, grant, revoke or forget
	Activity string    `json:"activity,omitzero"` // set, unset: also write/room or content.writes; grant, revoke: the name of a subject, such as tenant
	Tier     string    `json:"tier,omitzero"`     // set, unset: the only tier that is changed; grant: the tier that a user gets
	Limit    string    `json:"limit,omitzero"`    // set
	Mode     string    `json:"mode,omitzero"`     // set
	Role     string    `json:"role,omitzero"`     // grant
	Until    time.Time `json:"until,omitzero"`    // grant
}

// Read returns the current settings and their version.
func Read(ctx context.Context, t Table) (s Settings, version int64, err error) {
	found, err := read(ctx, t, true)
	if err != nil {
		return s, 0, err
	}
	s, err = found.settings()
	return s, found.version, err
}

// Edit calls edit with the current settings, checks what edit changed, and
// stores the settings that edit returned. It fills in the version of c, and stamps
// what was changed with its name, time and reason. Without a time there is no stamp.
func Edit(ctx context.Context, t Table, guards limits.Guards, c Change, edit func(Settings) (Settings, error)) error {
	if len(c.By) > mostBy || len(c.Why) > mostWhy {
		return fmt.Errorf("who makes the change has %d bytes, and why %d, want at most %d and %d", len(c.By), len(c.Why), mostBy, mostWhy)
	}
	before, version, err := Read(ctx, t)
	if err != nil {
		return err
	}
	c.At = c.At.UTC().Truncate(time.Millisecond)
	if !c.At.IsZero() {
		before.by = Stamp{Since: c.At, By: c.By, Why: c.Why}
	}
	s, err := edit(before)
	if err != nil {
		return err
	}
	if err := s.validate(before, guards); err != nil {
		return err
	}
	document, err := s.Document()
	if err != nil {
		return err
	}
	c.Version = version + 1
	return t.ChangeSettings(ctx, version, document, c)
}

// errNothing stops an edit that would change nothing.
var errNothing = errors.New("nothing to change")

// Forget drops all grants of a user from the table, and returns how many there
// were. If somebody else changes the settings at the same time, it tries again.
func Forget(ctx context.Context, t Table, guards limits.Guards, userID string, now time.Time) (forgotten int, err error) {
	for range 5 {
		err = Edit(ctx, t, guards, Change{At: now, By: "erase", Op: "forget"}, func(s Settings) (Settings, error) {
			if s, forgotten = s.Revoke(userID); forgotten == 0 {
				return s, errNothing
			}
			return s, nil
		})
		switch {
		case errors.Is(err, errNothing):
			return 0, nil
		case !errors.Is(err, ErrConflict):
			return forgotten, err
		}
	}
	return forgotten, err
}
