// Package live lets operators change limits without a deploy.
//
// The [Settings] are one document: changed limits and modes of activities, and
// grants of a role or a tier to a user. They are kept in a [Table]. Operators
// change them with [Edit], which refuses a change that the code could not
// apply. Each instance of a guard has a [Follower], which applies a change
// within 30 s.
//
// For example, this document changes the limits of one activity and stops
// counting another:
//
//	{"activities": {
//	    "create_post": {"limit": "20/1m", "tiers": {"premium": "40/1m"}},
//	    "add_comment": {"mode": "off"}
//	}}
package live

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/cric-talk/guards/internal/limits"
)

// Settings are the content of the document. The zero Settings change nothing.
type Settings struct {
	Activities map[string]Override `json:"activities,omitempty"`
	Grants     []Grant             `json:"grants,omitempty"`
}

// mostGrants keeps the document small. 200 grants with the longest user ids and
// reasons take about 100 KB, and DynamoDB accepts an item of 400 KB.
const mostGrants = 200

// Parse reads a document. It does not check whether the code can apply it. Its
// error has the type *DocumentError.
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

// Unwrap returns the cause.
func (e *DocumentError) Unwrap() error { return e.Cause }

// Document returns the settings as JSON, the form in which they are stored.
func (s Settings) Document() ([]byte, error) { return json.Marshal(s, json.Deterministic(true)) }

// clone returns a copy that an edit may change.
func (s Settings) clone() Settings {
	c := Settings{Activities: make(map[string]Override, len(s.Activities)), Grants: slices.Clone(s.Grants)}
	for name, o := range s.Activities {
		o.Tiers = maps.Clone(o.Tiers)
		c.Activities[name] = o
	}
	return c
}

// validate checks only what differs between before and s. So settings with a
// mistake somewhere else can still be edited.
func (s Settings) validate(before Settings, guards limits.Guards) error {
	for _, name := range slices.Sorted(maps.Keys(s.Activities)) {
		was, ok := before.Activities[name]
		changed := s.Activities[name].without(was)
		if ok && changed.empty() {
			continue
		}
		if _, problems, _ := changed.of(name, guards, nil); len(problems) > 0 {
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
