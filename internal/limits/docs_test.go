package limits

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/ratelimit"
)

// documented are the lines that docs/policies.md shows, to be put into limits.go.
var documented = []Activity{
	// begin
	{Name: "create_post", Limit: perMinute(10)},
	{Name: "pin", Limit: slidingLog(100, 12*time.Hour), Label: "12-hour pins"},
	{Name: "ingest", Limit: slidingWindow(50, time.Hour)},
	{Name: "send_message", Limit: oneEvery(5*time.Second, 1)},
	{Name: "create_post", Limit: ratelimit.TokenBucket{Limit: 10, Window: time.Minute, Burst: 15}},
	{Name: "update_member_role", Limit: reservoir(10, 10*time.Second)},
	{Name: "create_post", Limit: ratelimit.Several{{Name: "minute", Policy: perMinute(10)}, {Name: "day", Policy: ratelimit.FixedWindow{Limit: 200, Window: 24 * time.Hour}}}},
	// end
}

func TestDocumentedLimits(t *testing.T) {
	for _, a := range documented {
		if err := a.validate(); err != nil {
			t.Errorf("%s, %v: %v", a.Name, a.Limit, err)
		}
	}
	var shown []string
	for _, block := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(text(t, "../../docs/policies.md"), -1) {
		shown = append(shown, trimmed(block[1])...)
	}
	_, here, _ := strings.Cut(text(t, "docs_test.go"), "// begin\n")
	here, _, _ = strings.Cut(here, "// end\n")
	if diff := cmp.Diff(trimmed(here), shown); diff != "" || len(shown) != len(documented) {
		t.Errorf("docs/policies.md shows other lines than are tried here (-here +shown):\n%s", diff)
	}
}

// What is in limits.go of an activity that the document shows is what it shows,
// unless that is said to be an alternative.
func TestDocumentedLimitsAreThoseInForce(t *testing.T) {
	inForce := map[string]bool{}
	for _, g := range All {
		for _, a := range g.Activities {
			for _, shown := range documented {
				if a.Name == shown.Name && cmp.Equal(a.Limit, shown.Limit) && a.Label == shown.Label {
					inForce[a.Name] = true
				}
			}
		}
	}
	for _, a := range documented {
		if !inForce[a.Name] {
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
