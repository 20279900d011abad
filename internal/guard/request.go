package guard

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// A Request is a guard's event. What the zero value of a field means is said
// with it.
type Request struct {
	UserID    string   // who is limited: 1 to 128 printable ASCII characters, no space. Required
	Activity  string   // one of the guard's. Required
	Op        Op       // zero: Check
	Count     int64    // how many actions at once; zero: 1
	Partial   bool     // grant as many of Count as fit, instead of all or nothing
	Tier      string   // the caller's plan; one that the activity does not name has the ordinary limit
	Roles     []string // the caller's; one on the guard's bypass list is never limited
	RequestID string   // as UserID, up to 64: repeats are counted once. Zero: one is made
	At        int64    // release: the receipt, Unix milliseconds. Required there, and only there
	ReadyAt   int64    // a reservoir's check: the place given before, Unix milliseconds. Zero: none
	Job       []byte   // a reservoir's check: JSON to put on the delayed queue where the answer is delayed. Nil: none
}

// An Op is what is asked of a guard.
type Op string

// The ops.
const (
	Check   Op = "check"   // count and decide
	Status  Op = "status"  // decide without counting
	Release Op = "release" // give back what a check counted
	Reset   Op = "reset"   // forget this user's activity
)

var ops = []string{string(Check), string(Status), string(Release), string(Reset)}

// fields are the event's members.
var fields = []input.Field[Request]{
	{Name: "userId", Read: func(r *Request, f string, v jsontext.Value) error { return input.ID(&r.UserID, f, v) }},
	{Name: "activity", Read: func(r *Request, f string, v jsontext.Value) error { return input.Text(&r.Activity, f, v) }},
	{Name: "op", Read: readOp},
	{Name: "count", Read: func(r *Request, f string, v jsontext.Value) error { return input.Whole(&r.Count, f, v) }},
	{Name: "partial", Read: func(r *Request, f string, v jsontext.Value) error { return input.Bool(&r.Partial, f, v) }},
	{Name: "tier", Read: func(r *Request, f string, v jsontext.Value) error { return input.Text(&r.Tier, f, v) }},
	{Name: "roles", Read: func(r *Request, f string, v jsontext.Value) error { return input.Texts(&r.Roles, f, v) }},
	{Name: "requestId", Read: func(r *Request, f string, v jsontext.Value) error { return input.ID(&r.RequestID, f, v) }},
	{Name: "at", Read: func(r *Request, f string, v jsontext.Value) error { return input.Whole(&r.At, f, v) }},
	{Name: "readyAt", Read: func(r *Request, f string, v jsontext.Value) error { return input.Whole(&r.ReadyAt, f, v) }},
	{Name: "job", Read: readJob},
}

func readOp(r *Request, field string, v jsontext.Value) error {
	if string(v) == `""` { // the zero Op is Check, an empty one is a mistake
		return input.Invalid(field, "empty", "one of "+strings.Join(ops, ", "))
	}
	return input.Text((*string)(&r.Op), field, v)
}

// maxJob is the longest job, in bytes: SQS takes 256 KiB, an event 64.
const maxJob = 32 << 10

func readJob(r *Request, field string, v jsontext.Value) error {
	if len(v) > maxJob {
		return input.Invalid(field, strconv.Itoa(len(v))+" bytes long", "at most "+strconv.Itoa(maxJob))
	}
	r.Job = slices.Clone(v)
	return nil
}

// maxAt is the end of the year 9999, in Unix milliseconds.
const maxAt = 253_402_300_799_999

// resolve fills in the defaults, checks everything that holds for any limit,
// and finds the activity.
func (r *Request) resolve(rules limits.Guard) (limits.Activity, error) {
	if r.Op == "" {
		r.Op = Check
	}
	if r.Count == 0 {
		r.Count = 1
	}
	if err := input.CheckUserID(r.UserID); err != nil {
		return limits.Activity{}, err
	}
	activity, ok := rules.Activity(r.Activity)
	if !ok {
		return limits.Activity{}, input.Invalid("activity", input.Show(r.Activity), "one of "+rules.Name+"'s: "+names(rules))
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
	if err := r.validOp(); err != nil {
		return limits.Activity{}, err
	}
	return activity, nil
}

// validOp checks the fields that go with some ops only.
func (r *Request) validOp() error {
	switch {
	case r.Op == Release && r.At == 0:
		return &input.ValidationError{Field: "at", Problem: "is missing, want the one in the check's answer"}
	case r.Op == Release && r.RequestID == "":
		return &input.ValidationError{Field: "requestId", Problem: "is missing, want the one in the check's answer"}
	case r.At > maxAt:
		return input.Invalid("at", strconv.FormatInt(r.At, 10), "the one in the check's answer, in Unix milliseconds")
	case r.Op != Release && r.At != 0:
		return input.Invalid("at", strconv.FormatInt(r.At, 10), "it only with op release")
	case r.Partial && r.Op == Check && r.RequestID != "":
		return &input.ValidationError{Field: "partial", Problem: "does not go with requestId on a check: a repeat could not be told how many were granted"}
	}
	return nil
}

// validPlace checks the fields that go with a reservoir only, and those that
// don't go with one. P is nil where the activity is unlimited.
func (r *Request) validPlace(p ratelimit.Policy, queue bool) error {
	reservoir, ok := p.(ratelimit.Reservoir)
	switch {
	case !ok && r.ReadyAt != 0:
		return &input.ValidationError{Field: "readyAt", Problem: "goes with activities that have places only"}
	case !ok && r.Job != nil, r.Job != nil && !queue:
		return &input.ValidationError{Field: "job", Problem: "goes with activities that have a delayed queue only"}
	case !ok:
		return nil
	case r.Op == Release || r.Op == Reset:
		return input.Invalid("op", string(r.Op), "check or status: a place is not given back, it passes")
	case r.Count != 1:
		return input.Invalid("count", strconv.FormatInt(r.Count, 10), "1, as places are given one at a time")
	case r.Partial:
		return input.Invalid("partial", "true", "false, as places are given one at a time")
	case r.Op == Status && r.ReadyAt != 0:
		return input.Invalid("readyAt", strconv.FormatInt(r.ReadyAt, 10), "it only with op check")
	case r.Op == Status && r.Job != nil:
		return &input.ValidationError{Field: "job", Problem: "goes with op check only"}
	case r.ReadyAt != 0 && !reservoir.IsPlace(r.ReadyAt):
		return input.Invalid("readyAt", strconv.FormatInt(r.ReadyAt, 10), "the one in a delayed answer, in Unix milliseconds")
	}
	return nil
}

// fits checks a count that the policy could never grant.
func (r *Request) fits(p ratelimit.Policy) error {
	limit, _ := p.Quota()
	if r.Count <= limit || r.Partial || r.Op == Release { // what was counted by a higher limit can be given back
		return nil
	}
	return input.Invalid("count", strconv.FormatInt(r.Count, 10),
		fmt.Sprintf("at most %d, the limit: waiting would never help; partial grants what fits", limit))
}

func names(rules limits.Guard) string {
	list := make([]string, len(rules.Activities))
	for i, a := range rules.Activities {
		list[i] = a.Name
	}
	return strings.Join(list, ", ")
}
