// Package live applies what operators change without a deploy.
//
// The [Settings] are one document: changed limits and modes of activities, and
// grants of a role or a tier to a user. Each instance of a guard has a [Follower],
// which applies a change within 30 s. [Limits.Terms] is the one place that works out
// what is in force. Package liveedit changes the document.
//
// For example, one activity has other limits, and another one is not counted:
//
//	{"activities": {
//	    "create_post": {"limit": "20/1m", "tiers": {"premium": "40/1m"}},
//	    "add_comment": {"mode": "off"}
//	}}
package live

import (
	"time"

	"github.com/cric-talk/guards/internal/strictjson"
)

// Settings are the content of the document. The zero Settings change nothing.
type Settings struct {
	Activities map[string]Override `json:"activities,omitempty"` // by name: write, write/room, or content.writes, a limit of a group
	Grants     []Grant             `json:"grants,omitempty"`

	Trials  Trials  `json:"-"` // beside the document, see Stored
	Ends    Ends    `json:"-"` // the same
	Damaged Damaged `json:"-"`
}

// Stored is the form of the settings in a table. The zero Stored means that there are
// none.
type Stored struct {
	Version  int64  // at least 1
	Document []byte // JSON
	Trials   []byte // the JSON of [Trials]; empty: none
	Ends     []byte // the JSON of [Ends]; empty: none
}

// Settings returns the settings. The code may be unable to apply them. The error has the
// type *DocumentError.
func (s Stored) Settings() (Settings, error) {
	if s.Version == 0 {
		return Settings{}, nil
	}
	settings, err := Parse(s.Document)
	settings.Trials = readBeside[map[string]Trial](&settings.Damaged, "trials", s.Trials)
	ends := readBeside[strictjson.Value](&settings.Damaged, "ends", s.Ends, lenient...)
	settings.Ends, settings.Damaged.Ends = readEach[End](&settings.Damaged, "end of ", ends)
	return settings, err
}

// Stored returns the settings as a table keeps them under this version.
func (s Settings) Stored(version int64) (stored Stored, err error) {
	stored.Version = version
	if stored.Document, err = s.Document(); err == nil {
		stored.Trials, err = writeBeside(s.Trials, nil)
	}
	if err == nil {
		stored.Ends, err = writeBeside(s.Ends, s.Damaged.Ends)
	}
	return stored, err
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

// InForce reports whether a grant counts at now.
func (g Grant) InForce(now time.Time) bool { return now.Before(g.Until) }

// A Stamp tells who set a part of the settings, when and why.
// The zero Stamp means that this is unknown, as after an edit by hand.
type Stamp struct {
	Of    string    `json:"of,omitzero"` // the limit or mode that was set; another one beside it was written by hand
	Since time.Time `json:"since,omitzero"`
	By    string    `json:"by,omitzero"`
	Why   string    `json:"why,omitzero"`
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
