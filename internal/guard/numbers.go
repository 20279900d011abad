package guard

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
)

// A caller gives numbers for limits that have a max, such as what a customer has bought. The
// policies decide by them, see [policy.Policy.With]. This file checks them. A number without
// room for a request refuses it, and the table is not asked.

const wantedNumber = "a whole number from 0 to 1000000"

// validNumbers checks what does not depend on the activity.
func (r *Request) validNumbers() error {
	for name, n := range r.Limit {
		wrong := n < 0 || n > input.MaxNumber
		switch {
		case name == "" && len(r.Limit) > 1:
			return &input.ValidationError{Field: "limit", Problem: "has an empty name, want " + wantedNumber + input.OrByName}
		case name == "" && wrong:
			return input.Invalid("limit", strconv.FormatInt(n, 10), wantedNumber+input.OrByName)
		case wrong:
			return input.Invalid(input.Member("limit", name), strconv.FormatInt(n, 10), wantedNumber)
		}
	}
	return nil
}

// takesNumbers checks that the limits of a take r's numbers. A subject that r leaves out can
// have one, too.
func (r *Request) takesNumbers(a limits.Activity) error {
	if _, only := r.Limit[""]; only && a.Limit.TakesNumber() || len(r.Limit) == 0 {
		return nil
	}
	var names []string
	for _, part := range a.Parts() {
		names = append(names, a.WithMax(part.Name)...)
	}
	if len(names) == 0 {
		return &input.ValidationError{Field: "limit", Problem: "goes only with activities whose limit has a max"}
	}
	for name := range r.Limit {
		switch {
		case name == "" && len(a.Limit.Rates()) > 1:
			return input.Invalid("limit", "a number", "an object of numbers by the names of limits: "+strings.Join(names, ", "))
		case !slices.Contains(names, name):
			return &input.ValidationError{Field: "limit", Problem: "has a number for an unknown limit or one without a max, want numbers only for: " + strings.Join(names, ", ")}
		}
	}
	return nil
}

// A tooLow is a limit whose number, which the caller gave, has no room for the request. Its name
// is as in an answer: empty, if it is the only one.
type tooLow struct{ limit string }

// tooLow returns the first such limit; nil: there is none.
func (r *Request) tooLow(t live.Terms) *tooLow {
	if len(r.Limit) == 0 {
		return nil
	}
	n := r.Count
	if r.Partial || r.Op == guards.Release || r.Op == guards.Renew {
		n = 1
	}
	for s := range t.Parts {
		limit, ok := s.Limit.TooLow(n)
		if ok && len(t.Subjects) > 0 {
			limit = policy.FullName(r.Activity, s.Name, limit)
		}
		if ok {
			return &tooLow{limit}
		}
	}
	return nil
}

// placed reports whether r presents a place that is not over. A place that was given stays given,
// whatever number comes with it.
func (r *Request) placed(t live.Terms, now time.Time) bool {
	if r.ReadyAt == 0 || !t.Limit.Queues() {
		return false
	}
	onTime, early := t.Limit.Due(now.UnixMilli(), r.ReadyAt)
	return onTime || early
}
