package cleanup

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/cric-talk/guards/internal/input"
)

// A Request is cleanup's event.
type Request struct {
	DryRun bool   // count, but delete nothing
	UserID string // the user to erase; empty to sweep out what has expired
}

var fields = []input.Field[Request]{
	{Name: "dryRun", Read: func(r *Request, f string, v jsontext.Value) error { return input.Bool(&r.DryRun, f, v) }},
	{Name: "userId", Read: func(r *Request, f string, v jsontext.Value) error { return input.ID(&r.UserID, f, v) }},
}

// decode reads an event strictly. An event from EventBridge always means a
// sweep, whatever else it contains.
func decode(payload []byte) (Request, error) {
	if fromEventBridge(payload) {
		return Request{}, nil
	}
	r, err := input.Decode(payload, fields)
	if err == nil && r.UserID != "" {
		err = input.CheckUserID(r.UserID)
	}
	return r, err
}

// fromEventBridge reports whether an event has a member that EventBridge adds.
func fromEventBridge(payload []byte) bool {
	if !bytes.Contains(payload, []byte(`"source"`)) && !bytes.Contains(payload, []byte(`"detail-type"`)) {
		return false
	}
	var members map[string]jsontext.Value
	err := json.Unmarshal(payload, &members)
	return err == nil && (members["source"] != nil || members["detail-type"] != nil)
}
