package client

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	smithyrand "github.com/aws/smithy-go/rand"

	"github.com/cric-talk/guards"
)

// A Request is what a user wants to do. Only UserID is required.
type Request struct {
	UserID    string   // who is limited: 1 to 128 printable ASCII characters without a space
	Count     int64    // how many actions at once; zero means 1
	Partial   bool     // Check: grant as many of Count as fit, instead of all or nothing
	Tier      string   // the user's plan; never copy it from the user's own input
	Roles     []string // the user's roles; never copy them from the user's own input
	RequestID string   // Check: counted once for this id; if empty, the client makes one. Release, Renew: as in the check's answer
	At        int64    // Release, Renew: the receipt in Unix milliseconds, as in the answer of the check or of the last renewal
	ReadyAt   int64    // Check of a delayed job, in Unix milliseconds: as in the delayed answer
	Job       any      // Check of a job: what to put on the delayed queue; at most 32 KiB as JSON

	// OnOutage decides this check if the guard does not answer; if it is empty,
	// Options.OnOutage does. Deny also refuses what a guard or an agent allows from one
	// instance's memory, whose Reason is Unavailable, even in shadow mode. The decision is
	// then as in an outage, and what the check counted is given back. Sign-in may deny where
	// posts allow.
	OnOutage OnOutage

	// Subjects holds the ids of the others in whose limits the action counts too, such
	// as {"room": "r42"}: the names that the activity has, each with an id like UserID.
	// The app must have checked that the user is in that room. Reset needs none.
	Subjects map[string]string

	// Limit holds numbers for limits whose text has a max, such as what the customer has bought:
	// Number(500) for the user's only limit, or Numbers{"tenant": 50_000} with the names in the
	// answer's Limits. Each is 0 to 1,000,000, and 0 refuses. Never copy one from the user's own
	// input. Give it in each call, because without it the number in the text decides. Reset takes
	// none.
	Limit Numbers

	// Clear is for a release, and for the one that a successful attempt sends: it ends the
	// series of the user's lockout. Set it only if UserID is the account, alone or with the
	// address. If it is an address alone, the owner of one account could clear it between
	// guesses at others. An activity without a lockout refuses it with an ErrValidation.
	Clear bool

	// OnLocked is for an attempt, for example to send a mail to the owner of the account. It is
	// called once with the decision, after a failed attempt that used the last action of a
	// limit: Crossed is 100, in the decision or in one of its Limits. The attempt ends when it
	// returns. If it panics, Options.Warn gets an error, and the attempt ends as before.
	OnLocked func(Decision)
}

// wrong returns what is wrong with a request, or "". The guard would refuse it, too. But in
// an outage it can't, and then a mistake would let everybody pass.
func (r *Request) wrong(op guards.Op) string {
	switch {
	case r.UserID == "":
		return "userId is empty, want the id of who is limited"
	case r.Count < 0:
		return fmt.Sprintf("count is %d, want at least 1", r.Count)
	case (op == guards.Release || op == guards.Renew) && (r.At <= 0 || r.RequestID == ""):
		return string(op) + " needs the at and the requestId of the check's answer"
	case r.OnOutage != "" && r.OnOutage != Allow && r.OnOutage != Deny:
		return "OnOutage has another value, want allow or deny"
	case r.Clear && op != guards.Release:
		return "clear goes with a release or an attempt, not with a " + string(op)
	case r.OnLocked != nil:
		return "OnLocked goes with an attempt, not with a " + string(op)
	}
	for _, id := range r.Subjects {
		if id == "" { // left out, an optional subject would not limit
			return "subjects has an empty id, want its value; leave out the name of an optional one"
		}
	}
	return r.wrongLimit(op)
}

