package live

import (
	"errors"
	"slices"
	"time"

	"github.com/cric-talk/guards/internal/input"
)

// A Grant gives a user either a role or a tier, until a time.
type Grant struct {
	UserID string    `json:"userId"`
	Role   string    `json:"role,omitzero"`
	Tier   string    `json:"tier,omitzero"`
	Until  time.Time `json:"until"`
	Reason string    `json:"reason"`
}

// Validate returns an error that names what is wrong with g.
func (g Grant) Validate() error {
	if err := input.CheckUserID(g.UserID); err != nil {
		return err
	}
	switch {
	case (g.Role == "") == (g.Tier == ""):
		return errors.New("a grant needs either a role or a tier")
	case g.Until.IsZero():
		return errors.New("a grant needs a time when it ends")
	case g.Reason == "" || len(g.Reason) > 200:
		return errors.New("a grant needs a reason of 1 to 200 characters")
	}
	return nil
}

// Grant adds g and removes grants that have ended. If the user already has this
// role, or any tier, g replaces that grant.
func (s Settings) Grant(g Grant, now time.Time) Settings {
	s.Grants = slices.DeleteFunc(s.Grants, func(old Grant) bool {
		return !now.Before(old.Until) || old.UserID == g.UserID && old.Role == g.Role && (old.Tier == "") == (g.Tier == "")
	})
	s.Grants = append(s.Grants, g)
	return s
}

// Revoke drops all grants of a user, and returns how many there were.
func (s Settings) Revoke(userID string) (Settings, int) {
	before := len(s.Grants)
	s.Grants = slices.DeleteFunc(s.Grants, func(g Grant) bool { return g.UserID == userID })
	return s, before - len(s.Grants)
}
