package guards

import (
	"encoding/json"
	"fmt"
)

// An Op is what a guard does for a request.
type Op string

// The ops. The empty Op is Check.
const (
	Check   Op = "check"   // decide, and count if the request may go ahead
	Status  Op = "status"  // decide as a check would, and count nothing
	Release Op = "release" // give back what a check counted
	Renew   Op = "renew"   // keep a slot of a log for one more window
	Reset   Op = "reset"   // clear what is counted for the user and the activity
)

// A Request asks a guard for a decision. Only UserID and Activity are required. As JSON, it
// is the event that a guard reads, which is strict: a field that does not go with the op is
// refused with an [ErrValidation].
type Request struct {
	UserID   string `json:"userId"`         // who is limited: 1 to 128 printable ASCII characters without a space
	Activity string `json:"activity"`       // what the user does, such as create_post
	Op       Op     `json:"op,omitzero"`    // empty: Check
	Count    int64  `json:"count,omitzero"` // how many actions at once; 0 means 1

	// Partial grants as many of Count as fit, instead of all or nothing.
	Partial bool `json:"partial,omitzero"`

	// Tier is the user's plan, and Roles are the user's roles. Never copy one from the user's
	// own input. A tier that the activity does not name gets the ordinary limit.
	Tier  string   `json:"tier,omitzero"`
	Roles []string `json:"roles,omitempty"`

	// Limit holds numbers for limits whose text has a max: [Number](500) for the user's only limit,
	// and otherwise [Numbers] by name. Like a Tier, it never comes from the user's own input.
	Limit Numbers `json:"limit,omitempty"`

	// Subjects holds the ids of the others in whose limits the action counts, too, such as
	// {"room": "r42"}, each like a UserID. The app must have checked that the user is there.
	Subjects map[string]string `json:"subjects,omitempty"`

	// RequestID identifies a check, which is counted once for this id: 1 to 64 characters,
	// the same characters as in a UserID. If it is empty, the guard makes one. A release
	// and a renewal need the one in the check's answer.
	RequestID string `json:"requestId,omitzero"`

	// At is the receipt for a release or a renewal, in Unix milliseconds: the At in the
	// answer to the check, or to its last renewal.
	At int64 `json:"at,omitzero"`

	// Clear ends the series of the user's lockout with a release: none of the user's failures
	// counts any more, and no lock. It goes only with activities that have a lockout.
	Clear bool `json:"clear,omitzero"`

	// ReadyAt is the place that a reservoir gave this job before, in Unix milliseconds.
	ReadyAt int64 `json:"readyAt,omitzero"`

	// Job is put on the delayed queue if the decision is Delayed. It is JSON of at most 32
	// KiB. Only the function of a guard with a DelayedQueue takes one.
	Job json.RawMessage `json:"job,omitempty"`
}

// Numbers are numbers that an app gives for limits at run time, such as what a customer has
// bought. Each is 0 to 1,000,000, in the units of the limit's text, which has a max. The keys are
// the names in the answer's Limits:
//
//	guards.Numbers{"tenant": 50_000, "call_api": 500}
//
// [Number] makes the number of the user's only limit, whose name is empty. The zero value gives no
// number, so the text decides. As JSON, Numbers with only an empty name are a number, and others
// are an object.
type Numbers map[string]int64

// Number returns the number of the user's only limit. 0 allows nothing.
func Number(n int64) Numbers { return Numbers{"": n} }

// MarshalJSON implements [json.Marshaler].
func (n Numbers) MarshalJSON() ([]byte, error) {
	if one, ok := n[""]; ok && len(n) == 1 {
		return json.Marshal(one)
	}
	return json.Marshal(map[string]int64(n))
}

// UnmarshalJSON implements [json.Unmarshaler]. It reads null as no number.
func (n *Numbers) UnmarshalJSON(text []byte) error {
	var one *int64
	if err := json.Unmarshal(text, &one); err == nil && one != nil {
		*n = Number(*one)
		return nil
	}
	var several map[string]*int64
	if err := json.Unmarshal(text, &several); err != nil {
		return err
	}
	*n = nil
	for name, one := range several {
		if one == nil {
			return fmt.Errorf("the number of %q is null", name)
		}
		if *n == nil {
			*n = Numbers{}
		}
		(*n)[name] = *one
	}
	return nil
}
