package guard

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/strictjson"
)

// A Request is a guard's event. The empty Op means Check, and a Count of zero means 1.
type Request guards.Request

// blocked reports whether a block in t refuses r. What was counted before it can still be
// given back.
func (r *Request) blocked(t live.Terms) bool {
	return !t.Block.Until.IsZero() && (r.Op == guards.Check || r.Op == guards.Status)
}

var ops = []string{string(guards.Check), string(guards.Status), string(guards.Release), string(guards.Renew), string(guards.Reset)}

// fields are the members that an event may have.
var fields = []input.Field[Request]{
	{Name: "userId", Read: func(r *Request, f string, v strictjson.Value) error { return input.ID(&r.UserID, f, v) }},
	{Name: "activity", Read: func(r *Request, f string, v strictjson.Value) error { return input.Text(&r.Activity, f, v) }},
	{Name: "op", Read: readOp},
	{Name: "count", Read: func(r *Request, f string, v strictjson.Value) error { return input.Whole(&r.Count, f, v) }},
	{Name: "partial", Read: func(r *Request, f string, v strictjson.Value) error { return input.Bool(&r.Partial, f, v) }},
	{Name: "limit", Read: func(r *Request, f string, v strictjson.Value) error {
		return input.Numbers((*map[string]int64)(&r.Limit), f, v, wantedNumber)
	}},
	{Name: "tier", Read: func(r *Request, f string, v strictjson.Value) error { return input.Text(&r.Tier, f, v) }},
	{Name: "roles", Read: func(r *Request, f string, v strictjson.Value) error { return input.Texts(&r.Roles, f, v) }},
	{Name: "requestId", Read: func(r *Request, f string, v strictjson.Value) error { return input.ID(&r.RequestID, f, v) }},
	{Name: "at", Read: func(r *Request, f string, v strictjson.Value) error { return input.Whole(&r.At, f, v) }},
	{Name: "clear", Read: func(r *Request, f string, v strictjson.Value) error { return input.Bool(&r.Clear, f, v) }},
	{Name: "readyAt", Read: func(r *Request, f string, v strictjson.Value) error { return input.Whole(&r.ReadyAt, f, v) }},
	{Name: "subjects", Read: func(r *Request, f string, v strictjson.Value) error {
		return input.TextsByName(&r.Subjects, f, v, `an object whose values are texts, such as {"room": "r42"}`)
	}},
	{Name: "job", Read: readJob},
}

func readOp(r *Request, field string, v strictjson.Value) error {
	if string(v) == `""` { // a missing op means check, but an empty one is a mistake
		return input.Invalid(field, "empty", "one of "+strings.Join(ops, ", "))
	}
	return input.Text((*string)(&r.Op), field, v)
}

// maxJob is the length of the longest job, in bytes. A message of SQS holds 256
// KiB, and an event of a guard 64 KiB.
const maxJob = 32 << 10

func readJob(r *Request, field string, v strictjson.Value) error {
	if len(v) > maxJob {
		return input.Invalid(field, strconv.Itoa(len(v))+" bytes long", "at most "+strconv.Itoa(maxJob))
	}
	r.Job = json.RawMessage(slices.Clone(v))
	return nil
}

// resolve fills in the defaults, checks everything that does not depend on the
// limit, and returns the activity.
func (r *Request) resolve(g limits.Guard) (limits.Activity, error) {
	r.Op, r.Count = cmp.Or(r.Op, guards.Check), cmp.Or(r.Count, 1)
	activity, ok := g.Activity(r.Activity)
	err := input.CheckUserID(r.UserID)
	switch {
	case err != nil: // the user's id is wrong
	case !ok:
		err = input.Invalid("activity", input.Show(r.Activity), "one of "+g.Name+"'s: "+strings.Join(limits.Guards{g}.Activities(), ", "))
	case !slices.Contains(ops, string(r.Op)):
		err = input.Invalid("op", input.Show(string(r.Op)), "one of "+strings.Join(ops, ", "))
	case r.Count < 1:
		err = input.Invalid("count", strconv.FormatInt(r.Count, 10), "a whole number of at least 1")
	case r.RequestID != "":
		err = input.CheckRequestID(r.RequestID)
	}
	if err == nil {
		err = cmp.Or(r.validOp(activity), r.validSubjects(activity), r.validNumbers())
	}
	return activity, err
}

