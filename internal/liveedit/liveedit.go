// Package liveedit lets operators change limits without a deploy.
//
// The settings of package live are kept in a [Table]. [Edit] makes a [Draft] of them,
// refuses a change that the code could not apply, and adds a [Change] to the history.
// Guards do not need this package: they only follow the settings.
package liveedit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
)

// A Table stores the settings, the blocks and their history.
type Table interface {
	live.Source

	// ChangeSettings replaces the settings and adds c to the history, or does
	// neither. If the document does not have the version before (0: there is no
	// document), the error is ErrConflict.
	ChangeSettings(ctx context.Context, before int64, after live.Stored, c Change) error

	// ChangeBlocks does the same with the document of blocks.
	ChangeBlocks(ctx context.Context, before int64, after live.Stored, c Change) error

	// Note adds c to the history, without a change of a document.
	Note(ctx context.Context, c Change) error

	// SettingsHistory returns all changes, the newest first.
	SettingsHistory(ctx context.Context) ([]Change, error)
}

// ErrConflict means that somebody else changed the settings at the same time.
var ErrConflict = errors.New("somebody else changed the live limits at the same time: check them and try again")

// A Change records who changed what, when and why. It never names a user.
type Change struct {
	Version int64     `json:"version"` // of the settings; block, unblock: of the blocks; reset: 0
	At      time.Time `json:"at"`
	By      string    `json:"by"`
	What    string    `json:"what"` // in words, of a change that has no Op, because older code made it
	Why     string    `json:"why,omitzero"`

	Op       string    `json:"op,omitzero"`       // set, unset, grant, revoke, forget, block, unblock, reset, repair or import
	Activity string    `json:"activity,omitzero"` // set, unset: also write/room or content.writes; grant, revoke: the name of a subject, such as tenant; block, unblock: empty means all; reset
	Tier     string    `json:"tier,omitzero"`     // set, unset: the only tier that is changed; grant: the tier that a user gets
	Limit    string    `json:"limit,omitzero"`    // set
	Mode     string    `json:"mode,omitzero"`     // set
	Role     string    `json:"role,omitzero"`     // grant
	Until    time.Time `json:"until,omitzero"`    // grant, block, set
	Guard    string    `json:"guard,omitzero"`    // set: each activity of this guard; all means each of all guards
	Subject  string    `json:"subject,omitzero"`  // block, unblock, reset: the name of a subject; empty: a user
	Dropped  int       `json:"dropped,omitzero"`  // repair: entries that could not be read
	Kept     int       `json:"kept,omitzero"`     // repair, import: entries
}

// With 200 grants that have the longest texts, the document takes about 150 KB.
const (
	maxGrants = 200
	maxBy     = 100 // bytes of the name of who makes a change
	maxWhy    = 200 // bytes of the reason of a change
)

// Read returns the current settings and their version; 0: there is no document.
func Read(ctx context.Context, from live.Source) (s live.Settings, version int64, err error) {
	stored, err := from.Settings(ctx, true)
	if err != nil {
		return s, 0, err
	}
	s, err = stored.Settings()
	return s, stored.Version, err
}

// Edit calls edit with the current settings, checks what edit changed, and
// stores the settings that edit returned. It fills in the version of c, and stamps
// what was changed with its name, time and reason. Without a time there is no stamp.
func Edit(ctx context.Context, t Table, guards limits.Guards, c Change, edit func(Draft) (Draft, error)) error {
	by, err := c.stamp()
	if err != nil {
		return err
	}
	before, version, err := Read(ctx, t)
	if err != nil {
		return err
	}
	if !c.At.IsZero() {
		before = before.At(c.At)
	}
	draft := Draft{Settings: before, by: by}
	after, err := edit(draft)
	if err != nil {
		return err
	}
	if err := validate(before, after.Settings, guards); err != nil {
		return err
	}
	c.Version = version + 1
	after.Trials = trials(before, after.Settings, guards)
	stored, err := after.Stored(c.Version)
	if err != nil {
		return err
	}
	return t.ChangeSettings(ctx, version, stored, c)
}

// stamp checks who makes the change and why, and returns the stamp for what it changes.
// Without a time, the stamp is zero.
func (c *Change) stamp() (by live.Stamp, err error) {
	if err := c.Validate(); err != nil {
		return by, err
	}
	if c.At = c.At.UTC().Truncate(time.Millisecond); !c.At.IsZero() {
		by = live.Stamp{Since: c.At, By: c.By, Why: c.Why}
	}
	return by, nil
}

// Validate returns an error if who makes the change, or why, is too long.
func (c *Change) Validate() error {
	if len(c.By) > maxBy || len(c.Why) > maxWhy {
		return fmt.Errorf("who makes the change has %d bytes, and why %d, want at most %d and %d", len(c.By), len(c.Why), maxBy, maxWhy)
	}
	return nil
}

// errNothing stops an edit that would change nothing.
var errNothing = errors.New("nothing to change")

// untilStored calls edit again if somebody else changed the document at the same time.
func untilStored(edit func() error) (err error) {
	for range 5 {
		if err = edit(); !errors.Is(err, ErrConflict) {
			break
		}
	}
	if errors.Is(err, errNothing) {
		return nil
	}
	return err
}

// Reset notes in the history that somebody has reset a user or a subject. C has the time of
// the change, and the activity.
func Reset(ctx context.Context, t Table, c Change, key string) error {
	c.Op, c.Subject = "reset", limits.SubjectName(key)
	if err := c.Validate(); err != nil {
		return err
	}
	return t.Note(ctx, c)
}

// Forget drops all grants of a user from the table, and returns how many there
// were. If somebody else changes the settings at the same time, it tries again.
func Forget(ctx context.Context, t Table, guards limits.Guards, userID string, now time.Time) (forgotten int, err error) {
	err = untilStored(func() error {
		return Edit(ctx, t, guards, Change{At: now, By: "erase", Op: "forget"}, func(d Draft) (Draft, error) {
			if d, forgotten = d.Revoke(userID); forgotten == 0 {
				return d, errNothing
			}
			return d, nil
		})
	})
	return forgotten, err
}