// ask returns a call of op for a request. It fails if no guard is known for the
// activity, if the list has other subjects for it, or if the request is wrong.
func (g *Guards) ask(op guards.Op, activity string, r Request) (*call, error) {
	a, listed, ok := g.find(activity)
	if !ok {
		return nil, g.unknown(activity)
	}
	c := &call{target: g.target(a.Guard), attempts: g.options.MaxTries, event: guards.Request{
		UserID: r.UserID, Activity: a.Name, Op: op, Count: r.Count, Partial: r.Partial, Tier: r.Tier, Roles: r.Roles,
		Subjects: maps.Clone(r.Subjects), RequestID: r.RequestID, At: r.At, ReadyAt: r.ReadyAt, Clear: r.Clear,
	}}
	if len(r.Limit) > 0 {
		c.event.Limit = maps.Clone(r.Limit)
	}
	if problem := r.wrong(op); problem != "" {
		return nil, c.validation(problem)
	}
	if listed {
		if problem := a.wrongSubjects(op, r.Subjects); problem != "" {
			return nil, c.validation(problem)
		}
	}
	if r.Job != nil {
		job, err := json.Marshal(r.Job)
		if err != nil {
			return nil, c.validation("job is not JSON: " + c.foreign(err.Error()))
		}
		c.event.Job = job
	}
	if g.options.Local != nil {
		return c, nil
	}
	if op == guards.Check && !r.Partial && r.RequestID == "" {
		c.event.RequestID, _ = smithyrand.NewUUID(rand.Reader).GetUUID() // rand.Reader never fails
	}
	switch {
	case op == guards.Check && r.Partial: // without an id, a repeat would be counted twice
		c.attempts = 1
	case op == guards.Reset: // a repeat could delete what was counted since
		c.attempts = 1
	}
	c.payload, _ = json.Marshal(c.event) //nolint:errchkjson // the job is JSON, and the rest can't fail
	return c, nil
}

// Numbers are the numbers of a request's limits. The name is for apps whose variable guards, the
// client, hides the package guards.
type Numbers = guards.Numbers

// Number returns the number of the user's only limit. 0 allows nothing.
func Number(n int64) Numbers { return guards.Number(n) }

// limitName matches the names in an answer's limits, such as call_api, tenant and room.minute.
var limitName = regexp.MustCompile(`^[a-z]([a-z_]{0,34}[a-z])?(\.[a-z]{1,8})?$`)

// wrongLimit returns what is wrong with the numbers of a request; "" if they are right. Only the
// guard knows which names the activity has. The message shows no name of another form, because
// that could be an id.
func (r *Request) wrongLimit(op guards.Op) string {
	if len(r.Limit) > 0 && op == guards.Reset {
		return "limit does not go with a reset"
	}
	for _, name := range slices.Sorted(maps.Keys(r.Limit)) {
		only := name == "" && len(r.Limit) == 1
		if !only && !limitName.MatchString(name) {
			return "limit has a name of another form, want those in the answer's limits, such as tenant or room.minute"
		}
		if n := r.Limit[name]; n < 0 || n > 1_000_000 {
			return fmt.Sprintf("%s is %d, want 0 to 1,000,000", strings.TrimSuffix("limit."+name, "."), n)
		}
	}
	return ""
}

// wrongSubjects returns what is wrong with the subjects of a request; "" if they are
// right. A reset may leave them out, because it clears the user alone. The message
// never shows what the app sent, because that could be an id.
func (a *Activity) wrongSubjects(op guards.Op, given map[string]string) string {
	known := 0
	for _, s := range a.Subjects {
		name, optional := strings.CutSuffix(s, "?")
		_, ok := given[name]
		switch {
		case ok:
			known++
		case !optional && op != guards.Reset:
			return fmt.Sprintf("subjects has no %s: the activity %q needs %s", name, a.Name, a.subjectNames())
		}
	}
	switch {
	case len(given) == known:
		return ""
	case len(a.Subjects) == 0:
		return fmt.Sprintf("subjects does not go with the activity %q: the list has none for it. Write the list again with guards generate if it is old.", a.Name)
	}
	return fmt.Sprintf("subjects has an unknown name: the activity %q has %s", a.Name, a.subjectNames())
}

// subjectNames returns the names for messages, such as "room, tenant (optional)".
func (a *Activity) subjectNames() string {
	return strings.ReplaceAll(strings.Join(a.Subjects, ", "), "?", " (optional)")
}

// anySubjects returns the subjects that a request must have, all with one id; nil if
// there are none.
func (a *Activity) anySubjects(id string) (subjects map[string]string) {
	for _, s := range a.Subjects {
		if strings.HasSuffix(s, "?") {
			continue
		}
		if subjects == nil {
			subjects = map[string]string{}
		}
		subjects[s] = id
	}
	return subjects
}
