package guard

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// resolve fills in the defaults, checks everything that does not depend on the
// limit, and returns the activity.
func (r *Request) resolve(g limits.Guard) (limits.Activity, error) {
	if r.Op == "" {
		r.Op = Check
	}
	if r.Count == 0 {
		r.Count = 1
	}
	if err := input.CheckUserID(r.UserID); err != nil {
		return limits.Activity{}, err
	}
	activity, ok := g.Activity(r.Activity)
	if !ok {
		return limits.Activity{}, input.Invalid("activity", input.Show(r.Activity), "one of "+g.Name+"'s: "+names(g))
	}
	if !slices.Contains(ops, string(r.Op)) {
		return limits.Activity{}, input.Invalid("op", input.Show(string(r.Op)), "one of "+strings.Join(ops, ", "))
	}
	if r.Count < 1 {
		return limits.Activity{}, input.Invalid("count", strconv.FormatInt(r.Count, 10), "a whole number of at least 1")
	}
	if r.RequestID != "" {
		if err := input.CheckRequestID(r.RequestID); err != nil {
			return limits.Activity{}, err
		}
	}
	return activity, r.validOp()
}

// validOp checks the fields that go only with some ops.
func (r *Request) validOp() error {
	switch {
	case r.Op == Release && r.At == 0:
		return &input.ValidationError{Field: "at", Problem: "is missing, want the one in the check's answer"}
	case r.Op == Release && r.RequestID == "":
		return &input.ValidationError{Field: "requestId", Problem: "is missing, want the one in the check's answer"}
	case r.Op == Release && r.Count > ratelimit.MostReleased:
		return input.Invalid("count", strconv.FormatInt(r.Count, 10), fmt.Sprintf("1 to %d for a release", ratelimit.MostReleased))
	case r.At > policy.Latest:
		return input.Invalid("at", strconv.FormatInt(r.At, 10), "the one in the check's answer, in Unix milliseconds")
	case r.Op != Release && r.At != 0:
		return &input.ValidationError{Field: "at", Problem: "goes only with op release"}
	case r.Partial && r.Op == Check && r.RequestID != "":
		return &input.ValidationError{Field: "partial", Problem: "does not go with requestId on a check, because the answer to a repeat could not show how many were granted"}
	}
	return nil
}

// validPlace checks readyAt and job, which go only with policies that give
// places. Queue is set if there is a delayed queue for jobs.
func (r *Request) validPlace(p policy.Policy, queue bool) error {
	switch {
	case !p.Queues() && r.ReadyAt != 0:
		return &input.ValidationError{Field: "readyAt", Problem: "goes only with activities that give places"}
	case r.Job != nil && (!p.Queues() || !queue):
		return &input.ValidationError{Field: "job", Problem: "goes only with activities that have a delayed queue"}
	case r.Op != Check && r.ReadyAt != 0:
		return &input.ValidationError{Field: "readyAt", Problem: "goes only with op check"}
	case r.Op != Check && r.Job != nil:
		return &input.ValidationError{Field: "job", Problem: "goes only with op check"}
	case r.ReadyAt != 0 && !p.IsPlace(r.ReadyAt):
		return input.Invalid("readyAt", strconv.FormatInt(r.ReadyAt, 10), "the one in a delayed answer, in Unix milliseconds")
	}
	return nil
}

// fits returns an error if the policy could never grant r. A release may exceed
// the limit, because its check may have been counted under a higher limit.
func (r *Request) fits(p policy.Policy) error {
	if p.Queues() {
		return r.fitsOnePlace()
	}
	if r.Count <= p.Most() || r.Partial || r.Op == Release {
		return nil
	}
	return input.Invalid("count", strconv.FormatInt(r.Count, 10),
		fmt.Sprintf("at most %d, the limit: waiting would never help, but partial grants what fits", p.Most()))
}

// fitsOnePlace returns an error if r is not possible with a policy that gives
// places.
func (r *Request) fitsOnePlace() error {
	switch {
	case r.Op == Release || r.Op == Reset:
		return input.Invalid("op", string(r.Op), "check or status, because a place cannot be given back")
	case r.Count != 1:
		return input.Invalid("count", strconv.FormatInt(r.Count, 10), "1, because places are given one at a time")
	case r.Partial:
		return input.Invalid("partial", "true", "false, because places are given one at a time")
	}
	return nil
}

// names lists a guard's activities for an error message.
func names(g limits.Guard) string {
	list := make([]string, len(g.Activities))
	for i, a := range g.Activities {
		list[i] = a.Name
	}
	return strings.Join(list, ", ")
}
