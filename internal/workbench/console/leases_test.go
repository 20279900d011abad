package console_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/testkit/cricket"
	"github.com/cric-talk/guards/internal/wiring"
	"github.com/cric-talk/guards/internal/workbench/console"
)

const call = `{"userId": "u1", "activity": "call"}`

// holds returns how many actions of a lease the page shows, and until when. 0: none.
func (r *rig) holds() (left int, until string) {
	r.t.Helper()
	found := regexp.MustCompile(`data-text="lease">This instance holds a lease: (\d+) more actions? until ([\d:]+)\.<`).FindStringSubmatch(r.get("/"))
	if found == nil {
		return 0, ""
	}
	left, _ = strconv.Atoi(found[1])
	return left, found[2]
}

// untilHeld calls until the page shows a lease of more than 5 actions. It looks after each
// ten calls, because a lease is as large as the calls of a second.
func (r *rig) untilHeld() (left int, until string) {
	r.t.Helper()
	for range 60 {
		for range 10 {
			r.app("api-guard", call)
		}
		if left, until = r.holds(); left > 5 {
			return left, until
		}
	}
	r.t.Fatal("after 600 calls, the page shows no lease")
	return 0, ""
}

// A window of a busy prepaid limit shows what the guard holds. Without the table, it hands out
// exactly that before it decides alone.
func TestLeasesOnThePage(t *testing.T) {
	for _, activity := range []guards.Activity{
		{Name: "call", Limit: "2000/1m prepaid"},
		{Name: "call", Limit: "calls: 2000/1m prepaid", Group: "api"},
	} {
		guards := cricket.Link(guards.Guard{Name: "api-guard", Message: "m", Activities: []guards.Activity{activity}})
		r := start(t, 0, func(c *console.Console, _ *wiring.Settings) { c.Guards = guards })
		for range 50 {
			r.app("api-guard", call)
		}
		if left, _ := r.holds(); left != 0 {
			t.Errorf("after 50 calls, the page shows a lease of %d", left)
		}
		left, until := r.untilHeld()
		s := r.watch("")
		if until != "12:01:00" {
			t.Errorf("the lease lasts until %s, want the end of the window", until)
		}
		s.wait("windows", fmt.Sprintf(`"lease":"This instance holds a lease: %d more actions until 12:01:00."`, left))
		r.store.down.Store(true)
		for range left {
			if answer := r.app("api-guard", call); !strings.Contains(answer, `"reason":"ok"`) {
				t.Fatalf("%s, want one of the %d of the lease", answer, left)
			}
		}
		if left, _ := r.holds(); left != 0 {
			t.Errorf("%d are held after all are handed out", left)
		}
		if answer := r.app("api-guard", call); !strings.Contains(answer, `"reason":"unavailable"`) {
			t.Errorf("%s, want a decision without the table", answer)
		}
	}
}

// The lease of a bucket ends after a second, even on a page without any action.
func TestTheLeaseOfABucketEnds(t *testing.T) {
	r := start(t, 0, func(c *console.Console, _ *wiring.Settings) {
		c.Guards = limits.Guards{{Name: "api-guard", Message: "m", Activities: []limits.Activity{{Name: "call", Limit: policy.Must("bucket 1000/1s burst 4000 prepaid")}}}}
	})
	s := r.watch("")
	r.untilHeld()
	s.wait("windows", `"lease":"This instance holds a lease: `)
	s.wait("windows", `"lease":""`)
}
