package faults_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/proofs/prove"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
)

// A room refuses, so what the user's item has counted is given back. That arrives once,
// whatever happens to the requests and to their answers, and an older count stays.
func TestWhatARefusalGivesBackArrivesOnce(t *testing.T) {
	prove.Explain(t, "faults")
	const before = 2
	r := newRig(t, dynamotest.NewProxy(t))
	lists := [][]dynamotest.Fault{}
	for _, fault := range dynamotest.Faults() {
		lists = append(lists, []dynamotest.Fault{0: dynamotest.Pass, 2: fault}, []dynamotest.Fault{2: fault, 3: fault}, []dynamotest.Fault{3: fault})
	}
	given, lost := 0, 0
	for round, text := range []string{"5/100d", "log 5/100d", "sliding 5/100d", "bucket 5/50d", "a: 5/100d, b: log 6/100d"} {
		for i, list := range lists {
			if !prove.Long() && (i+round)%3 != 0 {
				continue
			}
			p, user, name := policy.Must(text), fmt.Sprintf("g%d-%d", round, i), fmt.Sprintf(" room g%d-%d", round, i)
			limiter := func(store int) *ratelimit.Limiter {
				return &ratelimit.Limiter{
					Store: r.stores[store], Memory: ratelimit.NewMemory(1 << 20), Now: func() time.Time { return time.UnixMilli(noon) },
					NewBudget: func() ratelimit.Budget { return new(dynamotest.Budget) },
				}
			}
			healthy := (&dynamotest.Plan{Attempts: 3, Patience: time.Second}).In(t.Context())
			inRoom := ratelimit.Request{UserID: name, For: "other", Activity: "act", Policy: policy.Must("1/100d"), Count: 1, ID: "first"}
			if d, err := limiter(1).Check(healthy, inRoom); err != nil || !d.Allowed {
				t.Fatalf("%+v, %v", d, err)
			}
			mine := ratelimit.Request{UserID: user, Activity: "act", Policy: p, Count: 1}
			l := limiter(0) // it knows the user's item and not the room's
			for n := range before {
				mine.ID = fmt.Sprint("r", n)
				if d, err := l.Check(healthy, mine); err != nil || !d.Allowed {
					t.Fatalf("%+v, %v", d, err)
				}
			}
			mine.ID, inRoom.ID, inRoom.For = "refused", "refused", user
			plan := &dynamotest.Plan{Faults: list, Patience: time.Millisecond, Attempts: 3}
			began := time.Now()
			d, err := l.DecideAll(plan.In(t.Context()), ratelimit.Check, []ratelimit.Part{{Request: mine}, {Request: inRoom, Subject: "room"}}, false)
			inTime := time.Since(began) < 50*time.Millisecond // giving back may take 100 ms
			if err != nil || d.Allowed || d.LimitedBy != "room" || d.At != 0 {
				t.Errorf("%s, %q: %+v, %v", text, list, d, err)
			}
			s, err := look(t.Context(), r.direct, user, p, noon)
			if err != nil {
				t.Fatal(err)
			}
			sent := plan.Sent()
			last := sent[len(sent)-1]
			arrived := last.Op == "UpdateItem" && (last.Fault == dynamotest.Pass || last.Fault.Applied())
			for k, n := range s.counts {
				if n < before || n > before+1 || n > before && arrived && inTime {
					t.Errorf("%s, %q: limit %d counts %d after a refusal, and %d before: %v", text, list, k, n, before, faultsOf(sent))
				}
			}
			for _, a := range sent {
				if a.Fault.Unknown() && a.Fault.Applied() {
					lost++
				}
			}
			if s.counts[0] == before {
				given++
			}
		}
	}
	if given == 0 || lost == 0 {
		t.Errorf("%d refusals gave back and %d answers were lost, want some", given, lost)
	}
}
