package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cric-talk/guards/internal/limits"
)

// A Table stores the settings document and its history.
type Table interface {
	// Settings returns the document and its version, which is at least 1. It
	// returns nil and 0 only if there is no document. A read that is not consistent may return an older document.
	Settings(ctx context.Context, consistent bool) (document []byte, version int64, err error)

	// ChangeSettings replaces the document, whose version must be the given one
	// (0: there is no document), and adds c to the history. It does both or
	// neither. The new version is c.Version. If the document has another
	// version, the error is ErrConflict.
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
	What    string    `json:"what"`
	Why     string    `json:"why,omitzero"`
}

// Read returns the current settings and their version.
func Read(ctx context.Context, t Table) (s Settings, version int64, err error) {
	document, version, err := t.Settings(ctx, true)
	if err != nil || version == 0 {
		return s, version, err
	}
	s, err = Parse(document)
	return s, version, err
}

// Edit calls edit with the current settings, checks what edit changed, and
// stores the settings that edit returned. It fills in the version of c.
func Edit(ctx context.Context, t Table, guards limits.Guards, c Change, edit func(Settings) (Settings, error)) error {
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

// Set changes an activity's limit and mode. If tier is not empty, it changes
// the limit of that tier only. An empty limit or mode stays as it is.
func (s Settings) Set(name, tier, limit, mode string) Settings {
	o := s.Activities[name]
	switch {
	case limit == "":
	case tier == "":
		o.Limit = canonical(limit)
	default:
		if o.Tiers == nil {
			o.Tiers = make(map[string]string)
		}
		o.Tiers[tier] = canonical(limit)
	}
	if mode != "" {
		o.Mode = mode
	}
	if s.Activities == nil {
		s.Activities = make(map[string]Override)
	}
	s.Activities[name] = o
	return s
}

// Unset undoes the changes of an activity. If tier is not empty, it undoes only
// the change of that tier.
func (s Settings) Unset(name, tier string) (Settings, error) {
	o, ok := s.Activities[name]
	if _, has := o.Tiers[tier]; !ok || tier != "" && !has {
		return s, fmt.Errorf("%s has no live limit to undo", which(name, tier))
	}
	if tier == "" {
		delete(s.Activities, name)
		return s, nil
	}
	delete(o.Tiers, tier)
	s.Activities[name] = o
	if o.empty() {
		delete(s.Activities, name)
	}
	return s, nil
}

// which names an activity or one of its tiers.
func which(name, tier string) string {
	if tier == "" {
		return name
	}
	return name + " for tier " + tier
}

// errNothing stops an edit that would change nothing.
var errNothing = errors.New("nothing to change")

// Forget drops all grants of a user from the table, and returns how many there
// were. If somebody else changes the settings at the same time, it tries again.
func Forget(ctx context.Context, t Table, guards limits.Guards, userID string, now time.Time) (forgotten int, err error) {
	for range 5 {
		err = Edit(ctx, t, guards, Change{At: now, By: "erase", What: "forget the grants of a user"}, func(s Settings) (Settings, error) {
			s, forgotten = s.Revoke(userID)
			if forgotten == 0 {
				return s, errNothing
			}
			return s, nil
		})
		if errors.Is(err, errNothing) {
			return 0, nil
		}
		if !errors.Is(err, ErrConflict) {
			break
		}
	}
	return forgotten, err
}
