package limits_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	. "github.com/cric-talk/guards/limits"
)

const (
	short = "Rate limit exceeded: Too many requests in a short period"
	long  = "Rate limit exceeded: Too many requests. Please try again later."
)

// promised lists the limits that callers were promised. To change a limit,
// change this table too. guards new adds lines at the end.
var promised = []struct {
	guard, message, activities string
	limit                      string // empty: unlimited
	tiers                      map[string]string
	label, group               string
	subjects                   []string // each as in: room 600/1m, or optional tenant 1000/day
	hold                       bool
}{
	{guard: "posts-guard", message: short, activities: "create_post update_post delete_post", limit: "10/1m", tiers: map[string]string{"premium": "20/1m"}},
	{guard: "posts-guard", message: short, activities: "like view"},
	{guard: "comments-guard", message: long, activities: "add_comment update_comment delete_comment", limit: "60/1m"},
	{guard: "rooms-guard", message: short, activities: "create_room update_room delete_room", limit: "10/1m", tiers: map[string]string{"premium": "20/1m"}},
	{guard: "room-message-guard", message: long, activities: "create_room_message update_room_message delete_room_message", limit: "60/1m"},
	{guard: "pins-guard", message: "Pin limit reached (100/12h). Skipped remaining pins.", activities: "pin", limit: "log 100/12h", label: "12-hour pins"},
	{guard: "chat-guard", message: long, activities: "send_message", limit: "bucket 1/5s keep 1h", tiers: map[string]string{"burst": "bucket 1/5s burst 3 keep 1h"}},
	{guard: "ingest-guard", message: long, activities: "ingest", limit: "sliding 50/1h"},
	{guard: "jobs-guard", message: long, activities: "update_member_role", limit: "reservoir 10/10s ahead 15m"},
}

// A promise is an activity without its subjects, and these in words.
type promise struct {
	limits.Activity

	Subjects []string
}

// described returns subjects as promised lists them.
func described(subjects []limits.Subject) (all []string) {
	for _, s := range subjects {
		text := s.Name + " " + s.Limit.String()
		if s.Optional {
			text = "optional " + text
		}
		for _, tier := range slices.Sorted(maps.Keys(s.Tiers)) {
			text += ", tier " + tier + " " + s.Tiers[tier].String()
		}
		all = append(all, text)
	}
	return all
}

func TestLimitsAreAsPromised(t *testing.T) {
	want := map[string]promise{}
	for _, p := range promised {
		for name := range strings.FieldsSeq(p.activities) {
			a := limits.Activity{Name: name, Label: p.label, Group: p.group, Hold: p.hold, Unlimited: p.limit == ""}
			if !a.Unlimited {
				a.Limit = policy.Must(p.limit)
			}
			for tier, limit := range p.tiers {
				if a.Tiers == nil {
					a.Tiers = limits.Tiers{}
				}
				a.Tiers[tier] = policy.Must(limit)
			}
			want[p.guard+" "+name+": "+p.message] = promise{a, p.subjects}
		}
	}
	got := map[string]promise{}
	for _, g := range All {
		for _, a := range g.Activities {
			subjects := described(a.Subjects)
			a.Subjects = nil
			got[g.Name+" "+a.Name+": "+g.Message] = promise{a, subjects}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("limits.go differs from what callers were promised (-promised +limits.go):\n%s", diff)
	}
}

func TestTheListIsValid(t *testing.T) {
	if err := limits.Guards(All).Validate(); err != nil {
		t.Error(err)
	}
}
