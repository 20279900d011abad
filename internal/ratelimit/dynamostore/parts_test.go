package dynamostore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
)

// A decision about a user and a room takes exactly twice the requests and units of one
// about the user alone, by each kind of limit. This holds for a check by an instance that
// knows nothing, later checks, a status and a release. Nothing is read first. A check that
// the user's own limit refuses costs the same as without a room.
func TestASubjectCostsExactlyTwice(t *testing.T) {
	for _, text := range []string{"3/1m", "bucket 3/3s keep 1h", "sliding 3/1h", "log 3/12h", "3/day in Europe/Berlin", "minute: 3/1m, day: 200/1d"} {
		t.Run(text, func(t *testing.T) {
			alone, both := costs(t, text, false), costs(t, text, true)
			for i, a := range alone {
				want := a
				if a.allowed || a.op != ratelimit.Check {
					want.requests, want.written, want.read = 2*a.requests, 2*a.written, 2*a.read
				}
				if both[i] != want {
					t.Errorf("step %d: a user costs %+v, and with a room %+v, want %+v", i, a, both[i], want)
				}
			}
			if later, refused := alone[1], alone[3]; later.requests != 1 || later.written != 1 || refused.allowed || refused.requests > 1 {
				t.Errorf("a later check costs %+v, want one request and one unit; a refusal %+v, want at most one", later, refused)
			}
		})
	}
}

// A bill is what a step costs.
type bill struct {
	op            ratelimit.Op
	allowed       bool
	requests      int
	written, read float64 // units
}

// costs returns the bill of each step of a user who reaches the limit, with or without a
// room that has the same limit.
func costs(t *testing.T, text string, room bool) (bills []bill) {
	t.Helper()
	l, p := through(t)
	now := start.Add(12_345 * time.Millisecond)
	l.Now, l.Memory = func() time.Time { return now }, ratelimit.NewMemory(1<<20)
	r := request("")
	r.UserID, r.Policy = strings.Repeat("u", 36), policy.Must(text)
	var at int64
	for i, op := range []ratelimit.Op{
		ratelimit.Check, ratelimit.Check, ratelimit.Check, ratelimit.Check, ratelimit.Status, ratelimit.Release, ratelimit.Check,
	} {
		p.ResetCounts()
		r.ID, r.At = fmt.Sprint(i), 0
		if op == ratelimit.Release {
			r.ID, r.At = "1", at
		}
		parts := []ratelimit.Part{{Request: r}}
		if room {
			in := r
			in.UserID, in.For = " room "+strings.Repeat("r", 30), r.UserID
			parts = append(parts, ratelimit.Part{Request: in, Subject: "room"})
		}
		d, err := l.DecideAll(t.Context(), op, parts, false)
		sent := 0
		for _, n := range p.Counts() {
			sent += n
		}
		if err != nil || sent != d.Requests {
			t.Fatalf("step %d: %+v, %v, and the table got %d requests", i, d, err, sent)
		}
		if i == 1 {
			at = d.At
		}
		bills = append(bills, bill{op, d.Allowed, sent, p.WriteUnits(), p.ReadUnits()})
		now = now.Add(10 * time.Millisecond)
	}
	return bills
}
