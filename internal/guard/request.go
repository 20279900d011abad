package guard

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// A Request is a guard's event.
type Request struct {
	UserID    string   // who is limited; required
	Activity  string   // one of the guard's activities; required
	Op        Op       // empty means Check
	Count     int64    // how many actions at once; zero means 1
	Partial   bool     // grant as many of Count as fit, instead of all or nothing
	Tier      string   // the caller's plan; a tier that the activity does not name gets the ordinary limit
	Roles     []string // the caller's roles; a caller with a bypass role is never limited
	RequestID string   // checks with the same id are counted once; if empty, the guard makes an id
	At        int64    // the receipt of the check, in Unix milliseconds; required for a release, not allowed otherwise
	ReadyAt   int64    // check, if the policy gives places: the place given earlier, in Unix milliseconds; zero for none
	Job       []byte   // check, if the policy gives places: JSON for the delayed queue; nil for none
}

// An Op is an operation of a guard. Empty means Check.
type Op = ratelimit.Op

// The ops.
const (
	Check   = ratelimit.Check   // count and decide
	Status  = ratelimit.Status  // decide without counting
	Release = ratelimit.Release // give back what a check counted
	Reset   = ratelimit.Reset   // clear this user's activity
)

var ops = []string{string(Check), string(Status), string(Release), string(Reset)}

// fields are the members that an event may have.
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
	if string(v) == `""` { // a missing op means check, but an empty one is a mistake
		return input.Invalid(field, "empty", "one of "+strings.Join(ops, ", "))
	}
	return input.Text((*string)(&r.Op), field, v)
}

// maxJob is the length of the longest job, in bytes. A message of SQS holds 256
// KiB, and an event of a guard 64 KiB.
const maxJob = 32 << 10

func readJob(r *Request, field string, v jsontext.Value) error {
	if len(v) > maxJob {
		return input.Invalid(field, strconv.Itoa(len(v))+" bytes long", "at most "+strconv.Itoa(maxJob))
	}
	r.Job = slices.Clone(v)
	return nil
}
