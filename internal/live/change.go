package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cric-talk/guards/internal/limits"
)

// A Table keeps the document and its history.
type Table interface {
	// Settings reads the document and its version; 0 and nil where there is none.
	// Only with consistent it is sure to be the last one written.
	Settings(ctx context.Context, consistent bool) (document []byte, version int64, err error)

	// ChangeSettings writes the document that follows version, and what was
	// changed, both or neither. The error is ErrConflict where another one came
	// first.
	ChangeSettings(ctx context.Context, version int64, document []byte, c Change) error

	// SettingsHistory reads all changes, the last one first.
	SettingsHistory(ctx context.Context) ([]Change, error)
}

// ErrConflict says that somebody else changed the settings at the same time.
var ErrConflict = errors.New("somebody else changed the live limits at the same time: look, and try again")

// A Change says who changed what, when and why. It names no user.
type Change struct {
	Version int64     `json:"version"`
	At      time.Time `json:"at"`
	By      string    `json:"by"`
	What    string    `json:"what"`
	Why     string    `json:"why,omitzero"`
}

// Read reads the last settings written.
func Read(ctx context.Context, t Table) (s Settings, version int64, err error) {
	document, version, err := t.Settings(ctx, true)
	if err != nil || version == 0 {
		return s, version, err
	}
	s, err = Parse(document)
	return s, version, err
}

// Edit changes the settings by edit, which returns them changed, and checks what
// it changed before it is written.
func Edit(ctx context.Context, t Table, guards []limits.Guard, c Change, edit func(Settings) (Settings, error)) error {
	before, version, err := Read(ctx, t)
	if err != nil {
		return err
	}
	s, err := edit(before.clone())
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

// clone is a copy that an edit may change.
func (s Settings) clone() Settings {
	c := Settings{Activities: make(map[string]Override, len(s.Activities)), Grants: slices.Clone(s.Grants)}
	for name, o := range s.Activities {
		o.Tiers = maps.Clone(o.Tiers)
		c.Activities[name] = o
	}
	return c
}

// Set changes an activity's limit (of a tier, where one is named) and its mode;
// what is empty stays as it is.
func (s Settings) Set(name, tier, rate, mode string) Settings {
	o := s.Activities[name]
	switch {
	case rate == "":
	case tier == "":
		o.Limit = rate
	default:
		if o.Tiers == nil {
			o.Tiers = make(map[string]string)
		}
		o.Tiers[tier] = rate
	}
	if mode != "" {
		o.Mode = mode
	}
	s.Activities[name] = o
	return s
}

// Unset takes back what was changed of an activity, or of one tier of it.
func (s Settings) Unset(name, tier string) (Settings, error) {
	o, ok := s.Activities[name]
	if _, has := o.Tiers[tier]; !ok || tier != "" && !has {
		return s, fmt.Errorf("nothing is changed of %s", name)
	}
	if tier == "" {
		delete(s.Activities, name)
		return s, nil
	}
	delete(o.Tiers, tier)
	s.Activities[name] = o
	if o.Limit == "" && o.Mode == "" && len(o.Tiers) == 0 {
		delete(s.Activities, name)
	}
	return s, nil
}

// Grant adds a grant, in place of one of the same, and drops what has ended.
func (s Settings) Grant(g Grant, now time.Time) Settings {
	s.Grants = slices.DeleteFunc(s.Grants, func(old Grant) bool {
		return !now.Before(old.Until) || old.UserID == g.UserID && old.Role == g.Role && (old.Tier == "") == (g.Tier == "")
	})
	s.Grants = append(s.Grants, g)
	return s
}

// Revoke drops all of a user's grants, and says how many they were.
func (s Settings) Revoke(userID string) (Settings, int) {
	before := len(s.Grants)
	s.Grants = slices.DeleteFunc(s.Grants, func(g Grant) bool { return g.UserID == userID })
	return s, before - len(s.Grants)
}

// errNone ends an edit that has nothing to change.
var errNone = errors.New("nothing to change")

// Forget drops all of a user's grants for good, and says how many they were.
func Forget(ctx context.Context, t Table, guards []limits.Guard, userID string, now time.Time) (forgotten int, err error) {
	for range 5 { // whoever comes first, the other goes again
		err = Edit(ctx, t, guards, Change{At: now, By: "erase", What: "forget the grants of a user"}, func(s Settings) (Settings, error) {
			s, forgotten = s.Revoke(userID)
			if forgotten == 0 {
				return s, errNone
			}
			return s, nil
		})
		if errors.Is(err, errNone) {
			return 0, nil
		}
		if !errors.Is(err, ErrConflict) {
			break
		}
	}
	return forgotten, err
}
