package client

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	smithyrand "github.com/aws/smithy-go/rand"
)

// A Request is what a user wants to do. Only UserID is required.
type Request struct {
	UserID    string    // who is limited: 1 to 128 printable ASCII characters without a space
	Count     int64     // how many actions at once; zero means 1
	Partial   bool      // Check: grant as many of Count as fit, instead of all or nothing
	Tier      string    // the user's plan; never copy it from the user's own input
	Roles     []string  // the user's roles; never copy them from the user's own input
	RequestID string    // Check: counted once for this id; if empty, the client makes one. Release, Renew: as in the check's answer
	At        int64     // Release, Renew: the receipt in Unix milliseconds, as in the answer of the check or of the last renewal
	ReadyAt   time.Time // Check of a delayed job: as in the delayed answer
	Job       any       // Check of a job: what to put on the delayed queue; at most 32 KiB as JSON

	// Subjects holds the ids of the others in whose limits the action counts too, such
	// as {"room": "r42"}: the names that the activity has, each with an id like UserID.
	// The app must have checked that the user is in that room. Reset needs none.
	Subjects map[string]string
}

// An event is what a guard reads.
type event struct {
	UserID    string            `json:"userId"`
	Activity  string            `json:"activity"`
	Op        string            `json:"op"`
	Count     int64             `json:"count,omitzero"`
	Partial   bool              `json:"partial,omitzero"`
	Tier      string            `json:"tier,omitzero"`
	Roles     []string          `json:"roles,omitempty"`
	Subjects  map[string]string `json:"subjects,omitempty"`
	RequestID string            `json:"requestId,omitzero"`
	At        int64             `json:"at,omitzero"`
	ReadyAt   int64             `json:"readyAt,omitzero"`
	Job       any               `json:"job,omitempty"`
}

// wrong returns what is wrong with a request, or "". The guard would refuse it, too. But in
// an outage it can't, and then a mistake would let everybody pass.
func (r *Request) wrong(op string) string {
	switch {
	case r.UserID == "":
		return "userId is empty, want the id of who is limited"
	case r.Count < 0:
		return fmt.Sprintf("count is %d, want at least 1", r.Count)
	case (op == "release" || op == "renew") && (r.At <= 0 || r.RequestID == ""):
		return op + " needs the at and the requestId of the check's answer"
	}
	for _, id := range r.Subjects {
		if id == "" { // left out, an optional subject would not limit
			return "subjects has an empty id, want its value; leave out the name of an optional one"
		}
	}
	return ""
}

// ask returns a call of op for a request. It fails if no guard is known for the
// activity, if the list has other subjects for it, or if the request is wrong.
func (g *Guards) ask(op, activity string, r Request) (*call, error) {
	a, listed, ok := g.find(activity)
	if !ok {
		return nil, g.unknown(activity)
	}
	c := &call{target: g.target(a.Guard), attempts: g.options.Attempts, event: event{
		UserID: r.UserID, Activity: a.Name, Op: op, Count: r.Count, Partial: r.Partial, Tier: r.Tier, Roles: r.Roles,
		Subjects: maps.Clone(r.Subjects), RequestID: r.RequestID, At: r.At, Job: r.Job,
	}}
	if problem := r.wrong(op); problem != "" {
		return nil, c.validation(problem)
	}
	if listed {
		if problem := a.wrongSubjects(op, r.Subjects); problem != "" {
			return nil, c.validation(problem)
		}
	}
	if !r.ReadyAt.IsZero() {
		c.event.ReadyAt = r.ReadyAt.UnixMilli()
	}
	if op == "check" && !r.Partial && r.RequestID == "" {
		c.event.RequestID, _ = smithyrand.NewUUID(rand.Reader).GetUUID() // rand.Reader never fails
	}
	switch {
	case op == "check" && r.Partial: // without an id, a repeat would be counted twice
		c.attempts = 1
	case op == "reset": // a repeat could delete what was counted since
		c.attempts = 1
	}
	payload, err := json.Marshal(c.event)
	if err != nil {
		return nil, c.validation("job is not JSON: " + c.foreign(err.Error()))
	}
	c.payload = payload
	return c, nil
}