// validSubjects checks that r names the subjects of its activity. A reset may leave them
// out, because it clears the user alone.
func (r *Request) validSubjects(a limits.Activity) error {
	names, known := make([]string, 0, len(a.Subjects)), 0
	for _, s := range a.Subjects {
		id, ok := r.Subjects[s.Name]
		names = append(names, s.Name)
		switch {
		case !ok && (s.Optional || r.Op == guards.Reset):
			continue
		case !ok:
			return &input.ValidationError{Field: "subjects", Problem: "has no " + s.Name + ", want the id of each of: " + strings.Join(names, ", ")}
		case input.CheckUserID(id) != nil:
			return &input.ValidationError{Field: "subjects", Problem: "has a wrong id for " + s.Name + ", want 1 to 128 characters, each ! to ~"}
		}
		known++
	}
	switch {
	case len(r.Subjects) > known && len(names) == 0:
		return &input.ValidationError{Field: "subjects", Problem: "goes only with activities that have subjects"}
	case len(r.Subjects) > known:
		return &input.ValidationError{Field: "subjects", Problem: "has an unknown name, want those of the activity: " + strings.Join(names, ", ")}
	case r.Partial && known > 0:
		return &input.ValidationError{Field: "partial", Problem: "does not go with subjects, because all of them count an action or none does"}
	}
	return nil
}

// validOp checks the fields that go only with some ops.
func (r *Request) validOp(a limits.Activity) error {
	receipt := r.Op == guards.Release || r.Op == guards.Renew
	switch {
	case receipt && r.At == 0:
		return &input.ValidationError{Field: "at", Problem: "is missing, want the one in the check's answer"}
	case receipt && r.RequestID == "":
		return &input.ValidationError{Field: "requestId", Problem: "is missing, want the one in the check's answer"}
	case receipt && r.Count > ratelimit.MaxReleased:
		return input.Invalid("count", strconv.FormatInt(r.Count, 10), fmt.Sprintf("1 to %d for a %s", ratelimit.MaxReleased, r.Op))
	case r.At < 0 || r.At > policy.Latest:
		return input.Invalid("at", strconv.FormatInt(r.At, 10), "the one in the check's answer, in Unix milliseconds")
	case !receipt && r.At != 0:
		return &input.ValidationError{Field: "at", Problem: "goes only with op release or renew"}
	case len(r.Limit) > 0 && r.Op == guards.Reset:
		return &input.ValidationError{Field: "limit", Problem: "does not go with op reset"}
	case r.Clear && r.Op != guards.Release:
		return &input.ValidationError{Field: "clear", Problem: "goes only with op release"}
	case r.Clear && !a.Limit.HasLockout():
		return &input.ValidationError{Field: "clear", Problem: "goes only with activities whose limit is a lockout"}
	case r.Partial && r.Op == guards.Check && r.RequestID != "":
		return &input.ValidationError{Field: "partial", Problem: "does not go with requestId on a check, because the answer to a repeat could not show how many were granted"}
	}
	return nil
}

// validPlace checks readyAt and job. Queue is set if there is a delayed queue for jobs.
// Any readyAt is valid: a time that p does not give is a place that has passed, and if p
// gives no places any more, r is a check as any other.
func (r *Request) validPlace(p policy.Policy, queue bool) error {
	switch {
	case r.Job != nil && (!p.Queues() || !queue):
		return &input.ValidationError{Field: "job", Problem: "goes only with activities that have a delayed queue"}
	case r.ReadyAt < 0:
		return input.Invalid("readyAt", strconv.FormatInt(r.ReadyAt, 10), "a whole number of at least 1")
	case r.Op != guards.Check && r.ReadyAt != 0:
		return &input.ValidationError{Field: "readyAt", Problem: "goes only with op check"}
	case r.Op != guards.Check && r.Job != nil:
		return &input.ValidationError{Field: "job", Problem: "goes only with op check"}
	}
	return nil
}

// fits returns an error if the limit of the user, or of a subject, could never grant r. A
// release or a renewal may exceed the limit, because its check may have been counted
// under a higher limit. TooLow: a number of the caller's refuses r.
func (r *Request) fits(p policy.Policy, subject string, tooLow bool) error {
	of := "the limit"
	if subject != "" {
		of += " of " + subject
	}
	switch places := p.Queues(); {
	case places && r.Op != guards.Check && r.Op != guards.Status:
		return input.Invalid("op", string(r.Op), "check or status, because a place cannot be given back")
	case places && r.Count != 1:
		return input.Invalid("count", strconv.FormatInt(r.Count, 10), "1, because places are given one at a time")
	case places && r.Partial:
		return input.Invalid("partial", "true", "false, because places are given one at a time")
	case r.Count > p.Max() && !tooLow && !r.Partial && (r.Op == guards.Check || r.Op == guards.Status):
		return input.Invalid("count", strconv.FormatInt(r.Count, 10),
			fmt.Sprintf("at most %d, %s: waiting would never help, but partial grants what fits", p.Max(), of))
	}
	return nil
}
