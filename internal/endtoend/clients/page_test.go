package clients_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
)

// The page logs in as u1, so this test has a server of its own.
func TestThePageCountsDown(t *testing.T) {
	testkit.Clients.Need(t)
	t.Parallel()
	guards := serve(t)
	_, url := apps["express"].serving(t, newProxy(t, guards).endpoint())
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("Node is not installed")
	}
	page := func(t testing.TB) *process {
		t.Helper()
		return run(t, nil, node, "internal/endtoend/clients/testdata/page.mjs", url)
	}
	if posted := page(t); posted.status(t) != 0 || posted.String() != `{"text":"Posted","disabled":false}`+"\n" {
		t.Errorf("the first click: %s", posted)
	}

	// If the minute ends too soon, the page counts down only once. A busy machine
	// can skip a number.
	testkit.Retry(t, func(t testing.TB) {
		var waits []int
		askPosts(t, guards, "u1", `,"op":"reset"`)
		askPosts(t, guards, "u1", `,"count":10`)
		refused := page(t)
		select {
		case <-refused.ended:
		case <-time.After(5 * time.Second): // long enough for two numbers
		}
		for line := range strings.Lines(refused.String()) {
			var shown struct {
				Text     string
				Disabled bool
			}
			if err := json.Unmarshal([]byte(line), &shown); err != nil {
				t.Fatalf("the page printed %q: %v", line, err)
			}
			var seconds int
			if _, err := fmt.Sscanf(shown.Text, "Try again in %d s", &seconds); err == nil && shown.Disabled {
				waits = append(waits, seconds)
			}
		}
		if len(waits) < 2 || waits[0] > 60 || waits[1] != waits[0]-1 {
			t.Errorf("the page shows the seconds %v, want a countdown", waits)
		}
	})
}
