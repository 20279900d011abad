package ratelimit

import (
	"fmt"
	"strconv"

	"github.com/cric-talk/guards/internal/policy"
)

// A Request asks a limiter for a decision.
type Request struct {
	UserID   string
	Activity string
	Policy   policy.Policy
	Count    int64  // how many actions: 1 to the policy's Most, or with Partial any number from 1
	Partial  bool   // grant as many of Count as fit, instead of all or nothing
	ID       string // the request's id, required; a repeat with the same id is not counted again
	Fresh    bool   // ID was made for this decision, so no earlier decision can have used it
	At       int64  // release: the receipt of the check to give back, in Unix milliseconds
	ReadyAt  int64  // check: the place that the policy gave earlier, in Unix milliseconds; 0: none
	Alone    bool   // in an outage, decide from memory; otherwise the outage is an error

	// NoFigures leaves the figures out of a decision that grants all of Count. A
	// replay of millions of requests does not need them, and some take as long to
	// compute as the decision itself.
	NoFigures bool
}

// MostReleased is the most actions that one release gives back.
const MostReleased = 1_000_000

// validate returns an error if r has no id or a count that is not 1 to most.
func (r *Request) validate(most int64) error {
	switch {
	case r.ID == "":
		return fmt.Errorf("request id is empty, want the id of the request")
	case r.Count < 1 || r.Count > most:
		return fmt.Errorf("count is %d, want 1 to %d", r.Count, most)
	}
	return nil
}

// most returns the most actions that a check may ask for.
func (r *Request) most() int64 {
	if r.Partial {
		return max(r.Count, 1)
	}
	return r.Policy.Most()
}

// write returns what r writes at now, without the update.
//
// A check that presents a place is a different request from the check that got
// the place, so it needs another id, such as "place 1700000010000 r1". No caller's
// id contains a space, so no caller can send that id.
func (r *Request) write(now int64) Write {
	window, expires := r.Policy.Item(now)
	id := r.ID
	if r.ReadyAt != 0 {
		id = "place " + strconv.FormatInt(r.ReadyAt, 10) + " " + id
	}
	return Write{
		Key: Key{UserID: r.UserID, Activity: r.Activity, Window: window},
		ID:  NewID(id), Whole: window != 0 && r.Policy.Most() <= wholeLimit,
		Now: now, Expires: expires,
	}
}

// wholeLimit is the highest limit at which a window's item keeps all its ids.
// About 140 ids fit in one write unit, beside a user id of 36 characters.
const wholeLimit = 100

// take plans n of r's actions in s.
func (r *Request) take(w Write, n int64, s policy.State) (policy.Update, bool) {
	return r.Policy.Take(w.Now, n, w.ID.number(), s)
}

// fits plans r's actions in s and returns how many fit: all of them or none.
// With Partial it can be any number in between.
func (r *Request) fits(w Write, s policy.State) (int64, policy.Update) {
	n := r.Count
	if r.Partial {
		n = min(n, r.Policy.Most(), r.Policy.Read(w.Now, 0, s).Remaining)
	}
	if u, ok := r.take(w, n, s); ok {
		return n, u
	}
	return 0, policy.Update{}
}

// readable returns an error if item has an attribute that the policy of r uses
// and that could not be read.
func (r *Request) readable(w Write, item Item) error {
	if len(item.Unread) == 0 {
		return nil
	}
	w.Update, _ = r.take(w, r.Policy.Most(), nil) // this update names every attribute of the policy
	if attr := item.unreadable(w); attr != "" {
		return unreadable(attr)
	}
	return nil
}
