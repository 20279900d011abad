package command

import (
	"strings"
	"testing"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/testkit/cricket"
)

// The names are the same each time, and a limit with a cost is doubled once. A project without
// subjects has no examples with subjects.
func TestExamplesOfAProject(t *testing.T) {
	exports := []guards.Guard{{Name: "exports-guard", Message: "m", Activities: []guards.Activity{
		{Name: "see_it", Unlimited: true},
		{Name: "export", Limit: "100/1h cost 5", Tiers: guards.Tiers{
			"pro": "200/1h cost 5", "max": "400/1h cost 5", "free": "50/1h cost 5",
		}},
	}}}
	for _, project := range []struct {
		page  []guards.Guard
		names map[string]string
	}{
		{exports, map[string]string{
			"{activity}": "export", "{guard}": "exports-guard", "{limit}": `"200/1h cost 5"`,
			"{tiered}": "export", "{tier}": "free", "{tierlimit}": `"100/1h cost 5"`,
		}},
		{content, map[string]string{"{group}": "content", "{named}": "posts", "{namedlimit}": "20/1m", "{limit}": `"posts: 10/1m, writes: 40/1h cost 2"`}},
		{rooms, map[string]string{
			"{activity}": "plain", "{counted}": "write", "{subjects}": "--subject room=room1 --subject tenant=tenant1", "{subject}": "room", "{subjectlimit}": "8/1m",
			"{tieredsubject}": "room", "{subjecttier}": "pro", "{slotsubject}": "room", "{subjectslotted}": "export",
		}},
	} {
		for range 20 {
			names := examples(cricket.Link(project.page...))
			for word, want := range project.names {
				if names[word] != want {
					t.Fatalf("%s is %s, want %s", word, names[word], want)
				}
			}
		}
	}
	_, with, _ := command(t, rooms, "check --help")
	_, none, _ := command(t, content, "check --help")
	const example = "  guards check write --user u1 --subject room=room1 --subject tenant=tenant1\n"
	if !strings.Contains(with, example) || strings.Contains(none, "check write") || strings.Contains(none, "{") {
		t.Errorf("%s\n%s", with, none)
	}
}
