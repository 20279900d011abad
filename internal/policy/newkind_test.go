package policy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
	. "github.com/cric-talk/guards/internal/policy"
	"github.com/cric-talk/guards/internal/ratelimit"
	"github.com/cric-talk/guards/internal/ratelimit/dynamostore"
	"github.com/cric-talk/guards/internal/ratelimit/memstore"
	"github.com/cric-talk/guards/internal/testkit/dynamotest"
	"github.com/cric-talk/guards/internal/workbench/replay"
	"github.com/cric-talk/guards/internal/workbench/replay/traffic"
)

// A new kind of policy is one file and one line in the list of kinds. With
// that, it has a text form, keeps every law, and works in every other package.
func TestANewKindWorksEverywhere(t *testing.T) {
	AddToggle(t)
	for name, law := range map[string]func(*testing.T){
		"Most": TestLawAnEmptyItemTakesEveryCountUpToTheMost, "Sound": TestLawSound, "Live": TestLawLive,
		"Monotone": TestLawMonotone, "Expiry": TestLawExpiry, "Kept": TestLawWaitIsKept,
		"Remaining": TestLawRemainingIsTheMostThatFits, "Undo": TestLawUndo, "text form": TestLawTextForm,
		"any state": TestAnyStateIsReadWithoutPanic,
	} {
		t.Run(name, law)
	}
	timeline(t, "toggle 1/10s", []moment{
		{at: 0, take: 1, want: "ok 1/1"},
		{at: 10 * time.Second, take: 1, want: "no 1/1 wait 10s"},
		{at: 20 * time.Second, take: 1, want: "ok 1/1"},
		{at: 21 * time.Second, undo: 1, of: 20 * time.Second, want: "ok 0/1"},
		{at: 22 * time.Second, take: 1, want: "ok 1/1"},
	})
	everywhere(t, "toggle 1/10s")
	everywhere(t, "turn: toggle 1/10s, day: 200/1d")
}

// everywhere sends a policy through every package that takes policies. None of
// them names a kind.
func everywhere(t *testing.T, text string) {
	t.Helper()
	t.Run(text+" as text", func(t *testing.T) {
		if p, err := Parse(text); err != nil || p.String() != text {
			t.Errorf("Parse(%q) = %q, %v", text, p, err)
		}
		if err := CompatibleTiers(Must(text), Must(text)); err != nil {
			t.Errorf("it cannot share a count with itself: %v", err)
		}
	})
	t.Run(text+" as a live limit", func(t *testing.T) {
		code := limits.Activity{Name: "act", Limit: Must(text)}
		guards := limits.Guards{{Name: "g", Message: "m", Activities: []limits.Activity{code}}}
		l, problems := live.Settings{Activities: map[string]live.Override{"act": {Limit: text}}}.Limits(guards, nil)
		if a, _ := l.Activity(code); len(problems) > 0 || !a.Limit.Equal(code.Limit) {
			t.Errorf("the live limit is %q, %v", a.Limit, problems)
		}
	})
	t.Run(text+" in replay", func(t *testing.T) {
		p := Must(text)
		recorded := traffic.NewReader(traffic.Options{}, traffic.File{Name: "traffic.csv", Text: strings.NewReader("time,user,activity\n" + strings.Repeat("1700000000,u1,act\n", 3))})
		reports, err := (&replay.Replay{Activity: "act", Policy: p}).Compare(t.Context(), recorded)
		if report := reports[0]; err != nil || report.Allowed != 1 || report.Refused != 2 || report.Policy != text {
			t.Errorf("%+v, %v, want 1 allowed and 2 refused", report, err)
		}
	})
	t.Run(text+" in memory", func(t *testing.T) { decide(t, text, new(memstore.Store)) })
	t.Run(text+" on DynamoDB", func(t *testing.T) {
		decide(t, text, dynamostore.New(dynamotest.Config(dynamotest.Endpoint(t)), dynamotest.Table(t)))
	})
}

// decide takes what a policy allows, is refused, waits as it is told, gives
// back and resets.
func decide(t *testing.T, text string, store ratelimit.Store) {
	t.Helper()
	now := time.UnixMilli(start)
	l := &ratelimit.Limiter{
		Store: store, Memory: ratelimit.NewMemory(1 << 20), Timeout: 10 * time.Second, Now: func() time.Time { return now },
	}
	p := Must(text)
	r := ratelimit.Request{UserID: "u1", Activity: "act", Policy: p.AtOnce(), Count: 1}
	check := func(id string, want ratelimit.Reason) (d ratelimit.Decision) {
		t.Helper()
		r.ID = id
		d, err := l.Check(t.Context(), r)
		if err != nil || d.Reason != want {
			t.Fatalf("Check %s = %+v, %v, want %s", id, d, err, want)
		}
		return d
	}
	most := p.Read(start, 0, nil).Remaining
	for i := range most {
		if d := check(fmt.Sprint("r", i), ratelimit.OK); d.Remaining != most-i-1 {
			t.Fatalf("after %d checks %d remain, want %d", i+1, d.Remaining, most-i-1)
		}
	}
	check("r0", ratelimit.Duplicate)
	refused := check("one more", ratelimit.Limited)
	if status, err := l.Decide(t.Context(), ratelimit.Status, r); err != nil || status.Allowed || status.Wait != refused.Wait {
		t.Fatalf("Status = %+v, %v, want the refusal %+v", status, err, refused)
	}
	now = now.Add(refused.Wait - time.Millisecond)
	check("one more", ratelimit.Limited)
	now = now.Add(time.Millisecond)
	d := check("one more", ratelimit.OK)
	if !p.Queues() {
		r.At = d.At
		if back, err := l.Decide(t.Context(), ratelimit.Release, r); err != nil || back.Used != d.Used-1 {
			t.Errorf("Release = %+v, %v, want %d used", back, err, d.Used-1)
		}
	}
	if _, err := l.Decide(t.Context(), ratelimit.Reset, r); err != nil {
		t.Errorf("Reset: %v", err)
	}
	now = now.Add(2 * time.Second) // a refusal is no longer repeated from memory
	check("after the reset", ratelimit.OK)
}
