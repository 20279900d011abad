package limits

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards"
)

// documented holds the lines that docs/policies.md shows for limits.go.
var documented = []guards.Activity{
	// begin
	{Name: "create_post", Limit: "10/1m"},
	{Name: "call_api", Limit: "1000/month in Europe/Berlin"},
	{Name: "pin", Limit: "log 100/12h", Label: "12-hour pins"},
	{Name: "ingest", Limit: "sliding 50/1h"},
	{Name: "send_message", Limit: "bucket 1/5s keep 1h"},
	{Name: "create_post", Limit: "bucket 10/1m burst 15"},
	{Name: "update_member_role", Limit: "reservoir 10/10s ahead 15m"},
	{Name: "sign_in", Limit: "lockout 5/15m for 1m to 1d"},
	{Name: "create_post", Limit: "minute: 10/1m, day: 200/1d"},
	{Name: "write_note", Limit: "writes: 100/1h", Group: "writing"},
	{Name: "send_letter", Limit: "letters: 10/1h, writes: 100/1h cost 2", Group: "writing"},
	{Name: "send_room_message", Limit: "10/1m", Subjects: []guards.Subject{{Name: "room", Limit: "30/1m"}}},
	{Name: "chat_tokens", Limit: "100000/1d", Hold: true},
	{Name: "export_notes", Limit: "log 3/10m"},
	// end
}

// recipes are activities that this app does not have.
var recipes = []string{"call_api", "sign_in", "write_note", "send_letter", "send_room_message", "chat_tokens", "export_notes"}

func TestDocumentedLimits(t *testing.T) {
	var groups guards.Guard
	for _, a := range documented {
		g := guards.Guard{Name: "g", Message: "m", Activities: []guards.Activity{a}}
		if err := guards.Validate([]guards.Guard{g}); err != nil {
			t.Errorf("%s, %v: %v", a.Name, a.Limit, err)
		}
		if a.Group != "" {
			groups.Name, groups.Message, groups.Activities = g.Name, g.Message, append(groups.Activities, a)
		}
	}
	if err := guards.Validate([]guards.Guard{groups}); err != nil {
		t.Error(err)
	}
	var shown []string
	for _, block := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(text(t, "../docs/policies.md"), -1) {
		shown = append(shown, trimmed(block[1])...)
	}
	_, here, _ := strings.Cut(text(t, "docs_test.go"), "// begin\n")
	here, _, _ = strings.Cut(here, "// end\n")
	if diff := cmp.Diff(trimmed(here), shown); diff != "" || len(shown) != len(documented) {
		t.Errorf("docs/policies.md and this test show different lines (-test +document):\n%s", diff)
	}
}

// The document shows the limit that is in force for each of its activities. It may
// show alternatives beside it.
func TestDocumentedLimitsAreInForce(t *testing.T) {
	inForce := map[string]bool{}
	for _, g := range All {
		for _, a := range g.Activities {
			for _, shown := range documented {
				if a.Name == shown.Name && a.Limit == shown.Limit && a.Label == shown.Label {
					inForce[a.Name] = true
				}
			}
		}
	}
	for _, a := range documented {
		if !inForce[a.Name] && !slices.Contains(recipes, a.Name) {
			t.Errorf("docs/policies.md does not show the limit of %s that is in force", a.Name)
		}
	}
}

func trimmed(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

func text(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
