package schema_test

import (
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/input"
	"github.com/cric-talk/guards/internal/testkit"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// rooms is a guard whose messages count for a room and, if it is named, a tenant, too. Callers
// can give numbers for the user and for the tenant's day.
var rooms = cricket.Link(guards.Guard{Name: "rooms-guard", Message: "m", Activities: []guards.Activity{{Name: "write", Limit: "10/1m max 2000", Subjects: []guards.Subject{
	{Name: "room", Limit: "600/1m"},
	{Name: "tenant", Limit: "minute: 50/1m, day: 1000/day max 9000", Optional: true},
}}}})[0]

// The schema of events refuses nothing that a guard accepts. It refuses
// everything that a guard refuses for its form.
func TestTheEventSchemaAgreesWithTheGuard(t *testing.T) {
	schema := schemas(t)["event.schema.json"]
	form := regexp.MustCompile(`want (a string|an object|true or false|a whole number|an array of strings|one of check|at least 1 char|1 to (128|64|1000000))|unknown field|is missing|has a wrong id|goes only with op|does not go with|Unix milliseconds`)
	text := func(n int) string { return `"` + strings.Repeat("x", n) + `"` }
	values := []string{`"x"`, `"x\n"`, `"create_post"`, `"_"`, `""`, `"é"`, `" "`, text(64), text(65), text(128), text(129), `"check"`, `"status"`, `"release"`, `"renew"`, `"reset"`,
		`0`, `1`, `-1`, `2.5`, `1700000000000`, `1000000`, `1000001`, `1.0`, `1e0`, `1e-1`, `1e19`, `9214646399999`, `9214646400000`, `true`, `false`, `null`, `[]`, `["x"]`, `[1]`, `{}`, `{"x":1}`, `{"room":"r42"}`, `{"room":""}`, `{"room":"r 1"}`, `{"room":"r1","tenant":"t1"}`, `{"room":7}`,
		`1e6`, `1000000.5`, `{"write":0}`, `{"write":1000000,"tenant.day":7}`, `{"write":-1}`, `{"write":1000001}`, `{"write":1.5}`, `{"write":null}`, `{"write":{}}`, `{"write":"7"}`, `{"":7}`, `{"room.day":7}`}
	fields := append(slices.Sorted(maps.Keys(properties(t, decode(t, read(t, "event.schema.json"))))), "teir", "USERID")
	for _, base := range []string{
		`{"userId":"u1","activity":"create_post"}`, `{"userId":"u1","activity":"create_post","op":"status"}`,
		`{"userId":"u1","activity":"create_post","op":"release","at":1,"requestId":"r"}`, `{"userId":"u1","activity":"pin","op":"renew","at":1,"requestId":"r"}`,
		`{"userId":"u1","activity":"create_post","op":"reset"}`,
		`{"userId":"u1","activity":"create_post","partial":true}`, `{"userId":"u1","activity":"update_member_role"}`, `{}`,
		`{"userId":"u1","activity":"write","subjects":{"room":"r1"}}`, `{"userId":"u1","activity":"write","op":"reset"}`,
	} {
		for _, field := range fields {
			for _, value := range values {
				var members map[string]json.RawMessage
				testkit.OK(t, json.Unmarshal([]byte(base), &members))
				members[field] = json.RawMessage(value)
				event := testkit.Must(json.Marshal(members))(t)
				g := cricket.Posts
				switch {
				case strings.Contains(base, "member_role"):
					g = cricket.Jobs
				case strings.Contains(base, `"pin"`):
					g = cricket.Pins
				case strings.Contains(base, `"write"`):
					g = rooms
				}
				h := handler(g)
				h.BypassRoles = []string{"admin"}
				_, byGuard := h.Invoke(t.Context(), event)
				bySchema := schema.Validate(decode(t, event))
				wrong, _ := errors.AsType[*input.ValidationError](byGuard)
				switch {
				case bySchema != nil && byGuard == nil:
					t.Errorf("%s: the schema refuses what the guard accepts: %v", event, bySchema)
				case bySchema == nil && byGuard != nil && form.MatchString(wrong.Error()):
					t.Errorf("%s: the schema accepts what the guard refuses: %v", event, byGuard)
				}
			}
		}
	}
}
