package explore

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
)

// A row is one run of a system. The explorer prints a violation in this form, so
// that it can become a test.
type row struct {
	name     string
	limits   string // as "2/10s then 1/10s", or as "a: 4/10s beside a: 4/10s cost 2" of a group
	requests string // as "check 1; release 1 of r0"
	system   system
	moves    string    // as "start r0 on A; answer r0"
	needs    exception // that the run must need; empty: none
}

// timelines are runs that were wrong once, and runs that show an exception that
// the contract does not state.
var timelines = []row{
	{
		name:   "a clock that is ahead counts in the next period what an instance behind it would refuse",
		limits: "sliding 2/10s", requests: "check 2; repeat of r0; check 1",
		system: system{skew: 2 * time.Second, instants: []int64{-1}, attempts: 1},
		moves:  "start r0 on B; start r2 on A; answer r2; answer r0; start r1 on A; answer r1",
	},
	{
		name:   "a lowered limit refuses the repeat of what a higher limit counted",
		limits: "2/10s then 1/10s", requests: "check 1; repeat of r0; check 1",
		system: system{instants: []int64{0}, attempts: 1},
		moves:  "start r0 on A; start r2 on B; answer r2; answer r0; follow B; start r1 on B",
		needs:  refusedAfterLowered,
	},
	{
		name:   "a late attempt is counted after its request was told limited",
		limits: "2/10s", requests: "check 2; release 2 of r0; check 1",
		system: system{instants: []int64{0}, attempts: 2},
		moves:  "start r0 on A; answer r0; start r2 on B; vanish r2; answer r2; start r1 on A; answer r1; arrive 0",
		needs:  countedAfterRefusal,
	},
	{
		name:   "the receipt of a bucket beside a reservoir comes from a clock that is ahead",
		limits: "a: bucket 2/10s, b: reservoir 2/20s ahead 20s", requests: "check 1; check 1; check 1",
		system: system{instants: []int64{-1, 3000, 4999}, attempts: 2, faults: 2},
		moves:  "tick; start r0 on A; tick; start r1 on B; answer r1; answer r0; answer r0",
	},
	{
		name:   "late copies of a check and of its release arrive after a reset, which has deleted both ids",
		limits: "2/10s", requests: "check 1; release 1 of r0; reset",
		system: system{skew: 2 * time.Second, instants: []int64{-1}, attempts: 2, faults: 2},
		moves:  "start r0 on A; vanish r0; answer r0; start r1 on A; vanish r1; answer r1; start r2 on A; answer r2; arrive 0; arrive 0",
	},
	{
		name:   "a late copy of a check arrives after a reset and between a release and its answer",
		limits: "2/10s", requests: "check 1; release 1 of r0; reset",
		system: system{instants: []int64{0}, attempts: 2, faults: 1, slow: true},
		moves:  "start r0 on A; vanish r0; perform r0; deliver r0; start r2 on A; perform r2; start r1 on B; perform r1; arrive 0; deliver r1",
	},
}

func TestTimelines(t *testing.T) {
	for _, r := range timelines {
		t.Run(r.name, func(t *testing.T) {
			x := newExplorer(r.parse(t))
			w, err := x.begin()
			if err != nil {
				t.Fatal(err)
			}
			for text := range strings.SplitSeq(r.moves, "; ") {
				if w, err = x.step(w, x.find(t, &w, text)); err != nil {
					t.Fatal(err)
				}
				x.forget(&w)
			}
			for e, n := range x.excuses {
				if e != r.needs {
					t.Errorf("it needs %d times the exception: %s", n, e)
				}
			}
			if r.needs != "" && x.excuses[r.needs] == 0 {
				t.Errorf("it does not need the exception: %s", r.needs)
			}
		})
	}
}

// find returns the move with this text that can happen in w.
func (x *explorer) find(t *testing.T, w *world, text string) move {
	t.Helper()
	var can []string
	for _, m := range x.moves(nil, w) {
		if m.String() == text {
			return m
		}
		can = append(can, m.String())
	}
	t.Fatalf("%s cannot happen, but %s", text, strings.Join(can, "; "))
	return move{}
}

// parse returns the system of a row.
func (r row) parse(t *testing.T) *system {
	t.Helper()
	y := r.system
	limits, shared, ok := strings.Cut(r.limits, " in a room of ")
	if ok {
		y.room = policy.Must(shared)
	}
	limits, dear, ok := strings.Cut(limits, " beside ")
	if ok {
		y.dear = policy.Must(dear)
	}
	for text := range strings.SplitSeq(limits, " then ") {
		y.policies = append(y.policies, policy.Must(text))
	}
	for text := range strings.SplitSeq(r.requests, "; ") {
		y.requests = append(y.requests, parseRequest(t, text))
	}
	return &y
}

// parseRequest reads what request.String writes.
func parseRequest(t *testing.T, text string) (r request) {
	t.Helper()
	words := strings.Fields(text)
	r.verb = verb(words[0])
	for i, word := range words[1:] {
		var err error
		switch n := strings.TrimPrefix(word, "r"); words[i] {
		case "of":
			r.of, err = strconv.Atoi(n)
		case "in":
			r.tries, err = strconv.Atoi(n)
		default:
			if word != "of" && word != "in" {
				r.count, err = strconv.ParseInt(word, 10, 64)
			}
		}
		if err != nil {
			t.Fatalf("%q is not a request: %v", text, err)
		}
	}
	if r.String() != text {
		t.Fatalf("%q is not a request, it reads as %q", text, r)
	}
	return r
}
