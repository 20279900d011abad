package command

import (
	"regexp"
	"strings"
	"testing"

	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/limits"
)

// After a deploy that changed a window, or an edit by hand, guards limits --live
// names each part that does not apply, and shows the others in force.
func TestLimitsNamesWhatCannotBeApplied(t *testing.T) {
	credentials(t)
	endpoint, table := dynamotest.Endpoint(t), dynamotest.Table(t)
	put(t, endpoint, table, map[string]string{
		"userId": " config", "activityWindow": "limits",
		"document": `{"activities":{"gone":{"mode":"off"},"create_post":{"limit":"5/1h","tiers":{"premium":"log 9/1m"},"mode":"off"}}}`,
	})
	var out, log stream
	args := []string{"limits", "--live", "--region", "us-east-1", "--endpoint", endpoint, "--table", table}
	if status := run(t.Context(), args, session{guards: limits.All, out: &out, err: &log, now: atPinned}); status != done {
		t.Fatalf("status %d: %s", status, &log)
	}
	for _, want := range []string{`: window of "5/1h" is 1h`, `create_post: tier "premium": `, `: "log 9/1m" counts`, `activity is "gone"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the notes are\n%swant %s", &log, want)
		}
	}
	row := regexp.MustCompile(`(?m)^create_post +10/1m +10/1m +off *$`) // an edit by hand has no time and no name
	if !row.MatchString(out.String()) {
		t.Errorf("%s\nwant the mode of create_post in force", &out)
	}
}
